"""Symbolic random numbers as Python numbers, ``SymbolicFloat`` and ``SymbolicInt``; and the final outcome of a run.

The methods of the numbers apply the rules of ``primitives``. An operation without a rule needs the value, and is
refused with the name of the operation and the line of the foreign code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from specverify.intercept.caller import caller
from specverify.intercept.cpython import patches
from specverify.intercept.refusals import Declined, NeedsValue
from specverify.intercept.run import mode
from specverify.intercept.symbolic.algebra import within
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, Symbolic, force_integer, is_whole
from specverify.intercept.symbolic.deferred import Categorical, is_open, known
from specverify.intercept.symbolic.primitives import (
    COMPARISONS,
    ELEMENTWISE,
    OF_PYTHON,
    Family,
    applied,
    result,
    with_rule,
)
from specverify.intercept.symbolic.steps import FLOOR
from specverify.intercept.symbolic.uniform import refusal
from specverify.laws import rounding
from specverify.laws.paths import Undecided


class SymbolicFloat:
    """The Python number that foreign code gets in place of a random float: it can be compared and computed with.

    It has no value, so an operation that needs one is refused.
    """

    __slots__ = ("limits", "unknown")

    def __init__(self, unknown: Symbolic, limits: tuple[int, int] | None = None) -> None:
        """Wrap ``unknown``, a symbolic number, so that foreign code can use it as a Python number.

        ``limits`` are the least and the largest integer of its type; None for a float and for Python's integers.
        """
        self.unknown, self.limits = unknown, limits

    __int__: Callable[[], int]
    __class__: Any = property(lambda self: float)
    """Returns ``float``, so that ``isinstance`` checks in user code pass."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return ``NotImplemented`` for a call of torch that gets a symbolic number.

        The torch mode of the open interception block then handles the call, with a tensor in place of the number.
        """
        return Declined("the block takes the number for a tensor").for_python

    def __bool__(self) -> bool:
        return bool(of_operands("not_equal", self, 0.0))

    def __float__(self) -> float:
        patches.met()
        hint = "call float as float(u), a type of NumPy as np.float32(u), and math functions as math.log(u)"
        raise refusal("value-needed", f"__float__ needs the value of a random number, which has none: {hint}")

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return whole_part("rint", self)
        return of_operands("divide", of_operands("rint", of_operands("multiply", self, 10.0**digits)), 10.0**digits)

    def is_integer(self) -> Any:
        """Return whether the number is an integer; if the number may or may not be one, this is drawn at random."""
        return of_operands("equal", self, of_operands(FLOOR.name, self))

    def conjugate(self) -> Any:
        """Return the number itself, as for a float."""
        return self

    item = __copy__ = conjugate

    def __deepcopy__(self, memo: Any) -> Any:
        """Return the number itself, as for a float."""
        return self

    def __repr__(self) -> str:
        return f"SymbolicFloat({self.unknown})"


class SymbolicInt(SymbolicFloat):
    """A symbolic integer with very many values, such as a seed; code that reads it gets a plain integer."""

    __slots__ = ()
    __class__: Any = property(lambda self: int)

    def __index__(self) -> int:
        return self.__int__()

    def __hash__(self) -> int:
        return hash(self.__int__())

    @property
    def numerator(self) -> int:
        """Return the numerator: the integer itself."""
        return self.__int__()

    @property
    def denominator(self) -> int:
        """Return 1."""
        return 1

    def bit_length(self) -> int:
        """Return the bit length of the integer; it gets a plain value now."""
        return self.__int__().bit_length()

    def __str__(self) -> str:
        return str(self.__int__())

    def __format__(self, shape: str) -> str:
        return format(self.__int__(), shape)

    def to_bytes(self, *args: Any, **kwargs: Any) -> bytes:
        """Return the bytes of the integer; it gets a plain value now."""
        return self.__int__().to_bytes(*args, **kwargs)


def whole_part(name: str, value: SymbolicFloat) -> int:
    """Return the integer part of ``value``, a random number, as an ``int``; ``name`` is floor, ceil, trunc or rint.

    If few values are possible, an outcome is drawn, so the enumeration follows each value. If very many are possible,
    as for a seed, the result is an arbitrary one of them, another one in every run. Between these limits
    ``NeedsValue`` is raised.
    """
    outcome = with_foreign_line(applied, name, value.unknown)
    if isinstance(outcome, Continuous):
        return force_integer(outcome)
    if isinstance(outcome, SYMBOLIC):
        raise refusal(
            "rest-needed", "the whole part of what several random numbers make has more values than are followed"
        )
    return int(outcome)


def settled(seed: Any) -> Any:
    """Return ``seed`` with plain integers in place of symbolic ones, also inside lists and tuples.

    A generator needs plain integers as a seed.
    """
    if type(seed) in {list, tuple}:
        return type(seed)(map(settled, seed))
    return seed.__int__() if isinstance(seed, SymbolicInt) else seed


def wrapped(value: Any) -> Any:
    """Return a symbolic number as a ``SymbolicFloat`` or ``SymbolicInt``; any other ``value`` unchanged."""
    if isinstance(value, Continuous) and is_whole(value):
        return SymbolicInt(value)
    return SymbolicFloat(value) if isinstance(value, SYMBOLIC) else value


def opened(value: Any) -> Any:
    """Return the symbolic number inside a ``SymbolicFloat``, the wrapper for foreign code; other values unchanged."""
    return value.unknown if isinstance(value, SymbolicFloat) else value


def of_operands(name: str, *operands: Any) -> Any:
    """Return the result of the operation or comparison ``name`` of the operands.

    Symbolic numbers among the operands are ``SymbolicFloat``, and so is a symbolic result. A concrete result of
    arithmetic on integers is an ``int``.
    """
    outcome = wrapped(with_foreign_line(result, name, *map(opened, operands)))
    if name not in _KEEP_WHOLE:
        return outcome
    if isinstance(outcome, SymbolicFloat):
        _limit(outcome, operands)
        return outcome
    whole = isinstance(outcome, float) and all(isinstance(each, Integral) for each in operands)
    return int(outcome) if whole else outcome


def _limit(outcome: SymbolicFloat, operands: Sequence[Any]) -> None:
    """Give ``outcome`` the limits of the integer type of ``operands``, if all are integers and one has limits.

    Raises ``NeedsValue`` for an outcome that may lie outside of the limits, because the library wraps such a number
    around.
    """
    limits = next((each.limits for each in operands if isinstance(each, SymbolicFloat) and each.limits), None)
    if limits is None or not all(isinstance(each, Integral) or getattr(each, "limits", None) for each in operands):
        return
    outcome.limits = limits
    with_foreign_line(within, outcome.unknown, *limits)


_KEEP_WHOLE = {row.name for row in with_rule(ELEMENTWISE, "outcome").values() if row.family is Family.ARITHMETIC}
"""Operations whose result on ints is an int."""


def with_foreign_line(question: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``question(*args, **kwargs)``; a refusal that it raises gets the line of the foreign code."""
    try:
        return question(*args, **kwargs)
    except NeedsValue as refused:
        raise refused.at(caller()) from None


def meets(*operands: Any) -> None:
    """Record that a symbolic number is combined with ``operands``, which matters if one of them is a 16-bit float.

    NumPy may then round the symbolic number to the 16-bit dtype, so half a spacing of the dtype is added to the
    rounding bound of the run.
    """
    for dtype in (getattr(operand, "dtype", None) for operand in operands):
        rounding.saw(dtype)
        if rounding.is_of_16_bits(dtype):
            rounding.known_within(rounding.spacing(dtype) / 2)


def _operation(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    """Return the method of ``SymbolicFloat`` for the operation ``name``, on one or two operands.

    ``swapped`` states that the symbolic number is the right operand. As with a float, a Decimal can be compared with
    the symbolic number, but not combined with it.
    """
    known = SymbolicFloat | Real | Decimal if name in COMPARISONS else SymbolicFloat | Real

    def method(self: SymbolicFloat, *others: Any) -> Any:
        if not all(isinstance(other, known) for other in others):
            return Declined("no rule for an operand that is no number").for_python
        meets(*others)
        try:
            return of_operands(name, *((*others, self) if swapped else (self, *others)))
        except NeedsValue as refused:
            raise refused.during(f"{name} of floats", caller()) from None

    return method


def _both(swapped: bool) -> Callable[..., Any]:
    def method(self: SymbolicFloat, other: Any) -> Any:
        pair = (other, self) if swapped else (self, other)
        return of_operands("floor_divide", *pair), of_operands("remainder", *pair)

    return method


def _of_bits(name: str) -> Callable[..., Any]:
    """Return the method of ``SymbolicInt`` for the bitwise operation ``name``.

    The method reads the integer first.
    """

    def method(self: SymbolicInt, other: Any) -> Any:
        return getattr(self.__int__(), name)(int(other))

    return method


def _shifted_right(self: SymbolicInt, bits: int) -> Any:
    return of_operands("floor_divide", self, 2**bits)


def refusing(name: str, way_out: str = "compare the number itself") -> Callable[..., Any]:
    """Return a method that refuses the operation ``name``, because it needs the value of a symbolic number.

    ``way_out`` ends the message.
    """

    def method(self: Any, *args: Any) -> Any:
        raise refusal("value-needed", f"{name} needs the value of a random number, which has none: {way_out}")

    return method


def _whole(name: str) -> Callable[..., Any]:
    def method(self: SymbolicFloat) -> int:
        return whole_part(name, self)

    return method


for _method, _row in OF_PYTHON.items():
    of_row = _whole if _row.family is Family.WHOLE_PART else _operation
    setattr(SymbolicFloat, f"__{_method}__", of_row(_row.name))
    if _row.family is Family.ARITHMETIC and _method not in {"neg", "pos", "abs"}:
        setattr(SymbolicFloat, f"__r{_method}__", _operation(_row.name, swapped=True))
for _method, _swapped in (("divmod", False), ("rdivmod", True)):
    setattr(SymbolicFloat, f"__{_method}__", _both(_swapped))
for _method in ("__str__", "__format__"):
    setattr(
        SymbolicFloat, _method, refusing(_method, "leave out, while it is examined, what prints the number or logs it")
    )
for _method in ("__hash__", "__complex__", "__reduce_ex__", "as_integer_ratio", "hex"):
    setattr(SymbolicFloat, _method, refusing(_method))
_BITS = {f"__{name}__": _of_bits(f"__{name}__") for name in ("and", "or", "xor", "lshift", "rand", "ror", "rxor")}
for _method, _function in (_BITS | {"__rshift__": _shifted_right}).items():
    setattr(SymbolicInt, _method, _function)


# What a run ends with


def final_outcome(elements: Sequence[Any]) -> Any:
    """Return the outcome of a run: a tuple of the values of ``elements``.

    Elements that the program never read need no draw if they are outcomes of independent draws: the result is then
    ``Undecided``, with every possible tuple and its probability. Otherwise the unread elements are drawn now. They are
    also drawn in a run that repeats recorded random numbers.
    """
    elements = [opened(element) for element in elements]
    open_ones = [element for element in elements if is_open(element)]
    sources = {id(getattr(element, "draw", None) and (element.draw.origin or element.draw)) for element in open_ones}
    independent = all(isinstance(element, Categorical) and element.alone for element in open_ones)
    coupled = mode().coupled
    if coupled is not None and independent and len(sources) == len(open_ones):
        for element in open_ones:
            coupled.open_end(element, _outcomes(element))
    if not open_ones or not independent or len(sources) < len(open_ones) or coupled is not None:
        return tuple(known(element) for element in elements)
    result: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
    for element in elements:
        choices = _outcomes(element) if is_open(element) else [(known(element), 1.0)]
        result = [((*values, value), weight * mass) for values, weight in result for value, mass in choices]
    return Undecided(tuple(result))


def _outcomes(element: Categorical) -> list[tuple[int, float]]:
    """Return every value of the unread draw ``element`` with its probability.

    Also record the number of values, from which the rounding bound of the law is computed.
    """
    result = element.outcomes()
    rounding.drew(len(result))
    return result
