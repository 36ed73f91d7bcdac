"""Probability vectors: their validation, and the operations that all algorithms share."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from .types import LanguageModel, Pmf, Tokens
from .validation import check_integer, checked_token

_TOLERANCE = {2: 1e-1, 4: 1e-4, 8: 1e-9}
"""Bytes per entry -> largest deviation of a pmf's sum from 1, a generous multiple of the rounding of one softmax."""
_ZERO, _ONE = Fraction(0), Fraction(1)
_SHORT = 128
"""Number of entries up to which a Python loop over a float row is faster than NumPy."""


def as_pmf(values: Any) -> Pmf:
    """Return ``values`` as an array; an array is returned unchanged.

    A list or a tuple becomes a float64 array if an element is a float or an array scalar. Otherwise it becomes an
    object array of ``Fraction``, integers or symbolic numbers.
    """
    if isinstance(values, (list, tuple)):
        rounded = any(isinstance(value, float) or hasattr(value, "dtype") for value in values)
        return np.array(values, dtype=np.float64 if rounded else object)
    return values


def check_pmf(pmf: Pmf, what: str) -> Pmf:
    """Return ``pmf`` as an array if it is a probability vector; ``what`` is its name in the message.

    Raises ``ValueError`` if it is empty, not 1-D, has a NaN or negative entry, or does not sum to 1 (exactly for
    rationals, within rounding for floats). Symbolic entries are not tested.
    """
    pmf = as_pmf(pmf)
    if is_plainly_pmf(pmf):
        return pmf
    if getattr(pmf, "ndim", None) != 1 or pmf.shape[0] == 0:
        shape = getattr(pmf, "shape", type(pmf).__name__)
        raise ValueError(f"{what} must be a 1-D array of probabilities [vocabulary], but got {shape}")
    if pmf.dtype == object:
        if not all(isinstance(value, Real) for value in pmf):
            return pmf  # symbolic entries: their owner states the constraints
        exact = all(isinstance(value, (Fraction, int)) for value in pmf)
        total, negative, tolerance = sum(pmf.tolist()), min(pmf.tolist()) < 0, 0.0 if exact else 1e-9
    else:
        total, negative = float(pmf.sum()), bool((pmf < 0).any())
        tolerance = _TOLERANCE.get(pmf.dtype.itemsize, 1e-9)
    if math.isnan(total):
        raise ValueError(f"{what} contains NaN, expected finite probabilities")
    if negative:
        raise ValueError(f"{what} has a negative entry ({min(pmf.tolist())}), expected probabilities >= 0")
    if abs(total - 1) > tolerance:
        raise ValueError(f"{what} sums to {total}, expected 1")
    return pmf


def is_plainly_pmf(pmf: Any) -> bool:
    """Return whether ``pmf`` is certainly a pmf: a row of rationals, or a short row of floats, >= 0 with sum 1.

    If the result is False, ``check_pmf`` decides.
    """
    if type(pmf) is not np.ndarray or pmf.ndim != 1 or not pmf.shape[0]:
        return False
    if pmf.dtype == object:
        return _is_exact_pmf(pmf.tolist())
    if pmf.shape[0] > _SHORT:
        return False
    values = pmf.tolist()
    return bool(abs(sum(values) - 1) <= _TOLERANCE.get(pmf.dtype.itemsize, 1e-9) and min(values) >= 0)


def _is_exact_pmf(values: list[Any]) -> bool:
    """Return whether ``values`` are rationals >= 0 that sum to 1.

    The function computes with integers only, because it runs for every draw.
    """
    if not {Fraction, int}.issuperset(map(type, values)):
        return False
    total, common = 0, 1
    for value in values:
        numerator, denominator = value.as_integer_ratio()
        if numerator < 0:
            return False
        if common % denominator:
            total, common = total * denominator, common * denominator
        total += numerator * (common // denominator)
    return bool(total == common)


def check_same_vocabulary(p: Pmf, q: Pmf) -> None:
    """Raise ``ValueError`` unless p and q are 1-D arrays of one length, at least 1. Entries are not validated."""
    shape = getattr(p, "shape", None)
    if shape is not None and len(shape) == 1 and shape[0] and shape == getattr(q, "shape", None):
        return
    for name, pmf in (("p", p), ("q", q)):
        result = getattr(pmf, "shape", None)
        if result is None or len(result) != 1 or not result[0]:
            got = type(pmf).__name__ if result is None else f"an array of shape {tuple(result)}"
            raise ValueError(f"{name} is {got}, expected a 1-D array of probabilities [vocabulary]")
    raise ValueError(
        f"target and draft vocabularies differ: p has {p.shape[0]} tokens, q has {q.shape[0]}; expected one size"
    )


def check_pmfs(p: Pmf, q: Pmf) -> None:
    """Raise ``ValueError`` unless p and q are pmfs of one length. Symbolic entries are not tested."""
    check_same_vocabulary(p, q)
    check_pmf(p, "p")
    check_pmf(q, "q")


def checked_model(model: LanguageModel, what: str) -> LanguageModel:
    """Return ``model`` with every returned pmf validated; ``what`` names the model in the message.

    A read-only array that ``model`` returns again is validated once.
    """
    checked: dict[int, Pmf] = {}

    def answer(tokens: Tokens) -> Pmf:
        pmf = model(tokens)
        if checked.get(id(pmf)) is pmf:
            return pmf
        if not is_plainly_pmf(pmf):
            return check_pmf(pmf, f"the {what} pmf after {tokens}")
        if not pmf.flags.writeable:
            checked[id(pmf)] = pmf
        return pmf

    return answer


def one_hot(token: int, like: Pmf) -> Pmf:
    """Return the point mass on ``token``, in the array type of ``like``. Raises ``ValueError`` out of range."""
    size = like.shape[0]
    token = checked_token(token, size)
    if like.dtype == object:
        return np.array([_ONE if index == token else _ZERO for index in range(size)], dtype=object)
    xp = array_namespace(like)
    return xp.astype(xp.arange(size, device=like.device) == token, like.dtype)


def uniform(size: int, like: Pmf | None = None) -> Pmf:
    """Return the uniform pmf ``[size]`` in the array type, dtype and device of ``like``; in fractions for None."""
    if like is None or like.dtype == object:
        return np.array([_share(size)] * size, dtype=object)
    return array_namespace(like).full((size,), 1 / size, dtype=like.dtype, device=device(like))


@lru_cache(maxsize=64)
def _share(size: int) -> Fraction:
    """Return 1/size as a ``Fraction``: the same object each time, which makes comparisons of lists of it fast."""
    return Fraction(1, size)


def argmax(pmf: Pmf) -> int:
    """Return the most probable token; ties go to the lowest id, on every backend.

    ``pmf`` may also be logits ``[vocabulary]``. Raises ``ValueError`` if it is not 1-D, empty or has a NaN.
    """
    if len(pmf.shape) != 1 or not pmf.shape[0]:
        raise ValueError(f"the argmax of an array of shape {tuple(pmf.shape)} was asked for, expected [vocabulary]")
    result = (pmf == pmf.max()).nonzero()[0]
    if not len(result):
        raise ValueError("the argmax of an array with NaN was asked for, expected numbers")
    return int(result[0])


def point_on_argmax(pmf: Pmf) -> Pmf:
    """Return the point mass on the most probable token: ``pmf`` (or logits) at temperature 0."""
    return one_hot(argmax(pmf), pmf)


def top_tokens(pmf: Pmf, count: int) -> Tokens:
    """Return the ``count`` most probable tokens of ``pmf`` with positive probability; ties go to lower ids.

    ``torch.topk`` would add tokens of probability 0 if fewer are positive.
    """
    check_integer(count, "the number of tokens", least=0)
    values = pmf.tolist()
    ranked = sorted(range(len(values)), key=lambda token: (-values[token], token))
    return tuple(token for token in ranked[:count] if values[token] > 0)
