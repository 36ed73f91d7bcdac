"""Comparisons, choices and conversions of one element after the other: answered when somebody looks."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from specverify.intercept import audit
from specverify.intercept.jax.bits import Bits
from specverify.intercept.jax.elementwise import Handler, each, is_count, whole_part
from specverify.intercept.jax.lazy import Truth, number
from specverify.intercept.refusals import Declined
from specverify.intercept.unknowns.comparisons import answered
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.deferred import Count, Deferred, is_open, known
from specverify.intercept.unknowns.given import is_whole
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.intercept.unknowns.primitive import Family
from specverify.intercept.unknowns.primitives import OF_JAX, names_of
from specverify.laws import rounding

_RELATIONS = names_of(OF_JAX, Family.COMPARISON)


def compared(primitive: str) -> Handler:
    """Return the handler of a comparison: it is answered when it is looked at."""
    name = _RELATIONS[primitive]
    smaller, or_equal = {"less": (0, 0), "less_equal": (0, 1), "greater": (1, 0), "greater_equal": (1, 1)}.get(
        name, (0, 0)
    )

    def compare(place: str, left: Any, right: Any) -> Any:
        if primitive.endswith("_to"):
            left, right = _last_if_nan(left), _last_if_nan(right)
        if not (is_open(left) or is_open(right)):
            return int(answered(name, known(left), known(right)))
        if isinstance(left, UNKNOWN) or isinstance(right, UNKNOWN):
            return Truth(lambda: int(answered(name, number(left), number(right), place=place)))
        small, large = (left, right)[:: -1 if smaller else 1]
        if name not in {"equal", "not_equal"} and isinstance(small, Count) and not is_open(large):
            return Truth(lambda: int(small.below(known(large) + or_equal)))
        return Truth(lambda: int(answered(name, known(left), known(right))))

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        for operand in operands:
            rounding.saw(operand.dtype)
        return each(partial(compare, audit.place()), operands, result.shape)

    return handler


def _last_if_nan(element: Any) -> Any:
    """Return infinity for NaN, which comes last in a total order."""
    return math.inf if isinstance(element, float) and math.isnan(element) else element


def _is_finite(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(element: Any) -> Any:
        if isinstance(element, UNKNOWN):
            return 1
        return Truth(lambda: int(math.isfinite(known(element))))

    return each(one, operands, result.shape)


def _chosen(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``select_n``; which one is looked at where it chooses a random number, else nothing is."""

    def one(which: Any, *cases: Any) -> Any:
        if not is_open(which):
            return cases[int(known(which))]
        if all(case is cases[0] for case in cases) or all(_same(case, cases[0]) for case in cases):
            return cases[0]
        if any(isinstance(case, UNKNOWN) for case in cases):
            return cases[int(known(which))]
        kind = Truth if all(isinstance(case, (Truth, bool)) or case in (0, 1) for case in cases) else Deferred
        return kind(lambda: known(cases[int(known(which))]))

    return each(one, operands, result.shape)


def _same(left: Any, right: Any) -> bool:
    plain = not isinstance(left, Deferred) and not isinstance(right, Deferred)
    return plain and type(left) is type(right) and left == right


def _of_unknown(element: Any, to: Any, *, into_floats: bool) -> Any:
    if into_floats:
        return element
    if to == np.bool_:
        return Truth(lambda: int(answered("not_equal", element, 0.0)))
    return element if isinstance(element, Continuous) and is_whole(element) else whole_part("trunc", element)


def _converted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``convert_element_type``: a random number has no digits to lose; a whole part is drawn."""
    from_dtype, to = operands[0].dtype, result.dtype
    if np.dtype(to).kind not in "biuf" and str(to) != "bfloat16":
        return Declined(f"there is no rule for a conversion to {to}")
    into_floats = np.dtype(to).kind not in "biu"
    rounding.saw(to)

    def one(element: Any) -> Any:
        if isinstance(element, Bits):
            return element.converted(to)
        if isinstance(element, UNKNOWN):
            return _of_unknown(element, to, into_floats=into_floats)
        if not is_open(element):
            return np.asarray(known(element)).astype(from_dtype).astype(to).item()
        if from_dtype == np.bool_ or (is_count(element) and to != np.bool_ and np.dtype(to).itemsize >= 4):
            return element
        if to == np.bool_:
            return Truth(lambda: int(known(element) != 0))
        return Deferred(lambda: np.asarray(known(element)).astype(from_dtype).astype(to).item())

    return each(one, operands, result.shape)


HANDLERS: dict[str, Handler] = {
    **{name: compared(name) for name in _RELATIONS},
    "is_finite": _is_finite,
    "select_n": _chosen,
    "convert_element_type": _converted,
}
