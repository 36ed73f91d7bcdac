"""A verifier of logits: it computes the pmfs itself, with the sampling parameters of the call.

    verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p) -> emitted tokens

``target_logits`` is ``[gamma + 1, vocabulary]`` and ``draft_logits`` ``[gamma, vocabulary]``, float64; ``draft_tokens``
is ``[gamma]``. It may have any of the four parameters. All of them are passed by name, also neutral values (temperature
1, top_k the vocabulary, top_p 1, min_p 0); temperature 0 means greedy. The expected law is the target's, processed in
the order temperature, top-k, top-p, min-p (``reference.warped``). The drafts are drawn here from q, processed in the
same way.

The logits are finite, as a model's are: a token that a table forbids gets -2000, which a softmax maps to exactly 0 at
every temperature here. Possible tokens are never tied, because the choice of a truncation between tied tokens is a
convention and no matter of correctness.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from specverify.base.callables import first_line
from specverify.intercept.everywhere import answered_everywhere
from specverify.reference import Claim, Decoder, Draft, Draws, LanguageModel, State, Task, Tokens, warped
from specverify.reference.models import draft_model
from specverify.subjects.array_kinds import SMALL_DRAFT, SMALL_P, SMALL_Q, BareVerifier, arrays_of
from specverify.subjects.checked_calls import Convert, called
from specverify.subjects.deep import deep_of
from specverify.subjects.emitted import drawn_row, emitted_row
from specverify.subjects.remembered_calls import answer_of
from specverify.subjects.subject import Context, Subject, Variant
from specverify.subjects.verifier import (
    pmf_rows,
    rounds,
    setting_of_decoder,
    variant_of,
)
from specverify.subjects.warped_tasks import Processed, bare

Setting = tuple[tuple[str, float], ...]
PARAMETERS = ("temperature", "top_k", "top_p", "min_p")
TRUNCATIONS = frozenset(PARAMETERS[1:])
SETTINGS: tuple[Mapping[str, float], ...] = (
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 2},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.8},
    {"temperature": 1.5, "min_p": 0.4},
    {"temperature": 0.0},
    {"temperature": 0.7, "top_k": 1},
)
FORBIDDEN = -2000.0
UNTIED = 0.01


def logits_subject(verify: BareVerifier, name: str, gammas: tuple[int, ...] | None = None) -> Subject:
    """Return the subject of a verifier of logits: all settings at the largest gamma, the first setting at the others.

    With more drafts (``deep``) its law is examined in the setting with most truncations, and in the first setting.
    """
    chosen, settings = gammas or (2,), settings_of(verify)
    most = max(chosen)
    pairs = [(gamma, settings[0]) for gamma in chosen if gamma != most] + [(most, setting) for setting in settings]
    sampled = settings[min(2, len(settings) - 1)]
    return Subject(
        name=name,
        summary=first_line(verify, "a verifier of logits"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        kind="logits",
        deep=deep_of(
            partial(variant_at, verify, setting=sampled),
            gammas,
            plain=partial(variant_at, verify, setting=settings[0]),
        ),
        situations=(
            *tuple(variant_at(verify, gamma, setting) for gamma, setting in pairs),
            setting_of_decoder(
                partial(build, verify, most, sampled),
                " ".join([f"gamma={most}", *(f"{parameter}={value:g}" for parameter, value in sampled)]),
                most,
                partial(processed, sampled),
            ),
        ),
    )


def variant_at(verify: BareVerifier, gamma: int, setting: Setting) -> Variant:
    """Return the variant of a verifier of logits at one gamma and one setting of its sampling parameters."""
    return variant_of(
        " ".join([f"gamma={gamma}", *(f"{parameter}={value:g}" for parameter, value in setting)]),
        partial(build, verify, gamma, setting),
        process=partial(processed, setting),
    )


@lru_cache(maxsize=256)
def parameters_of(verify: BareVerifier) -> tuple[str, ...]:
    """Return the sampling parameters that a verifier takes by name; () if its signature cannot be read."""
    try:
        taken = inspect.signature(verify).parameters
    except (TypeError, ValueError):
        return ()
    return tuple(parameter for parameter in PARAMETERS if parameter in taken)


def settings_of(verify: BareVerifier) -> tuple[Setting, ...]:
    """Return the settings of sampling parameters to examine, with only the parameters that the verifier takes.

    A setting that uses none of the verifier's truncations is skipped, unless the verifier has no truncation.
    """
    mine = parameters_of(verify)
    kept = [
        tuple((parameter, value) for parameter, value in setting.items() if parameter in mine)
        for setting in SETTINGS
        if not TRUNCATIONS & set(mine) or not TRUNCATIONS & set(setting) or TRUNCATIONS & set(setting) & set(mine)
    ]
    return tuple(dict.fromkeys(kept))


@lru_cache(maxsize=1024)
def processed(setting: Setting, task: Task) -> Task:
    """Return the task with the sampling parameters of ``setting`` applied to both models.

    The returned models are of type ``Processed``, from which the unprocessed logits can be read.
    """
    parameters: dict[str, Any] = {name: int(value) if name == "top_k" else value for name, value in setting}

    def under_setting(model: LanguageModel) -> Processed:
        logits = logits_of(model)
        return Processed(logits, lru_cache(maxsize=None)(warped(logits, **parameters)))

    return task._replace(target=under_setting(task.target), draft=under_setting(draft_model(task)))


def logits_of(model: LanguageModel) -> LanguageModel:
    """Return the model of finite logits of a table of pmfs; ties of possible tokens are broken in favour of higher ids.

    The dtype is float64, or float32 if the table is float32.
    """

    def row(tokens: Tokens) -> Any:
        return untied_logits(np.asarray(model(tokens)))

    return lru_cache(maxsize=None)(row)


def untied_logits(pmfs: Any) -> Any:
    """Return finite logits of pmfs ``[..., vocabulary]``, with ties broken in favour of higher ids."""
    wide, possible = pmfs.astype(np.float64), pmfs > 0
    apart = UNTIED * np.sqrt(1.0 + np.arange(pmfs.shape[-1]))
    logits = np.where(possible, np.log(np.where(possible, wide, 1.0)) + apart, FORBIDDEN)
    return logits.astype(np.float32) if pmfs.dtype == np.float32 else logits


def with_true_zeros(task: Task) -> Task:
    """Return a ``processed`` task whose target has the logit -inf, not -2000, for a token of probability 0.

    Another task is returned unchanged. A logit of -2000 is a probability that only underflows: a verifier that compares
    logarithms distinguishes it from 0.
    """
    target = task.target
    if not isinstance(target, Processed):
        return task

    def masked(tokens: Tokens) -> Any:
        row = bare(target)(tokens)
        return np.where(row <= FORBIDDEN, -np.inf, row)

    return task._replace(target=target._replace(bare=masked))


def build(
    verify: BareVerifier, gamma: int, setting: Setting, task: Task, answered: Context = answered_everywhere
) -> Decoder:
    """Return the decoder that drafts gamma tokens from the processed q and decides them by ``verify`` on the logits.

    ``task`` is a ``processed`` one. ``answered(draws)`` is the context of the call; by default it intercepts random
    calls.
    """

    def decide(draws: Draws, state: State, draft: Draft) -> Any:
        p, _ = pmf_rows(task, state.tokens, draft)
        if not draft.tokens:
            return drawn_row(draws, p[0])
        given, convert = _given(*logits_rows(task, state.tokens, draft), draft.tokens), arrays_of(verify, _attempt)
        told = passed(verify, setting, p.shape[1])
        invoke, read = partial(verify, **told), partial(emitted_row, drafts=len(p) - 1)
        call = partial(called, convert, given, invoke, read, told)
        return answer_of(draws, answered, verify, given, call, setting)

    return rounds(task, gamma, decide)


def logits_rows(task: Task, prefix: Tokens, draft: Draft) -> tuple[Any, Any]:
    """Return the logits after the prefix and each draft, of the target and of the draft model.

    They are ``[drafts + 1, vocabulary]`` and ``[drafts, vocabulary]``. ``task`` is a ``processed`` one.
    """
    prefixes = [prefix + draft.tokens[:i] for i in range(len(draft.tokens) + 1)]
    target, drafter = (np.stack([bare(model)(at) for at in prefixes]) for model in (task.target, task.draft))
    return target, drafter[:-1]


def passed(verify: BareVerifier, setting: Setting, vocabulary: int) -> dict[str, float]:
    """Return all sampling parameters that ``verify`` takes: those of ``setting``, the others at their neutral value."""
    values = {"temperature": 1.0, "top_k": vocabulary, "top_p": 1.0, "min_p": 0.0, **dict(setting)}
    return {parameter: values[parameter] for parameter in parameters_of(verify)}


def _given(target: Any, drafter: Any, drafts: Tokens) -> dict[str, Any]:
    return {"target_logits": target, "draft_logits": drafter, "draft_tokens": np.array(drafts)}


def _attempt(verify: BareVerifier, convert: Convert) -> Any:
    given = _given(np.log(SMALL_P), np.log(SMALL_Q), (SMALL_DRAFT,))
    return emitted_row(verify(*convert(given), **passed(verify, (), SMALL_P.shape[1])), drafts=1)
