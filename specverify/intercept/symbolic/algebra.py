"""Arithmetic of symbolic random numbers: the scalar rules in the table of ``primitives``.

Operands are numbers and symbolic numbers, with at least one symbolic. The result is a symbolic number, or a number if
it does not depend on chance. Events of probability 0 are ignored: a symbolic number is neither infinite nor NaN. A
function of one number that is not monotone raises ``NeedsValue``; a function of several random numbers becomes a
``Joined`` number. The integer part of a number, as by ``floor``, is drawn if it has few values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from specverify.intercept.cpython.patches import ceil, copysign, floor, inf, isfinite, isinf, isnan, log
from specverify.intercept.refusals import Declined, NeedsValue, tried
from specverify.intercept.symbolic.continuous import (
    EVEN,
    MOST_OUTCOMES,
    SYMBOLIC,
    Continuous,
    Extreme,
    Joined,
    Symbolic,
    any_symbolic,
    drawn,
    few,
    joined,
    largest_of,
)
from specverify.intercept.symbolic.large import continuous_in_16_bits
from specverify.intercept.symbolic.steps import EXP, FLOOR, LOG, RARELY, MonotoneStep, plus, power, rounded, times
from specverify.intercept.symbolic.together import ADD, MAXIMUM, MULTIPLY
from specverify.intercept.symbolic.uniform import Uniform
from specverify.laws import rounding
from specverify.reference import Sampled

# Arithmetic


Operand: TypeAlias = Continuous | Extreme | Joined | float


def _of_number(function: Callable[[float], Any], value: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(value))


# Sums and products


def apart(left: Operand, right: Operand, what: str) -> tuple[Symbolic, float]:
    """Return the pair (symbolic operand, plain number) of ``left`` and ``right``, in whichever order they are given.

    Raises ``NeedsValue`` for two symbolic operands; ``what`` describes the operation in the message.
    """
    value, number = (left, right) if isinstance(left, SYMBOLIC) else (right, left)
    if isinstance(number, SYMBOLIC) or not isinstance(value, SYMBOLIC):
        raise NeedsValue("order-of-joined", f"random numbers are {what}")
    return value, number


def of_two(name: str, left: Symbolic, right: Symbolic) -> Operand:
    """Return the sum, product or maximum of two symbolic numbers, ``left`` and ``right``.

    ``name`` is ``add``, ``multiply`` or ``maximum``. A number minus itself is 0. A number with few integer values is
    drawn before it is added or multiplied.
    """
    if name == ADD and right == left.then(times(-1.0)):
        return 0.0
    if name == ADD and left == right:
        return left.then(times(2.0))
    if name in _OF_ONE and (few(left) or few(right)):
        return _OF_ONE[name](drawn(left), right if few(left) else drawn(right))
    return joined(name, left, right)


def _sign(value: Symbolic, what: str) -> float:
    """Return 1 if ``value``, a symbolic number, cannot be negative, and -1 if it cannot be positive.

    Raises ``NeedsValue`` for a number that can have both signs. ``what`` is the beginning of the message of the
    refusal.
    """
    low, high = value.ends()
    if low < 0 < high:
        raise NeedsValue("unknown-sign", f"{what} a random number of unknown sign")
    return 1.0 if low >= 0 else -1.0


def _is_never(number: float, value: Symbolic, what: str) -> Symbolic:
    """Return ``value`` unchanged if it cannot equal ``number``; otherwise raise ``NeedsValue``.

    A number may equal its bound with positive probability after a clamp. For example, a divisor must never be 0,
    because the sign of the zero decides the result. ``what`` begins the message of the refusal.
    """
    if value.may_be(number):
        raise NeedsValue("unknown-sign", f"{what} a random number that may be {number:g}")
    return value


def added(left: Operand, right: Operand) -> Operand:
    """Return ``left + right``."""
    if isinstance(left, SYMBOLIC) and isinstance(right, SYMBOLIC):
        return of_two(ADD, left, right)
    value, number = apart(left, right, "added or subtracted")
    return value.then(plus(number)) if isfinite(number) else number


def negative(value: Operand) -> Operand:
    """Return ``-value``."""
    return value.then(times(-1.0)) if isinstance(value, SYMBOLIC) else -value


def multiplied(left: Operand, right: Operand) -> Operand:
    """Return ``left * right``."""
    if isinstance(left, SYMBOLIC) and left == right:
        return square(left)
    if isinstance(left, SYMBOLIC) and isinstance(right, SYMBOLIC):
        return of_two(MULTIPLY, left, right)
    value, number = apart(left, right, "multiplied")
    if 0 < abs(number) < inf:
        return value.then(times(number))
    what = f"{number} is multiplied by"
    return number if isnan(number) else number * _sign(_is_never(0.0, value, what), what)


def divided(left: Operand, right: Operand) -> Operand:
    """Return ``left / right``."""
    if isinstance(right, SYMBOLIC):
        if isinstance(right, Joined) and right == Joined(ADD, right.operands) and left in right.operands:
            rest = right.operands[right.operands[0] == left]
            return divided(1.0, added(divided(rest, left), 1.0))  # in which each number stands once
        sign = _sign(_is_never(0.0, right, "a number is divided by"), "a number is divided by")
        upside_down = right.then(times(sign)).then(power(-1.0)).then(times(sign))
        return multiplied(upside_down, left)
    if right == 0 and isinstance(left, SYMBOLIC):
        return copysign(inf, right) * _sign(_is_never(0.0, left, "0 divides"), "0 divides")
    return multiplied(left, 1.0 / right)


_OF_ONE: dict[str, Callable[[Operand, Operand], Operand]] = {ADD: added, MULTIPLY: multiplied}
"""Operation -> rule for one symbolic number and one that is concrete or already drawn."""


# Powers and logarithms


def raised(base: Operand, exponent: Operand) -> Operand:
    """Return ``base ** exponent``."""
    if isinstance(base, SYMBOLIC):
        if isinstance(exponent, SYMBOLIC):
            return exponential(multiplied(exponent, logarithm(_is_never(0.0, base, "a random power is taken of"))))
        if isinf(exponent):
            return _to_infinity(base, exponent)
        if exponent == 0 or isnan(exponent):
            return 1.0 if exponent == 0 else exponent
        if exponent < 0:
            _is_never(0.0, base, "a negative power is taken of")
        if base.ends()[1] <= 0 and exponent % 1 == 0:
            turned = base.then(times(-1.0)).then(power(exponent))
            return turned if exponent % 2 == 0 else negative(turned)
        return _nonnegative(base, "a power is taken of").then(power(exponent))
    if not 0 < base < inf:
        raise NeedsValue("unknown-sign", f"{base} is raised to a random power")
    return exponential(multiplied(exponent, log(base)))


def _to_infinity(base: Symbolic, exponent: float) -> float:
    low, high = _is_never(1.0, base, "an infinite power is taken of").ends()
    if not (low >= 0 and high <= 1) and not low >= 1:
        raise NeedsValue(
            "unknown-sign", "a random number that may be below 1 or above it is raised to an infinite power"
        )
    return inf if (exponent > 0) == (low >= 1) else 0.0


def _nonnegative(value: Symbolic, what: str) -> Symbolic:
    """Return ``value``, a symbolic number that is never negative; raise ``NeedsValue`` for another one.

    A number that is negative with a probability of at most ``RARELY``, such as ``-log(u + 1e-7)``, counts as 0
    there. The program gets a NaN instead; what it makes of it is seen where the uniform is set to its end.
    """
    if value.ends()[0] < 0:
        chance = value.chance_below(0.0) if isinstance(value, Continuous) else 1.0
        if chance <= RARELY:
            rounding.known_within(chance)
            return value.at_least(0.0)
        raise NeedsValue("unknown-sign", f"{what} a random number of unknown sign, or below 0")
    return value


def square(value: Symbolic) -> Operand:
    """Return ``value ** 2``. Raises ``NeedsValue`` for a number that can have both signs."""
    return value.then(times(_sign(value, "a square is taken of"))).then(power(2.0))


def logarithm(value: Operand) -> Operand:
    """Return ``log(value)``."""
    if isinstance(value, SYMBOLIC):
        return _nonnegative(value, "a logarithm is taken of").then(LOG)
    return _of_number(np.log, value)


def exponential(value: Operand) -> Operand:
    """Return ``exp(value)``."""
    return value.then(EXP) if isinstance(value, SYMBOLIC) else _of_number(np.exp, value)


# Algebra


MOST_UNEVEN = 64
"""Limit of integer parts that are enumerated if they are not equally likely, as for the logarithm of a clamped uniform.
"""


def _of_any(rule: Callable[..., Any], of_numbers: Callable[..., Any], *operands: Any) -> Operand:
    """Return ``rule(*operands)`` if an operand is symbolic, else ``of_numbers(*operands)``, a function of NumPy."""
    if any_symbolic(operands):
        return cast("Operand", rule(*operands))
    with np.errstate(all="ignore"):
        return float(of_numbers(*map(np.float64, operands)))


def subtracted(left: Operand, right: Operand) -> Operand:
    """Return ``left - right``."""
    return added(left, negative(right))


_SHORT = {"float16": 11, "bfloat16": 8}
"""Dtype -> bits of its significand, for dtypes with so few bits that the law shows it."""


def narrowed(value: Any, dtype: str) -> Any:
    """Return ``value`` converted to ``dtype``, the name of a dtype, if it is symbolic; any other value unchanged.

    A 16-bit float dtype rounds the number, unless 16-bit numbers are treated as continuous. Other dtypes leave the
    number unchanged. Raises ``NeedsValue`` for 8-bit float dtypes, and a number that may lie outside of an integer
    dtype.
    """
    if "int" in dtype and isinstance(value, SYMBOLIC):
        return within(value, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if dtype.startswith("float8"):
        raise NeedsValue(
            "few-bits", f"a random number is converted to {dtype}, which has too few numbers: compare it as it is"
        )
    bits = None if continuous_in_16_bits() else _SHORT.get(dtype)
    return value if bits is None or not isinstance(value, SYMBOLIC) else value.then(rounded(bits))


RARE = 1e-9
"""An overflow that is less likely than this is ignored, such as that of a seed plus 1."""


def within(value: Symbolic, least: int, largest: int) -> Symbolic:
    """Return ``value``, a random integer. Raises ``NeedsValue`` if it may leave ``[least, largest]``.

    An overflow is ignored if at most the share ``RARE`` of the interval of the values lies outside.
    """
    low, high = value.ends()
    if max(least - low, 0) + max(high - 1 - largest, 0) > RARE * (high - low):
        raise NeedsValue("out-of-range", f"a random integer leaves the range of its type ({least} to {largest})")
    return value


def check_not_equal(dtype: str) -> None:
    """Raise ``NeedsValue`` for noise vectors of a 16-bit ``dtype``, in which ties are likely.

    The rules for vectors assume that there are no ties. 16-bit vectors are allowed if 16-bit numbers are treated as
    continuous: see ``continuous_in_16_bits``.
    """
    if dtype in _SHORT and not continuous_in_16_bits():
        raise NeedsValue(
            "few-bits", f"very many random numbers of {dtype} are often equal: draw them in float32, and keep them so"
        )


# Clamps and whole parts


def maximum(left: Operand, right: Operand) -> Operand:
    """Return the larger of ``left`` and ``right``, plain or symbolic numbers.

    If the known intervals determine which operand is larger, this operand is returned. Otherwise the result is a new
    symbolic number.
    """
    if isinstance(left, SYMBOLIC) and isinstance(right, SYMBOLIC):
        if any(isinstance(each, Joined) or (isinstance(each, Extreme) and not each.largest) for each in (left, right)):
            return of_two(MAXIMUM, left, right)
        return largest_of((left, right))
    value, number = apart(left, right, "compared with each other")
    low, high = value.ends()
    if not low < number < high:
        return value if number <= low else number
    return value.at_least(number)


def size(value: Symbolic) -> Operand:
    """Return ``abs(value)``: the number or its negative if the sign is known, else the larger of both."""
    low, high = value.ends()
    return value if low >= 0 else negative(value) if high <= 0 else maximum(value, negative(value))


def minimum(left: Operand, right: Operand) -> Operand:
    """Return the smaller of ``left`` and ``right``, plain or symbolic numbers; see ``maximum``."""
    return negative(maximum(negative(left), negative(right)))


def clip(value: Operand, low: float, high: float) -> Operand:
    """Return ``value`` limited to ``[low, high]``."""
    raised = _of_any(maximum, np.maximum, value, low)
    return float("nan") if isnan(low) else _of_any(minimum, np.minimum, raised, high)


def whole_parts_are_few(value: Symbolic) -> bool:
    """Return whether the integer part of ``value`` has so few possible values that it should be drawn.

    If the values are not equally likely, fewer values are allowed, because each value costs one run.
    """
    low, high = value.ends()
    uneven = isinstance(value, Continuous) and not {step.name for step in value.steps} <= EVEN
    return high - low <= (MOST_UNEVEN if uneven else MOST_OUTCOMES)


def floored(value: Symbolic) -> Operand:
    """Return the floor of ``value``: drawn if it has few possible values, else a symbolic integer."""
    low, high = value.ends()
    if not whole_parts_are_few(value):
        return value.then(FLOOR)
    first, last = floor(low), max(floor(low), ceil(high) - 1)
    if high == floor(high) and value.below(high) is False:  # a clamp that is reached
        return float(high)
    return float(first + value.interval_of([float(bound) for bound in range(first + 1, last + 1)]))


def truncated(value: Symbolic) -> Operand:
    """Return ``value`` rounded towards 0: drawn if it has few possible values, else a symbolic integer."""
    low, _ = value.ends()
    if low >= 0 or not value.below(0.0):
        return floored(value)
    return negative(_of_any(floored, np.floor, negative(value)))


def rounded_to_whole(value: Symbolic) -> Operand:
    """Return the integer nearest to ``value``, drawn if it has few possible values; -0.0 for a number just below 0.

    Raises ``NeedsValue`` for a combination of several numbers, and a number that may lie halfway between two integers
    with positive probability.
    """
    if isinstance(value, Joined):
        raise NeedsValue("rest-needed", "a random number that is made of several is rounded to the nearest whole one")
    for part in value.parts if isinstance(value, Extreme) else (value,):
        ends = (part.low, part.high) if isinstance(part, Continuous) and part.clamped else ()
        stepped = isinstance(part, Continuous) and part.in_steps
        if stepped or any(end % 1 == 1 / 2 for end in (ends if isinstance(part, Continuous) else (part,))):
            raise NeedsValue("rest-needed", "a random number that may be half of a whole one is rounded")
    result = _of_any(floored, np.floor, added(value, 0.5))
    return -0.0 if result == 0 and value.ends()[0] < 0 and value.below(0.0) else result


def sign_of(value: Symbolic) -> float:
    """Return the sign of ``value``, a symbolic number: -1, 0 or 1; drawn at random unless it is known."""
    if value.equals(0.0):
        return 0.0
    return -1.0 if value.below(0.0) else 1.0


def has_sign(value: Symbolic, place: str = "") -> bool:
    """Return whether ``value``, a symbolic number, is negative (signbit); drawn at random unless its sign is known.

    ``place`` is the line of the program that calls the function.
    """
    return _is_never(0.0, value, "the sign is taken of").below(0.0, place)


def with_sign(of: Operand, sign: Operand) -> Operand:
    """Return ``of`` with the sign of ``sign`` (copysign). If ``sign`` is symbolic, its sign is drawn at random."""
    below = has_sign(sign) if isinstance(sign, SYMBOLIC) else copysign(1.0, sign) < 0
    result = _of_any(size, np.absolute, of)
    return negative(result) if below else result


def floor_divided(left: Operand, right: Operand) -> Operand:
    """Return ``floor(left / right)``."""
    return _of_any(floored, np.floor, divided(left, right))


def _rest(whole: Operand, left: Operand, right: Operand) -> Operand:
    """Return ``left - whole * right``: the remainder of the division ``left / right``, whose quotient is ``whole``."""
    if isinstance(whole, SYMBOLIC) or isinstance(right, SYMBOLIC):
        raise NeedsValue("rest-needed", "the rest of a division of random numbers is needed")
    return _of_any(subtracted, np.subtract, left, whole * right)


def heaviside(value: Operand, at_zero: Operand) -> Operand:
    """Return 1 if ``value`` is above 0, 0 if below, ``at_zero`` at 0; for a symbolic ``value`` this is drawn."""
    if not isinstance(value, SYMBOLIC):
        return at_zero if value == 0 else float(value > 0)
    sign = sign_of(value)
    return at_zero if sign == 0 else float(sign > 0)


def remainder(left: Operand, right: Operand) -> Operand:
    """Return the remainder of ``left / right`` with the sign of ``right``, as Python's ``%``."""
    return _rest(floor_divided(left, right), left, right)


def fmod(left: Operand, right: Operand) -> Operand:
    """Return the remainder of ``left / right`` with the sign of ``left``, as C's ``fmod``."""
    return _rest(_of_any(truncated, np.trunc, divided(left, right)), left, right)


def ceiled(value: Symbolic) -> Operand:
    """Return the smallest integer that is at least ``value``: drawn if it has few possible values, else symbolic."""
    return negative(_of_any(floored, np.floor, negative(value)))


def by_rule(name: str, value: Symbolic) -> Operand:
    """Return the image of ``value``, a symbolic number, under the monotone function ``name`` of ``steps.RULES``."""
    return value.then(MonotoneStep(name))


def scaled(value: Operand, exponent: Operand) -> Operand:
    """Return ``value * 2 ** exponent``."""
    return _of_any(multiplied, np.multiply, value, _of_any(raised, np.power, 2.0, exponent))


def log_of_sum(left: Operand, right: Operand) -> Operand:
    """Return ``log(exp(left) + exp(right))``; if one operand is negligible, the other.

    To avoid overflow, the larger upper bound of the operands is first subtracted from both. An operand without an upper
    bound does not count for this; if the subtracted bound is then far from 0, ``NeedsValue`` is raised.
    """
    ends = [each.ends() if isinstance(each, SYMBOLIC) else (each, each) for each in (left, right)]
    shift = max((high for _, high in ends if isfinite(high)), default=0.0)
    for (_, high), operand, other in zip(ends, (left, right), (right, left), strict=True):
        if isfinite(high) and high - shift < -_NEGLIGIBLE:
            return other
        if isinf(high) and isinstance(operand, SYMBOLIC) and abs(shift) > _NEGLIGIBLE:
            raise NeedsValue("out-of-range", f"a random number without an upper end is added to exp({shift:g})")
    total = added(*(exponential(_of_any(added, np.add, each, -shift)) for each in (left, right)))
    return _of_any(added, np.add, logarithm(total), shift)


_NEGLIGIBLE = 100.0
"""A summand that is smaller by a factor exp(-100) changes no float of a sum."""


# Remembered


_OTHER_OPERANDS = Declined("not one fresh number, alone or with a number that has a value")
FRESH = Uniform(Sampled(0), ("any",))
"""An unconstrained uniform that is never forced."""


def found_before(operation: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Return ``operation(*operands)`` from a cache, because the runs of an enumeration repeat the same operations.

    The operands are one symbolic number, or one and a plain number. ``operation`` must not draw. Returns ``Declined``
    for other operands, for a symbolic number that was compared before, and if interception does not support the
    operation; the caller then computes without the cache.
    """
    if len(operands) > 2:
        return _OTHER_OPERANDS
    place = 0 if isinstance(operands[0], Continuous) or len(operands) == 1 else 1
    value, number = operands[place], operands[1 - place] if len(operands) > 1 else None
    if not isinstance(value, Continuous) or value.uniform.cut or isinstance(number, SYMBOLIC):
        return _OTHER_OPERANDS
    negative = number == 0 and copysign(1.0, number) < 0  # 0 and -0 are one to who remembers, and two to who divides
    result = _found(operation, place, value.steps, value.low, value.high, number, negative=negative)
    return Continuous(value.uniform, *result) if isinstance(result, tuple) else result


@lru_cache(maxsize=1 << 16)
def _found(
    operation: Callable[..., Any],
    place: int,
    steps: tuple[MonotoneStep, ...],
    low: float,
    high: float,
    number: float | None,
    *,
    negative: bool,
) -> Any:
    """Apply ``operation`` to a symbolic number and perhaps a plain number; cached, because programs repeat operations.

    The symbolic number is a uniform to which ``steps`` (monotone functions) were applied and whose value is then
    limited to ``[low, high]``. It is the operand with index ``place``, 0 or 1. The other operand is ``number``, or None
    if there is none; ``negative`` distinguishes -0.0 from 0.0, which are equal as keys of the cache.

    Returns (steps, low, high) of a symbolic result, or the plain number of any other. Returns ``Declined`` with the
    reason if interception does not support the operation; the caller (``found_before``) then computes without the
    cache.
    """
    value = Continuous(FRESH, steps, low, high)
    try:
        with tried():
            result = operation(*((value,) if number is None else (value, number) if place == 0 else (number, value)))
    except NeedsValue as refused:
        return Declined(refused.reason)
    return tuple(result[1:]) if isinstance(result, Continuous) else result
