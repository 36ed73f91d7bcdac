"""Logits and sampling parameters of a verifier that computes the pmfs itself.

    verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p) -> emitted tokens

``target_logits`` is ``[gamma + 1, vocabulary]`` and ``draft_logits`` ``[gamma, vocabulary]``, float64; ``draft_tokens``
is ``[gamma]``. A verifier may take any of the four sampling parameters. All that it takes are passed by name, also
neutral values (temperature 1, top_k the vocabulary, top_p 1, min_p 0); temperature 0 means greedy. A verifier of
batches may take arrays ``[B]``, with one parameter for each row, also under the names of ``PLURALS`` (``batch_call``).
The expected law is the target's, processed in the order temperature, top-k, top-p, min-p (``reference.warped``). The
drafts are drawn here from q, processed in the same way.

The logits are finite, as a model's are: a token that a table forbids gets -2000, which a softmax maps to exactly 0 at
every temperature here. Possible tokens are never tied, because the choice of a truncation between tied tokens is a
convention and no matter of correctness.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from specverify.reference import Draft, LanguageModel, Task, Tokens, warped
from specverify.reference.models import draft_model
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.warped_tasks import Processed, bare

Setting = tuple[tuple[str, float], ...]
PARAMETERS = ("temperature", "top_k", "top_p", "min_p")
PLURALS: Mapping[str, str] = {f"{parameter}s": parameter for parameter in PARAMETERS}
"""Sampling parameter by the name of an array that has one for each row of a batch."""
NAMED: Mapping[str, str] = {**{parameter: parameter for parameter in PARAMETERS}, **PLURALS}
"""Sampling parameter by each name under which it may be passed."""
GREEDY: Setting = (("temperature", 0.0),)
TRUNCATIONS = frozenset(PARAMETERS[1:])
SETTINGS: tuple[Mapping[str, float], ...] = (
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 2},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.8},
    {"temperature": 1.5, "min_p": 0.4},
    {"temperature": 0.0},
    {"temperature": 0.7, "top_k": 1},
)
COMBINED: tuple[Mapping[str, float], ...] = (
    {"temperature": 1.0, "top_p": 0.9},
    {"temperature": 1.0, "top_k": 6, "min_p": 0.6},
    {"temperature": 1.0, "top_k": 3, "min_p": 0.2},
    {"temperature": 0.7, "top_p": 0.9, "min_p": 0.4},
    {"temperature": 0.7, "top_p": 0.6, "min_p": 0.2},
    {"temperature": 0.7, "top_k": 5, "top_p": 0.8},
    {"temperature": 0.7, "top_k": 4, "min_p": 0.55},
    {"temperature": 0.1},
    {"temperature": 2.0},
    {"temperature": 1.0, "top_k": 5},
    {"temperature": 0.7, "top_k": 7},
    {"temperature": 1.0, "top_p": 0.97},
    {"temperature": 1.0, "top_p": 0.3},
    {"temperature": 1.0, "min_p": 0.15},
)
"""Further settings, each for one scenario. With ``SETTINGS`` there is each truncation alone and every two of them, of
which the first or the second removes more tokens, truncations at temperature 1, and values so small or large that code
may take them for none, for greedy decoding, or for the nearest value that it allows."""
FORBIDDEN = -2000.0
UNTIED = 0.01


@lru_cache(maxsize=256)
def names_of_parameters(verify: BareVerifier) -> Mapping[str, str]:
    """Return the sampling parameters that ``verify`` takes by name, as a map from its names to those of ``PARAMETERS``.

    It is empty if the signature cannot be read.
    """
    try:
        taken = inspect.signature(verify).parameters
    except (TypeError, ValueError):
        return {}
    return {name: parameter for name, parameter in NAMED.items() if name in taken}


def parameters_of(verify: BareVerifier) -> tuple[str, ...]:
    """Return the sampling parameters that ``verify`` takes, in the order of ``PARAMETERS``."""
    taken = {*names_of_parameters(verify).values()}
    return tuple(parameter for parameter in PARAMETERS if parameter in taken)


def settings_of(verify: BareVerifier) -> tuple[Setting, ...]:
    """Return the combinations of sampling parameters with which ``verify`` is examined.

    Each has only parameters that the verifier takes. A combination without a truncation (top-k, top-p or min-p) is
    skipped if another one with the same temperature has a truncation.
    """
    mine = parameters_of(verify)
    kept = dict.fromkeys(
        tuple((parameter, value) for parameter, value in setting.items() if parameter in mine) for setting in SETTINGS
    )

    def is_needed(setting: Setting) -> bool:
        truncated = [other for other in kept if other[:1] == setting[:1] and TRUNCATIONS & set(dict(other))]
        return bool(TRUNCATIONS & set(dict(setting))) or not truncated

    return tuple(filter(is_needed, kept))


def combined_of(verify: BareVerifier) -> tuple[Setting, ...]:
    """Return those settings of several sampling parameters in ``COMBINED`` that ``verify`` supports.

    An example is top-k 3 with min-p 0.2. A setting is supported if the verifier takes all of its parameters. The
    temperature does not count: it is left out if the verifier does not take it.
    """
    mine = parameters_of(verify)
    return tuple(
        tuple((parameter, value) for parameter, value in setting.items() if parameter in mine)
        for setting in COMBINED
        if TRUNCATIONS & set(setting) <= set(mine)
    )


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
    """Return ``model``, a table of pmfs, as a model of finite logits.

    Ties of possible tokens are broken in favour of higher ids. The dtype is float64, or float32 if the table is
    float32.
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
    """Return ``task`` with target logits of -inf instead of -2000 for tokens of probability 0.

    This applies to a task returned by ``processed``, whose models have logits; any other task is returned unchanged. A
    verifier that compares logarithms treats -2000 as a positive probability.
    """
    target = task.target
    if not isinstance(target, Processed):
        return task

    def masked(tokens: Tokens) -> Any:
        row = bare(target)(tokens)
        return np.where(row <= FORBIDDEN, -np.inf, row)

    return task._replace(target=target._replace(bare=masked))


def logits_rows(task: Task, prefix: Tokens, draft: Draft) -> tuple[Any, Any]:
    """Return the logits of target and draft model along a chain of drafts, before sampling parameters are applied.

    ``task`` is a task returned by ``processed``. Row i follows the text ``prefix`` and the first i tokens of ``draft``.
    The shapes are ``[drafts + 1, vocabulary]`` and ``[drafts, vocabulary]``, because only the target has a row after
    all drafts.
    """
    prefixes = [prefix + draft.tokens[:i] for i in range(len(draft.tokens) + 1)]
    target, drafter = (np.stack([bare(model)(at) for at in prefixes]) for model in (task.target, task.draft))
    return target, drafter[:-1]


def passed(verify: BareVerifier, setting: Setting, vocabulary: int) -> dict[str, float]:
    """Return all sampling parameters that ``verify`` takes: those of ``setting``, the others at their neutral value.

    They have the names that ``verify`` gives them. The neutral top-k is ``vocabulary``, the number of tokens.
    """
    values = {"temperature": 1.0, "top_k": vocabulary, "top_p": 1.0, "min_p": 0.0, **dict(setting)}
    return {name: values[parameter] for name, parameter in names_of_parameters(verify).items()}
