"""What is computed of one element after the other; what may stay undecided stays so.

Comparisons, choices and conversions of one element after the other: answered when somebody looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specverify.intercept import audit
from specverify.intercept.caller import caller
from specverify.intercept.jax.arrays import Truth, elements_of, number, placed
from specverify.intercept.jax.draws import Bits
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.symbolic.comparisons import answered
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.deferred import Count, Deferred, Product, is_open, known
from specverify.intercept.symbolic.elementwise import applied, whole_part
from specverify.intercept.symbolic.given import is_whole
from specverify.intercept.symbolic.joined import SYMBOLIC
from specverify.intercept.symbolic.primitive import Family
from specverify.intercept.symbolic.primitives import OF_JAX, names_of, rules_of
from specverify.intercept.unpatched import broadcast_to, empty
from specverify.laws import rounding

# Elementwise


Handler = Callable[[list[Any], dict[str, Any], Any], Any]
"""``handler(operands, parameters, result)``: the elements of what comes out; ``result`` is its shape and dtype."""

_ALGEBRA = names_of(OF_JAX, Family.ARITHMETIC, Family.CLAMP)
_WHOLE_PARTS = names_of(OF_JAX, Family.WHOLE_PART)
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: rule for name, rule in rules_of(OF_JAX, "outcome").items() if name in _ALGEBRA},
    "not": lambda value: ~value,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""What is said of outcomes, in the dtype they have; what is not here is looked at and computed by JAX."""
_CLAMPED_HALVES = Declined("random numbers of 16 bits are clamped: too many of them equal the bound")
_TINIEST = 1e-30
"""A summand below this changes no uniform number that a generator returns but 0."""


def each(function: Callable[..., Any], operands: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return what a function gives of the elements of operands of one shape, or of none."""
    arrays = [elements_of(operand) for operand in operands]
    columns = [(array if array.shape == shape else broadcast_to(array, shape)).ravel().tolist() for array in arrays]
    outcome = empty(shape, dtype=object)
    flat = outcome.reshape(-1)  # the same elements
    for place, elements in enumerate(zip(*columns, strict=True)):
        flat[place] = function(*elements)
    return outcome


def _summand_is_nothing(name: str, left: Any, right: Any) -> bool:
    return name == "add" and isinstance(left, Continuous) and not left.steps and 0 < abs(right) < _TINIEST


def _algebra(name: str, *elements: Any) -> Any:
    numbers = [number(element) for element in elements]
    if name == "add" and len(numbers) == 2:
        for value, other in (numbers, numbers[::-1]):
            if not isinstance(other, SYMBOLIC) and _summand_is_nothing(name, value, other):
                return value
    return applied(name, *numbers)


def _whole(elements: np.ndarray[Any, Any]) -> Any:
    """Return elements; if the rule of one of them declined, why."""
    return next(filter(is_declined, elements.flat), elements)


def arithmetic(primitive: str) -> Handler:
    """Return the handler of an operation that makes numbers of numbers."""
    name, of_outcomes = _ALGEBRA.get(primitive), _NUMPY.get(primitive)
    no_rule = Declined(f"there is no rule for {primitive} of random numbers")
    clamps = primitive in names_of(OF_JAX, Family.CLAMP)

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        halves = clamps and rounding.is_of_16_bits(result.dtype)

        def one(*elements: Any) -> Any:
            if any(isinstance(element, SYMBOLIC) for element in elements):
                outcome = no_rule if name is None else _algebra(name, *elements)
                if halves and not any(outcome == element for element in elements):
                    outcome = _CLAMPED_HALVES
                if is_declined(outcome):
                    refused = NeedsValue("value-needed", f"the value of a random number is needed for {primitive}")
                    raise refused.because(outcome)
                return outcome
            if any(isinstance(element, Bits) for element in elements):
                return _of_bits(primitive, *elements)
            if of_outcomes is None:
                return Declined(f"there is no rule for {primitive} of outcomes")
            return _of_outcomes(primitive, of_outcomes, result.dtype, elements)

        outcome = each(one, operands, result.shape)
        return _whole(outcome)

    return handler


def _of_bits(primitive: str, *elements: Any) -> Any:
    left, right = (*elements, None)[:2]
    if primitive == "or" and isinstance(left, Bits) and not is_open(right):
        return left.placed_under(int(known(right)))
    if primitive == "and" and isinstance(left, Bits) and not is_open(right):
        return left.masked(int(known(right)))
    return Declined(f"there is no rule for {primitive} of random bits")


def _of_outcomes(primitive: str, function: Callable[..., Any], dtype: Any, elements: tuple[Any, ...]) -> Any:
    if not any(map(is_open, elements)):
        return typed(function, dtype, [known(element) for element in elements])
    if dtype == np.bool_ and primitive in _OF_TRUTHS:
        return _OF_TRUTHS[primitive](*elements)
    if primitive == "mul" and all(map(is_count, elements)):
        return Product(elements)
    if primitive in {"add", "add_any"} and all(map(is_count, elements)):
        return Count(elements)
    return Deferred(lambda: typed(function, dtype, [known(element) for element in elements]))


def typed(function: Callable[..., Any], dtype: Any, numbers: list[Any]) -> Any:
    """Return what a function of NumPy gives of numbers of a dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*(np.asarray(value).astype(dtype) for value in numbers))).astype(dtype).item()


_OF_TRUTHS: dict[str, Callable[..., Any]] = {
    "and": lambda left, right: Product((left, right)),
    "mul": lambda left, right: Product((left, right)),
    "min": lambda left, right: Product((left, right)),
    "or": lambda left, right: Truth(lambda: int(bool(known(left)) or bool(known(right)))),
    "max": lambda left, right: Truth(lambda: int(bool(known(left)) or bool(known(right)))),
    "xor": lambda left, right: Truth(lambda: int(bool(known(left)) != bool(known(right)))),
    "not": lambda value: Truth(lambda: int(not known(value))),
}


def is_count(element: Any) -> bool:
    """Return whether it is known of an outcome that it is a whole number, 0 or more."""
    if isinstance(element, Product):
        return all(map(is_count, element._parts))  # noqa: SLF001 - of the room
    whole = isinstance(element, (bool, int)) and element >= 0
    return whole or isinstance(element, (Truth, Count))


# Other operations of one element, or of several


def _power_of_integer(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    exponent = parameters["y"]
    name = "square" if exponent == 2 else "power"
    more = () if name == "square" else (float(exponent),)
    return each(lambda element: applied(name, number(element), *more), operands, result.shape)


def _clamped(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    if rounding.is_of_16_bits(result.dtype):
        return _CLAMPED_HALVES
    order = [operands[1], operands[0], operands[2]]
    if any(isinstance(element, SYMBOLIC) for each_one in order for element in elements_of(each_one).flat):
        return each(lambda *elements: applied("clip", *map(number, elements)), order, result.shape)
    return Declined("a clamp of numbers that are not random")


def _whole_part(name: str) -> Handler:
    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        def one(element: Any) -> Any:
            if isinstance(element, SYMBOLIC) and name != "sign":
                return whole_part(name, element, caller())
            place = caller()
            return Deferred(lambda: placed(place, lambda: applied(name, number(element))))

        return each(one, operands, result.shape)

    return handler


def _rest(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``rem``: of random bits one of so many numbers, of other random numbers what C calls ``fmod``."""

    def one(left: Any, right: Any) -> Any:
        if isinstance(left, Bits) and not is_open(right):
            return left.rest(int(known(right)))
        if isinstance(left, SYMBOLIC) or isinstance(right, SYMBOLIC):
            return applied("fmod", number(left), number(right))
        return Deferred(lambda: typed(np.fmod, result.dtype, [known(left), known(right)]))

    return each(one, operands, result.shape)


def _shifted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(left: Any, right: Any) -> Any:
        return (
            left.shifted(int(known(right)))
            if isinstance(left, Bits) and not is_open(right)
            else Declined("only random bits are shifted")
        )

    outcome = each(one, operands, result.shape)
    return _whole(outcome)


def _read_as(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(element: Any) -> Any:
        return (
            element.as_float(result.dtype)
            if isinstance(element, Bits)
            else Declined("only random bits are read as a float")
        )

    if tuple(operands[0].shape) != tuple(result.shape):
        return Declined("random bits are read in another shape")
    outcome = each(one, operands, result.shape)
    return _whole(outcome)


def _same_elements(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    return operands[0].elements


_AS_THEY_ARE = ("copy", "copy_p", "device_put", "sharding_constraint", "reduce_precision", "optimization_barrier",
                "stage", "real", "reshard", "layout_constraint")  # fmt: skip
ELEMENTWISE: dict[str, Handler] = {
    **{name: arithmetic(name) for name in dict.fromkeys((*_ALGEBRA, *_NUMPY))},
    **{name: _whole_part(known_as) for name, known_as in _WHOLE_PARTS.items()},
    **dict.fromkeys(_AS_THEY_ARE, _same_elements),
    "integer_pow": _power_of_integer,
    "clamp": _clamped,
    "rem": _rest,
    "shift_right_logical": _shifted,
    "bitcast_convert_type": _read_as,
}


# Choices


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
        if isinstance(left, SYMBOLIC) or isinstance(right, SYMBOLIC):
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
        if isinstance(element, SYMBOLIC):
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
        if any(isinstance(case, SYMBOLIC) for case in cases):
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
    return element if isinstance(element, Continuous) and is_whole(element) else whole_part("trunc", element, caller())


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
        if isinstance(element, SYMBOLIC):
            return _of_unknown(element, to, into_floats=into_floats)
        if not is_open(element):
            return np.asarray(known(element)).astype(from_dtype).astype(to).item()
        if from_dtype == np.bool_ or (is_count(element) and to != np.bool_ and np.dtype(to).itemsize >= 4):
            return element
        if to == np.bool_:
            return Truth(lambda: int(known(element) != 0))
        return Deferred(lambda: np.asarray(known(element)).astype(from_dtype).astype(to).item())

    return each(one, operands, result.shape)


CHOICES: dict[str, Handler] = {
    **{name: compared(name) for name in _RELATIONS},
    "is_finite": _is_finite,
    "select_n": _chosen,
    "convert_element_type": _converted,
}
