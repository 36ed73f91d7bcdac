"""From logits to the pmf that is sampled: temperature, truncation, repetition penalty. Inputs are not changed.

The processed pmf is the target of a lossless decoder, so every convention is stated. ``warped`` applies them in the
order repetition penalty, temperature, top-k, top-p, min-p, each on the renormalised result of the one before. Logits
are 1-D float arrays ``[V]``; the truncations act on pmfs and work on exact rationals too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from array_api_compat import array_namespace

from .pmf import check_pmf, has_numbers, point_on_argmax
from .types import LanguageModel, Pmf, Tokens
from .validation import argument_error, as_tuple, check_callable, check_number, checked_token, is_integer

Logits: TypeAlias = Any
"""A 1-D float array ``[vocabulary]``; an entry of minus infinity forbids the token."""


def softmax(logits: Logits, temperature: float = 1.0) -> Pmf:
    """Return ``softmax(logits / temperature)``; temperature 0 gives the point mass on the first largest logit.

    Raises ``ValueError`` for a negative temperature, a NaN logit, logits that are all minus infinity or no floats.
    """
    check_temperature(temperature)
    check_logits(logits)
    xp = array_namespace(logits)
    try:
        largest = logits.max()
        if not -float("inf") < float(largest) < float("inf"):
            raise ValueError(f"the largest logit is {float(largest)}, expected at least one finite logit and no NaN")
        if temperature == 0:
            return point_on_argmax(logits)
        weights = xp.exp((logits - largest) / float(temperature))
    except TypeError:
        raise ValueError(f"logits hold {logits.dtype}, expected floats") from None
    return weights / weights.sum()


def top_k(pmf: Pmf, k: int) -> Pmf:
    """Return ``pmf`` restricted to the k most probable tokens and all tokens tied with the k-th, renormalised.

    If k is at least the vocabulary size, all tokens are kept. Raises ``ValueError`` for k < 1.
    """
    check_top_k(k)
    pmf = check_pmf(pmf, "the pmf to truncate")
    threshold = sorted(pmf.tolist(), reverse=True)[min(k, pmf.shape[0]) - 1]
    return _kept(pmf, pmf >= threshold)


def top_p(pmf: Pmf, mass: Any) -> Pmf:
    """Return ``pmf`` restricted to the smallest set of most probable tokens with total >= ``mass``, renormalised.

    Among ties lower ids enter first: (1/2, 1/4, 1/4) with mass 1/2 keeps one token (Holtzman et al. 1904.09751). Raises
    ``ValueError`` unless 0 < mass <= 1.
    """
    check_top_p(mass)
    pmf = check_pmf(pmf, "the pmf to truncate")
    values = pmf.tolist()
    kept, total = set(), values[0] * 0
    for token in sorted(range(len(values)), key=lambda token: (-values[token], token)):
        if total >= mass:
            break
        kept.add(token)
        total += values[token]
    xp = array_namespace(pmf)
    mask = xp.asarray([token in kept for token in range(len(values))], device=pmf.device)
    return _kept(pmf, mask)


def min_p(pmf: Pmf, ratio: Any) -> Pmf:
    """Return ``pmf`` restricted to tokens at least ``ratio`` times as probable as the most probable one (2407.01082).

    The result is renormalised. Raises ``ValueError`` unless 0 <= ratio <= 1.
    """
    check_min_p(ratio)
    pmf = check_pmf(pmf, "the pmf to truncate")
    return _kept(pmf, pmf >= pmf.max() * ratio)


def repetition_penalty(logits: Logits, tokens: Tokens, penalty: float) -> Logits:
    """Return the logits with those of ``tokens`` lowered by the factor ``penalty`` (CTRL, 1909.05858).

    Positive logits are divided, negative ones multiplied. ``tokens`` is the whole text before the position; during
    verification it includes the drafts before the position. Raises ``ValueError`` unless penalty > 0.
    """
    check_penalty(penalty)
    check_logits(logits)
    history = {checked_token(token, logits.shape[0]) for token in as_tuple(tokens, "tokens", "a sequence of token ids")}
    xp = array_namespace(logits)
    seen = xp.asarray([token in history for token in range(logits.shape[0])], device=logits.device)
    return xp.where(seen, xp.where(logits > 0, logits / penalty, logits * penalty), logits)


def warped(
    logits_model: Callable[[Tokens], Logits],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
) -> LanguageModel:
    """Return the language model that applies these sampling parameters to the logits ``logits_model(tokens)``.

    The parameters are those of the usual sampling options. ``tokens`` is the whole text before a position, including
    drafts, so processing that depends on it is right under speculation. Raises ``ValueError`` for an invalid parameter,
    before any model is called.
    """
    check_callable(logits_model, "logits_model", "a callable from tokens to logits")
    check_temperature(temperature)
    check_penalty(repetition_penalty)
    for value, check in ((top_k, check_top_k), (top_p, check_top_p), (min_p, check_min_p)):
        if value is not None:
            check(value)

    def pmf(tokens: Tokens) -> Pmf:
        logits = logits_model(tokens)
        if repetition_penalty != 1:
            logits = _penalise(logits, tokens, repetition_penalty)
        result = softmax(logits, temperature)
        if top_k is not None:
            result = _top_k(result, top_k)
        if top_p is not None:
            result = _top_p(result, top_p)
        return result if min_p is None else _min_p(result, min_p)

    return pmf


def check_temperature(temperature: Any) -> None:
    """Raise ``ValueError`` unless ``temperature`` is a finite number >= 0."""
    expected = "a number >= 0 (0 means greedy), and finite"
    check_number(temperature, "temperature", expected, lambda value: 0 <= value < float("inf"))


def check_top_k(k: Any) -> None:
    """Raise ``ValueError`` unless ``k`` is an integer >= 1."""
    if not is_integer(k) or k < 1:
        raise argument_error("top_k", k, "at least 1, an integer (leave it out to keep every token)")


def check_top_p(mass: Any) -> None:
    """Raise ``ValueError`` unless ``mass`` is a number in (0, 1]."""
    check_number(mass, "top_p", "a number in (0, 1]", lambda value: 0 < value <= 1)


def check_min_p(ratio: Any) -> None:
    """Raise ``ValueError`` unless ``ratio`` is a number in [0, 1]."""
    check_number(ratio, "min_p", "a number in [0, 1]", lambda value: 0 <= value <= 1)


def check_penalty(penalty: Any) -> None:
    """Raise ``ValueError`` unless ``penalty`` is a positive number."""
    expected = "a positive number (1 changes nothing)"
    check_number(penalty, "repetition_penalty", expected, lambda value: 0 < value < float("inf"))


def check_logits(logits: Any) -> None:
    """Raise ``ValueError`` unless ``logits`` is a 1-D array of numbers that is not empty."""
    shape = getattr(logits, "shape", None)
    if shape is None or len(shape) != 1 or not shape[0]:
        got = type(logits).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise ValueError(f"logits are {got}, expected a 1-D array [vocabulary]")
    if not has_numbers(logits):
        raise ValueError(f"logits hold {logits.dtype}, expected floats")


def _kept(pmf: Pmf, mask: Any) -> Pmf:
    truncated = pmf * mask
    return truncated / truncated.sum()


_penalise, _top_k, _top_p, _min_p = repetition_penalty, top_k, top_p, min_p
