"""The TOML file that plans a campaign.

Its form, with paths relative to the plan::

    results = "results.sqlite"
    alarm = 1e-6                    # shared by all subjects
    tv = 0.01                       # total variation within which a subject holds
    block = 10000                   # samples of a block
    blocks = 50                     # largest number of blocks of each subject

    [[subject]]
    name = "command:./my-engine"
    law = "law.json"                # see ``run.black_boxes.law_of_file``
    prompt = [3, 1, 4]
    max_tokens = 2
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from specverify.base.arguments import (
    argument_error,
    check_count,
    check_positive,
    check_probability,
    check_rounding,
    check_seconds,
    check_seed,
    is_token,
    nearest,
)
from specverify.base.files import reason_of
from specverify.foreign.lines import Limits
from specverify.laws.known_law import known_law
from specverify.run.black_boxes import SampleRequest, is_server, law_of_file
from specverify.run.campaigns import Campaign, CampaignSubject
from specverify.run.sequential_samples import SamplingPlan

Check = Callable[[Any, str], None]


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str) or not value:
        raise argument_error(name, value, "a text")


def _check_prompt(value: Any, name: str) -> None:
    if not isinstance(value, str) and not (isinstance(value, list) and all(map(is_token, value))):
        raise argument_error(name, value, "a text or a list of token ids")


def _check_options(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise argument_error(name, value, "a table of sampling options")


def _check_token(value: Any, name: str) -> None:
    if not is_token(value):
        raise argument_error(name, value, "a token id")


OF_ALL: Final[Mapping[str, Check]] = {
    "results": _check_text,
    "alarm": check_probability,
    "tv": check_probability,
    "block": lambda value, name: check_count(value, name, least=64),
    "blocks": check_count,
    "largest_call": check_count,
    "rounding": check_rounding,
    "seed": check_seed,
    "block_seconds": check_seconds,
}
OF_EACH: Final[Mapping[str, Check]] = {
    "name": _check_text,
    "law": _check_text,
    "prompt": _check_prompt,
    "max_tokens": check_count,
    "temperature": lambda value, name: check_positive(value, name, "probability"),
    "model": _check_text,
    "options": _check_options,
    "eos": _check_token,
    "timeout": check_seconds,
    "memory": lambda value, name: check_positive(value, name, "GiB"),
}


def campaign_of(file: Path) -> Campaign:
    """Return the campaign that a TOML file describes. Raises ``ValueError`` with one sentence for an invalid file."""
    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"the plan {str(file)!r} cannot be read: {reason_of(error)}") from None
    subjects = given.pop("subject", None)
    if not isinstance(subjects, list) or not subjects or not all(isinstance(item, dict) for item in subjects):
        raise ValueError(f"the plan {str(file)!r} names nothing to sample, expected at least one [[subject]]")
    checked = _checked(given, OF_ALL, "the plan", needed=("results",))
    for index, item in enumerate(subjects):
        if item in subjects[:index]:
            raise ValueError(
                f"subject {index + 1} is the same as subject {subjects.index(item) + 1}, expected each once"
            )
    block, blocks = checked.get("block", 10_000), checked.get("blocks", 10)
    options = {name: checked[name] for name in SamplingPlan._fields if name in checked}
    plan = SamplingPlan(**{"largest_call": 128, **options})
    result = tuple(_subject(item, file.parent, index) for index, item in enumerate(subjects, start=1))
    return Campaign(result, file.parent / checked["results"], block, blocks, plan, checked.get("block_seconds"))


def _subject(given: Mapping[str, Any], folder: Path, index: int) -> CampaignSubject:
    checked = _checked(given, OF_EACH, f"subject {index}", needed=("name", "law"))
    if "model" in checked and not is_server(checked["name"]):
        raise ValueError(f"subject {index} has a model, and only requests to a server (http://...) name one")
    prompt = checked.get("prompt", ())
    wanted = SampleRequest(
        prompt if isinstance(prompt, str) else tuple(prompt),
        **{name: checked[name] for name in ("max_tokens", "temperature", "model", "eos", "options") if name in checked},
    )
    memory = checked.get("memory")
    limits = Limits(checked.get("timeout", Limits().seconds), None if memory is None else int(memory * 2**30))
    law = law_of_file(folder / checked["law"])
    known_law(law, f"the law of subject {index}")
    return CampaignSubject(checked["name"], wanted, law, limits)


def _checked(
    given: Mapping[str, Any], known: Mapping[str, Check], where: str, needed: tuple[str, ...]
) -> Mapping[str, Any]:
    for name, value in given.items():
        if name not in known:
            new = ", write tv" if name == "tolerance" and "tv" in known else nearest(name, known)
            raise ValueError(f"{where} has {name!r}, expected one of {', '.join(known)}{new}")
        known[name](value, f"{name} of {where}")
    for name in needed:
        if name not in given:
            raise ValueError(f"{where} has no {name!r}")
    return given
