"""Probability vectors: their validation, and the operations that all algorithms share."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Complex, Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from .types import LanguageModel, Pmf, Tokens
from .validation import check_callable, check_integer, checked_token, shown

_TOLERANCE = {2: 1e-1, 4: 1e-4, 8: 1e-9}
"""Bytes per entry -> largest deviation of a pmf's sum from 1, a generous multiple of the rounding of one softmax."""
_ZERO, _ONE = Fraction(0), Fraction(1)
_EXACT = frozenset((Fraction, int))
_SHORT = 128
"""Number of entries up to which a Python loop over a float row is faster than NumPy."""


def as_pmf(values: Any) -> Pmf:
    """Return ``values`` as an array; an array is returned unchanged.

    A list or a tuple becomes a float64 array if an element is a float or an array scalar, and all are real numbers or
    such scalars. Otherwise it becomes an object array of ``Fraction``, integers or symbolic numbers.
    """
    if isinstance(values, (list, tuple)):
        rounded = any(isinstance(value, float) or hasattr(value, "dtype") for value in values)
        real = rounded and all(isinstance(value, Real) or hasattr(value, "dtype") for value in values)
        return np.array(values, dtype=np.float64 if real else object)
    return values


def as_row(values: Any, what: str) -> Pmf:
    """Return ``values`` as a 1-D array of numbers that is not empty; ``what`` is its name in the message.

    The numbers may be symbolic: such an entry supports subtraction and multiplication. Raises ``ValueError`` for
    anything else. Values are not tested.
    """
    row = _as_vector(values, what)
    if not has_numbers(row):
        raise ValueError(f"{what} is {shown(row.tolist())}, expected real numbers")
    return row


def _as_vector(values: Any, what: str) -> Pmf:
    """Return ``values`` as a 1-D array that is not empty, of any entries; ``what`` is its name in the message."""
    row = as_pmf(values)
    shape = getattr(row, "shape", None)
    if shape is None or len(shape) != 1 or not shape[0]:
        got = type(row).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise ValueError(f"{what} is {got}, expected a 1-D array of numbers [vocabulary]")
    return row


def has_numbers(row: Any) -> bool:
    """Return whether the entries of the array ``row`` are real, or else can be subtracted and multiplied."""
    kind = getattr(row.dtype, "kind", None)
    if kind is None:
        return not getattr(row.dtype, "is_complex", False)  # a tensor of torch
    if kind != "O" or type(row) is not np.ndarray:
        return kind in "OfiubV"  # V has the bfloat16 of JAX; a subclass of object arrays answers for its entries
    values = row.tolist()
    return _EXACT.issuperset(map(type, values)) or all(
        issubclass(entry, Real)
        or (hasattr(entry, "__sub__") and hasattr(entry, "__mul__") and not issubclass(entry, Complex))
        for entry in set(map(type, values))
    )


def check_pmf(pmf: Pmf, what: str) -> Pmf:
    """Return ``pmf`` as an array if it is a probability vector; ``what`` is its name in the message.

    Raises ``ValueError`` if it is empty, not 1-D, has an entry that is NaN, negative or no number, or does not sum to 1
    (exactly for rationals, within rounding for floats). Symbolic entries are not tested.
    """
    if is_plainly_pmf(pmf):
        return pmf
    pmf = as_row(pmf, what)
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
    kind = pmf.dtype.kind
    if kind == "O":
        return _is_exact_pmf(pmf.tolist())
    if kind not in "fiub" or pmf.shape[0] > _SHORT:
        return False
    values = pmf.tolist()
    return bool(abs(sum(values) - 1) <= _TOLERANCE.get(pmf.dtype.itemsize, 1e-9) and min(values) >= 0)


def _is_exact_pmf(values: list[Any]) -> bool:
    """Return whether ``values`` are rationals >= 0 that sum to 1.

    The function computes with integers only, because it runs for every draw.
    """
    if not _EXACT.issuperset(map(type, values)):
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
    """Raise ``ValueError`` unless p and q are 1-D arrays of one library and one length, at least 1.

    Entries are not validated.
    """
    shape = getattr(p, "shape", None)
    if type(p) is type(q) and shape is not None and len(shape) == 1 and shape[0] and shape == q.shape:
        return
    for name, pmf in (("p", p), ("q", q)):
        result = getattr(pmf, "shape", None)
        if result is None or len(result) != 1 or not result[0]:
            got = type(pmf).__name__ if result is None else f"an array of shape {tuple(result)}"
            raise ValueError(f"{name} is {got}, expected a 1-D array of probabilities [vocabulary]")
    check_same_library(p=p, q=q)
    if p.shape[0] != q.shape[0]:
        raise ValueError(
            f"target and draft vocabularies differ: p has {p.shape[0]} tokens, q has {q.shape[0]}; expected one size"
        )


def check_same_library(**arrays: Any) -> None:
    """Raise ``ValueError`` for the first of ``arrays`` that is of another array library than the first one.

    A value that is of no known library is left to other checks.
    """
    (leader, like), *others = arrays.items()
    for name, values in others:
        if type(values) is type(like):
            continue
        own, expected = _library(values), _library(like)
        if own is not expected and None not in (own, expected):
            raise ValueError(
                f"{name} is {_class_of(values)}, expected an array of the library of {leader}, {_class_of(like)}"
            )


def _library(values: Any) -> Any:
    """Return the array namespace of ``values``; None if it is no array of a known library."""
    try:
        return array_namespace(values)
    except TypeError:
        return None


def _class_of(values: Any) -> str:
    return f"{type(values).__module__}.{type(values).__qualname__}"


def check_pmfs(p: Pmf, q: Pmf) -> None:
    """Raise ``ValueError`` unless p and q are pmfs of one length. Symbolic entries are not tested."""
    check_same_vocabulary(p, q)
    check_pmf(p, "p")
    check_pmf(q, "q")


def checked_model(model: LanguageModel, what: str) -> LanguageModel:
    """Return ``model`` with every returned pmf validated; ``what`` names the model in the message.

    A read-only array that ``model`` returns again is validated once. Raises ``ValueError`` if ``model`` is no callable.
    """
    check_callable(model, what)
    checked: dict[int, Pmf] = {}

    def answer(tokens: Tokens) -> Pmf:
        pmf = model(tokens)
        if id(pmf) in checked:
            return pmf
        if not is_plainly_pmf(pmf):
            return check_pmf(pmf, f"the {what} pmf after {tokens}")
        if not pmf.flags.writeable:
            checked[id(pmf)] = pmf
        return pmf

    return answer


def one_hot(token: int, like: Pmf) -> Pmf:
    """Return the point mass on ``token``, in the array type of ``like``. Raises ``ValueError`` out of range."""
    like = _as_vector(like, "the row of the vocabulary")
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
    pmf = as_row(pmf, "the row of argmax")
    result = (pmf == pmf.max()).nonzero()[0]
    if not len(result):
        raise ValueError("the argmax of an array with NaN was asked for, expected numbers")
    return int(result[0])


def point_on_argmax(pmf: Pmf) -> Pmf:
    """Return the point mass on the most probable token: ``pmf`` (or logits) at temperature 0."""
    pmf = as_pmf(pmf)
    return one_hot(argmax(pmf), pmf)


def top_tokens(pmf: Pmf, count: int) -> Tokens:
    """Return the ``count`` most probable tokens of ``pmf`` with positive probability; ties go to lower ids.

    ``torch.topk`` would add tokens of probability 0 if fewer are positive.
    """
    check_integer(count, "the number of tokens", least=0)
    values = as_row(pmf, "the row of top_tokens").tolist()
    ranked = sorted(range(len(values)), key=lambda token: (-values[token], token))
    return tuple(token for token in ranked[:count] if values[token] > 0)
