"""A verifier of logits: it makes the pmfs itself, by the sampling parameters it is called with.

    verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p) -> emitted tokens

``target_logits`` is ``[gamma + 1, vocabulary]`` and ``draft_logits`` ``[gamma, vocabulary]``, float64; ``draft_tokens``
is ``[gamma]``. It may have any of the four parameters. All it has are passed by name, neutral ones too (temperature 1,
top_k the vocabulary, top_p 1, min_p 0); temperature 0 means greedy. The law to follow is the target's, processed in
the order temperature, top-k, top-p, min-p (``reference.warped``). The drafts are drawn here, honestly, from q
processed alike.

The logits are finite, as a model's are: a token that a table forbids gets -1000, of which a softmax makes exactly 0.
They are never tied between possible tokens: which of two tied tokens a truncation keeps is convention, not correctness.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from reference import Claim, Decoder, Draft, Draws, LanguageModel, Pmf, State, Task, Tokens, softmax, warped
from reference.models import draft_model
from specverify.subjects.emitted import emitted_row
from specverify.subjects.subject import Subject, Variant
from specverify.subjects.verifier import (
    Context,
    Verify,
    answered_on_one_thread,
    arrays_of,
    pmf_rows,
    rounds,
    sampled_setting,
)

Setting = tuple[tuple[str, float], ...]
PARAMETERS = ("temperature", "top_k", "top_p", "min_p")
TRUNCATIONS = frozenset(PARAMETERS[1:])
SETTINGS: tuple[Mapping[str, float], ...] = (
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 2},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.8},
    {"temperature": 1.5, "min_p": 0.4},
    {"temperature": 0.0},
)
FORBIDDEN = -1000.0
UNTIED = 0.01


def logits_subject(verify: Verify, name: str, gammas: tuple[int, ...] = (2,)) -> Subject:
    """Return the subject of a verifier of logits: all settings at the largest gamma, the first at the others."""
    most, settings = max(gammas), settings_of(verify)
    pairs = [(gamma, settings[0]) for gamma in gammas if gamma != most] + [(most, setting) for setting in settings]
    sampled = settings[min(2, len(settings) - 1)]
    return Subject(
        name=name,
        summary=(verify.__doc__ or "a verifier of logits").strip().partition("\n")[0],
        claims=frozenset(Claim),
        variants=tuple(
            Variant(
                " ".join([f"gamma={gamma}", *(f"{parameter}={value:g}" for parameter, value in setting)]),
                partial(build, verify, gamma, setting),
                process=partial(processed, setting),
            )
            for gamma, setting in pairs
        ),
        settings=(
            sampled_setting(
                partial(build, verify, most, sampled),
                " ".join([f"V=8 horizon=3 gamma={most}", *(f"{parameter}={value:g}" for parameter, value in sampled)]),
                partial(processed, sampled),
            ),
        ),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
    )


@lru_cache(maxsize=256)
def parameters_of(verify: Verify) -> tuple[str, ...]:
    """Return the sampling parameters that it takes by name; none if its signature cannot be read."""
    try:
        taken = inspect.signature(verify).parameters
    except (TypeError, ValueError):
        return ()
    return tuple(parameter for parameter in PARAMETERS if parameter in taken)


def settings_of(verify: Verify) -> tuple[Setting, ...]:
    """Return the settings it is examined with, reduced to what it takes.

    A setting none of whose truncations it has is left out, unless it has none at all.
    """
    mine = parameters_of(verify)
    kept = [
        tuple((parameter, value) for parameter, value in setting.items() if parameter in mine)
        for setting in SETTINGS
        if not TRUNCATIONS & set(mine) or not TRUNCATIONS & set(setting) or TRUNCATIONS & set(setting) & set(mine)
    ]
    return tuple(dict.fromkeys(kept))


class RawLogits(NamedTuple):
    """The logits of both models; called, it is the drafter before any processing, which is what ``Task`` asks for."""

    target: LanguageModel
    draft: LanguageModel

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return the drafter's pmf at temperature 1."""
        return softmax(self.draft(tokens))


@lru_cache(maxsize=1024)
def processed(setting: Setting, task: Task) -> Task:
    """Return the task with models processed by ``setting``; the raw ones travel as ``raw_draft``."""
    raw = RawLogits(logits_of(task.target), logits_of(draft_model(task)))
    parameters: dict[str, Any] = {name: int(value) if name == "top_k" else value for name, value in setting}
    target, draft = (lru_cache(maxsize=None)(warped(model, **parameters)) for model in raw)
    return task._replace(target=target, draft=draft, raw_draft=raw)


def logits_of(model: LanguageModel) -> LanguageModel:
    """Return finite float64 logits of a table, ties between its possible tokens broken in favour of higher ids."""

    def row(tokens: Tokens) -> Any:
        pmf = np.asarray(model(tokens), dtype=np.float64)
        possible = pmf > 0
        logits = np.full(len(pmf), FORBIDDEN)
        logits[possible] = np.log(pmf[possible]) + UNTIED * np.sqrt(1.0 + np.arange(len(pmf)))[possible]
        return logits

    return lru_cache(maxsize=None)(row)


def build(
    verify: Verify, gamma: int, setting: Setting, task: Task, answered: Context = answered_on_one_thread
) -> Decoder:
    """Return the decoder that drafts gamma tokens from processed q and lets ``verify`` decide on the raw logits.

    ``task`` is a ``processed`` one. ``answered(draws)`` is the context it runs in: its random calls are intercepted
    unless told otherwise.
    """
    raw = task.raw_draft
    assert isinstance(raw, RawLogits)

    def decide(draws: Draws, state: State, draft: Draft) -> Tokens:
        p, _ = pmf_rows(task, state.tokens, draft)
        if not draft.tokens:
            return (draws.categorical(p[0], ("bonus",)),)
        prefixes = [state.tokens + draft.tokens[:i] for i in range(len(p))]
        target, drafter = (np.stack([model(prefix) for prefix in prefixes]) for model in raw)
        with answered(draws):
            given = arrays_of(verify, _attempt)((target, drafter[:-1], np.array(draft.tokens)))
            return emitted_row(verify(*given, **passed(verify, setting, p.shape[1])), len(draft.tokens), p.shape[1])

    return rounds(task, gamma, decide)


def passed(verify: Verify, setting: Setting, vocabulary: int) -> dict[str, float]:
    """Return every sampling parameter it takes: those of the setting, the others at their neutral value."""
    values = {"temperature": 1.0, "top_k": vocabulary, "top_p": 1.0, "min_p": 0.0, **dict(setting)}
    return {parameter: values[parameter] for parameter in parameters_of(verify)}


def _attempt(verify: Verify) -> None:
    given = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]]), np.array([1])
    emitted_row(verify(*given, **passed(verify, (), 2)), drafts=1, vocabulary=2)
