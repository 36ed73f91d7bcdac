"""``model.generate(...)`` of transformers, unmodified, as a subject that is sampled.

``assisted_counts`` and ``prompt_lookup_counts`` sample the library's two speculative paths, ``plain_counts`` its
target-only path. All three must follow ``exact_law``: the target's own law, enumerated by teacher-forced forward passes
without ``generate``. Each setting is complete and relies on no default of the library.

Requirements of the library's source that its signature does not state:

* The number of drafted tokens, its schedule and the confidence threshold are read from the *assistant's*
  ``generation_config``. The "heuristic" schedule also writes to it, so calls would not be independent.
* ``top_k`` defaults to 50; only an explicit 0 turns it off.
* An unset end-of-sequence id is filled in from the model's ``generation_config``, so it must be unset there too.
* The assistant applies the warpers twice (the target's list is passed to it and built again), so it drafts at the
  squared temperature. It reports the pmf that it drew from, so acceptance changes and the law does not.

The parameter ``setting`` of the functions here is the configuration of the call, and ``seed`` the seed of torch's
generator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from specverify.engines.huggingface.generation import (
    Build,
    GenerateCall,
    assisted_engine,
    one_thread,
    prompt_lookup_engine,
    prompt_of,
    quiet_and_seeded,
    sampling_config,
)
from specverify.engines.huggingface.install import INSTALL
from specverify.engines.huggingface.tiny_models import SETTINGS, EngineSetting, build_model, build_target, check_setting
from specverify.reference.rounds import AcceptanceStatistics, commit
from specverify.reference.types import Tokens
from specverify.subjects.subject import Forward, committed_before, drafts_of

try:
    import torch
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
except ImportError as error:
    raise ImportError(f"the Hugging Face subject needs torch and transformers: {INSTALL}") from error

__all__ = [
    "SETTINGS",
    "EngineSetting",
    "GenerateCall",
    "assisted_activity",
    "assisted_counts",
    "assisted_engine",
    "build_model",
    "check_setting",
    "exact_law",
    "law_of",
    "next_token_pmfs",
    "plain_counts",
    "prompt_lookup_activity",
    "prompt_lookup_counts",
    "prompt_lookup_engine",
    "quiet_and_seeded",
    "warpers",
]

PLAIN_BATCH = 4096
"""Sequences per target-only ``generate`` call."""


def assisted_counts(setting: EngineSetting, samples: int, seed: int) -> Counter[Tokens]:
    """Return the number of occurrences of each generated text in ``samples`` calls of assisted generation.

    ``seed`` sets the random numbers. A text is counted as the library returns it, with any tokens after an
    end-of-sequence id or beyond the horizon. Raises ``ValueError`` for a setting that ``check_setting`` rejects.
    """
    return _counts(assisted_engine, setting, samples, seed)


def prompt_lookup_counts(setting: EngineSetting, samples: int, seed: int) -> Counter[Tokens]:
    """Return the number of occurrences of each generated text in ``samples`` calls with prompt lookup.

    ``seed`` sets the random numbers. A text is counted as the library returns it, with any tokens after an
    end-of-sequence id or beyond the horizon. Raises ``ValueError`` for a setting that ``check_setting`` rejects.
    """
    return _counts(prompt_lookup_engine, setting, samples, seed)


def plain_counts(setting: EngineSetting, samples: int, seed: int) -> Counter[Tokens]:
    """Return the number of occurrences of each generated text in ``samples`` texts of the target alone.

    They are sampled in batches from ``seed``; padding after an end is removed. Raises ``ValueError`` for a setting that
    ``check_setting`` rejects.
    """
    check_setting(setting)
    target = build_target(setting)
    counts: Counter[Tokens] = Counter()
    with quiet_and_seeded(seed):
        for drawn in range(0, samples, PLAIN_BATCH):
            size = min(PLAIN_BATCH, samples - drawn)
            rows = target.generate(
                **prompt_of(setting), generation_config=sampling_config(setting, num_return_sequences=size)
            )
            new = rows[:, len(setting.prompt) :].tolist()
            counts.update(commit(tuple(row), setting.horizon, setting.eos)[0] for row in new)
    return counts


def assisted_activity(setting: EngineSetting, calls: int, seed: int) -> AcceptanceStatistics:
    """Return the numbers of drafted and accepted tokens in ``calls`` calls of assisted generation.

    The random numbers come from ``seed``. Drafted tokens are read from the inputs of the target's forward passes.
    """
    return _activity(assisted_engine, setting, calls, seed)


def prompt_lookup_activity(setting: EngineSetting, calls: int, seed: int) -> AcceptanceStatistics:
    """Return the numbers of drafted and accepted tokens in ``calls`` calls with prompt lookup.

    The random numbers come from ``seed``. Drafted tokens are read from the inputs of the target's forward passes.
    """
    return _activity(prompt_lookup_engine, setting, calls, seed)


@lru_cache(maxsize=64)
def exact_law(setting: EngineSetting) -> dict[Tokens, float]:
    """Return new tokens -> probability for the target of ``setting`` alone; the sum is 1 within float64 rounding."""
    return law_of(build_target(setting), setting)


def law_of(target: Any, setting: EngineSetting) -> dict[Tokens, float]:
    """Return the law of sampling ``target`` under ``setting``, without cache and ``generate``.

    The library's warpers act on float32 logits; the result is normalised in float64. Sequences of probability 0 are
    left out. Raises ``ValueError`` for a setting that ``check_setting`` rejects.
    """
    check_setting(setting)
    law: dict[Tokens, float] = {}
    unfinished: dict[Tokens, float] = {(): 1.0}
    while unfinished:
        extended: dict[Tokens, float] = {}
        rows = next_token_pmfs(target, setting, list(unfinished))
        for (new, weight), row in zip(unfinished.items(), rows, strict=True):
            extended |= {(*new, token): weight * mass for token, mass in enumerate(row) if mass > 0}
        finished = {new for new in extended if len(new) == setting.horizon or new[-1] in setting.eos}
        law |= {new: extended[new] for new in finished}
        unfinished = {new: weight for new, weight in extended.items() if new not in finished}
    return {new: law[new] for new in sorted(law)}


def next_token_pmfs(target: Any, setting: EngineSetting, new: list[Tokens]) -> list[list[float]]:
    """Return the warped pmf of ``target``, ``[vocabulary]``, of the token after the prompt and each text of ``new``.

    ``setting`` has the prompt and the warpers. All texts have the same length.
    """
    ids: Any = torch.tensor([setting.prompt + tokens for tokens in new], device=target.device)
    with torch.no_grad(), one_thread():
        logits = target(ids).logits[:, -1].float()
    pmfs: list[list[float]] = warpers(setting)(ids, logits).double().softmax(-1).tolist()
    return pmfs


def warpers(setting: EngineSetting) -> LogitsProcessorList:
    """Return the library's warpers of ``setting`` in the library's order: temperature, top-k, top-p."""
    chosen = LogitsProcessorList([TemperatureLogitsWarper(float(setting.temperature))])
    if setting.top_k:
        chosen.append(TopKLogitsWarper(setting.top_k))
    if setting.top_p is not None and setting.top_p < 1:
        chosen.append(TopPLogitsWarper(setting.top_p))
    return chosen


def _counts(build: Build, setting: EngineSetting, samples: int, seed: int) -> Counter[Tokens]:
    check_setting(setting)
    engine = build(setting)
    with quiet_and_seeded(seed):
        return Counter(engine.draw() for _ in range(samples))


def _activity(build: Build, setting: EngineSetting, calls: int, seed: int) -> AcceptanceStatistics:
    check_setting(setting)
    engine = build(setting)
    statistics = AcceptanceStatistics(0, 0, 0, 0, 0)
    forwards: list[Forward] = []

    def record(_: Any, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        ids = named["input_ids"] if "input_ids" in named else positional[0]
        forwards.append(Forward(named["past_key_values"].get_seq_length(), tuple(ids[0].tolist())))

    hook = engine.target.register_forward_pre_hook(record, with_kwargs=True)
    with quiet_and_seeded(seed):
        for _ in range(calls):
            forwards.clear()
            new = engine.draw()
            of_call = _statistics(forwards, new, setting.prompt)
            statistics = AcceptanceStatistics(*(a + b for a, b in zip(statistics, of_call, strict=True)))
    hook.remove()
    return statistics


def _statistics(forwards: list[Forward], new: Tokens, prompt: Tokens) -> AcceptanceStatistics:
    """Return the numbers of rounds, tokens, drafts, verified and accepted drafts of one call.

    ``forwards`` are the forward passes of the target, one for each round, and ``new`` the returned tokens. The drafts
    of a round are the input tokens that follow the committed ones. They are accepted up to the first that differs from
    ``new``.
    """
    drafted = reached = accepted = 0
    for forward in forwards:
        draft, kept = drafts_of(forward, prompt), new[committed_before(forward, prompt) - len(prompt) :]
        matches = [token == emitted for token, emitted in zip(draft, kept, strict=False)]
        agreed = matches.index(False) if False in matches else len(matches)
        drafted, accepted = drafted + len(draft), accepted + agreed
        reached += min(agreed + 1, len(matches))
    return AcceptanceStatistics(len(forwards), len(new), drafted, reached, accepted)
