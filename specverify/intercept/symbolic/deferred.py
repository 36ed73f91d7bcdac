"""Symbolic outcomes: discrete random values that are drawn when the program reads them.

A ``Deferred`` outcome that is never read does not branch the enumeration.

``OutcomeNumber`` stands for an ``int`` in foreign code. Each of its operations and conversions reads the outcome and
then applies to the integer. A number that is only passed on, such as a last token that is appended to a list and
returned, is never read: one run then stands for all outcomes of its draw.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from specverify.intercept.audit import Draw
from specverify.intercept.cpython.patches import count_nonzero, empty
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import mode
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, force_integer, is_whole
from specverify.intercept.symbolic.uniform import look, look_up, race_again
from specverify.reference import Draws, Site

Law = list[tuple[Any, float]]
"""Pairs (value, probability); a value may occur several times."""


class Deferred:
    """A symbolic outcome: a random value, such as a token, that is drawn once, when the program reads it."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        """Store ``compute``, which may draw; it is called at most once."""
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def value(self) -> Any:
        """Return the value of the outcome; the first call computes it, and may draw."""
        if self._compute is not None:
            self._value, self._compute = self._compute(), None
        return self._value

    @property
    def decided(self) -> bool:
        """Return whether the program has read the outcome, so that it has a value."""
        return self._compute is None

    def law(self) -> Law | None:
        """Return None: the law of the outcome is not known.

        Subclasses for outcomes of one draw override this method, and return every value with its probability.
        """
        return None


class Truth(Deferred):
    """A symbolic outcome with the value 0 or 1."""


class ByOneDraw(Deferred):
    """A symbolic outcome that is a function of one draw, such as the winner of a race; so its law is known."""

    def __init__(self, compute: Callable[[], Any], law: Callable[[], Law | None]) -> None:
        """Store ``compute``, which draws the value, and ``law``, which returns the law of the value without drawing.

        ``law()`` returns None if values of other outcomes depend on the same draw.
        """
        self._law = law
        super().__init__(compute)

    def law(self) -> Law | None:
        """Return every value with its probability, or None if values of other outcomes depend on the same draw.

        Raises the errors that reading the outcome would raise.
        """
        return self._law()


class Choice(Deferred):
    """The element of a sequence at a symbolic index; which element it is, is drawn when the outcome is read."""

    def __init__(self, which: Any, cases: Sequence[Any]) -> None:
        """Select the element of ``cases`` at the symbolic index ``which``; reading it draws the index first."""
        self.which, self.cases = which, tuple(cases)
        super().__init__(lambda: known(self.chosen()))

    def chosen(self) -> Any:
        """Return the selected element. The index is drawn; the element itself may still be symbolic."""
        return self.cases[int(known(self.which))]


class Categorical(Deferred):
    """The symbolic outcome of a categorical draw; if the program never reads it, one run stands for all its values."""

    def __init__(self, draws: Draws, pmf: Any, site: Site, first: int = 0, draw: Draw | None = None) -> None:
        """Store a draw from ``pmf``; ``draws`` chooses its outcome when the program reads it.

        Index j stands for the value ``first + j``. ``site`` names the decision. ``draw`` records the generator state;
        None if it is not known.
        """
        self.pmf, self.first, self.draw = pmf, first, draw or Draw(site)
        coupled = mode().coupled
        item = coupled.take_outcome(self.draw) if coupled is not None else None

        def ask() -> int:
            if coupled is not None:
                return int(coupled.outcome(pmf, item, self.draw.name))
            if not self.draw.looks_up:
                return draws.categorical(pmf, site)
            return (race_again if self.draw.races else look_up)(draws, pmf, site, self.draw)

        drawn = self.draw.shared(lambda: Deferred(ask))

        def compute() -> Any:
            if count_nonzero(pmf) != 1:  # for an outcome that is certain a library may not move its generator on
                look(self.draw)
            if coupled is not None:
                coupled.agree(drawn.value(), pmf, item, self.draw.name)
            return first + drawn.value()

        super().__init__(compute)

    @property
    def alone(self) -> bool:
        """Return whether ``pmf`` is still the law of this outcome.

        False after the program has read another draw from the same generator state. This outcome then equals the
        outcome of that draw; if the two draws use different numbers of the generator, reading it raises ``NeedsValue``.
        """
        return self.draw.origin is None or not self.draw.origin.looked_at

    def law(self) -> Law | None:
        """Return every value with its probability; None if another outcome that was read determines this outcome.

        This is so if the program has read another draw from the same generator state.
        """
        return self.outcomes() if self.alone else None

    def outcomes(self) -> Law:
        """Return every value with its probability in ``pmf``, the law before any draw.

        If another draw from the same generator state was read, that outcome determines this one (see ``alone``); this
        function does not consider it.
        """
        return [(self.first + j, mass) for j, mass in enumerate(self.pmf.tolist()) if mass > 0]


class Chosen(Deferred):
    """A symbolic outcome that is a function of one categorical draw, such as the drawn token plus 1."""

    def __init__(self, source: Categorical, values: Mapping[int, Any]) -> None:
        """Store the draw ``source``, and ``values``, which maps each outcome of the draw to the number."""
        self.source, self.values = source, values
        super().__init__(lambda: values[source.value()])

    @property
    def decided(self) -> bool:
        """Return whether the draw has been read, so that the number is known."""
        return self.source.decided


class Count(Deferred):
    """A sum of outcomes that are non-negative integers.

    A comparison draws terms from the left, and only until its result is determined.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        """Sum ``parts``, which are counts: see ``is_count``."""
        self.parts = tuple(parts)
        super().__init__(lambda: sum(known(part) for part in self.parts))

    def below(self, bound: float) -> bool:
        """Return whether the sum is below ``bound``; once a partial sum reaches the bound, no more terms are drawn."""
        total = 0
        for part in self.parts:
            total += known(part)
            if total >= bound:
                return False
        return total < bound


class Product(Deferred):
    """A product of outcomes. Its factors are drawn in order when it is read; factors after a zero are not drawn."""

    def __init__(self, parts: Iterable[Any]) -> None:
        """Multiply ``parts``, numbers or symbolic outcomes."""
        self.parts = tuple(parts)
        super().__init__(self._multiply)

    def _multiply(self) -> Any:
        product = 1
        for part in self.parts:
            product = product * known(part)
            if product == 0:
                break
        return product


def single(element: Any) -> np.ndarray[Any, Any]:
    """Return a 0-dimensional object array with ``element``, which NumPy would otherwise try to convert."""
    result = empty((), dtype=object)
    result[()] = element
    return result


def chosen(element: Any) -> Any:
    """Return ``element``; if it is a ``Choice``, draw its index and return the element at this index.

    A ``Choice`` is the element of a sequence at a symbolic index.
    """
    while isinstance(element, Choice):
        element = element.chosen()
    return element


_TRUTHS: dict[type, Callable[[Any], bool]] = {
    Truth: lambda element: True,
    Product: lambda element: all(map(is_truth, element.parts)),
    Choice: lambda element: all(map(is_truth, element.cases)),
}
_COUNTS: dict[type, Callable[[Any], bool]] = {
    Truth: lambda element: True,
    Count: lambda element: True,
    Product: lambda element: all(map(is_count, element.parts)),
    Choice: lambda element: all(map(is_count, element.cases)),
    Categorical: lambda element: element.first >= 0,
    bool: lambda element: True,
    int: lambda element: element >= 0,
}


def is_truth(element: Any) -> bool:
    """Return whether ``element``, a number or an outcome, can have no other values than 0 and 1."""
    rule = _TRUTHS.get(type(element))
    return rule(element) if rule else not isinstance(element, Deferred) and element in (0, 1)


def is_count(element: Any) -> bool:
    """Return whether ``element`` is an integer, or an outcome with integer values, that cannot be negative."""
    rule = _COUNTS.get(type(element))
    return rule is not None and rule(element)


def number(element: Any) -> Any:
    """Return ``element`` in the form that arithmetic accepts.

    An outcome, such as a drawn token, is drawn now and becomes its value. Symbolic numbers, which have arithmetic, and
    plain numbers are unchanged.
    """
    return element if isinstance(element, SYMBOLIC) else known(element)


def is_open(element: Any) -> bool:
    """Return whether ``element`` is a symbolic number, or an outcome that was not read."""
    return isinstance(element, SYMBOLIC) or (isinstance(element, Deferred) and not element.decided)


def known(element: Any) -> Any:
    """Return the plain value of ``element``: outcomes and symbolic integers are drawn.

    Raises ``NeedsValue`` for other symbolic numbers.
    """
    element = outcome_in(element)
    if isinstance(element, Deferred):
        element = element.value()
    if isinstance(element, Continuous) and is_whole(element):
        return force_integer(element)
    if isinstance(element, SYMBOLIC):
        raise NeedsValue(
            "value-needed", "the value of a uniform random number is needed, not only a comparison with it"
        )
    return element


# Integers of foreign code


class OutcomeNumber:
    """A stand-in for an ``int`` whose value is drawn when the program reads it."""

    __slots__ = ("_outcome",)

    __class__: Any = property(lambda self: int)  # code that asks for the type does not read the value

    def __init__(self, outcome: Any) -> None:
        """Wrap ``outcome``, a ``Deferred`` with integer values."""
        self._outcome = outcome

    def __getattr__(self, name: str) -> Any:
        if not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(number_in(self), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(number_in(self), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply ``ufunc`` to the integer that this number stands for; the integer is drawn now.

        The integer is passed as a Python number, so the result has the dtype of the other operand.
        """
        return getattr(ufunc, method)(*_read(inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the NumPy function ``func`` with the integer that this number stands for; the integer is drawn now.

        The parameters are those that NumPy passes.
        """
        return func(*_read(args), **dict(zip(kwargs, _read(tuple(kwargs.values())), strict=True)))


def number_in(number: OutcomeNumber) -> int:
    """Return the integer that ``number`` stands for, drawing it if needed."""
    return int(outcome_in(number).value())


def outcome_in(value: Any) -> Any:
    """Return the symbolic outcome inside an ``OutcomeNumber``; any other ``value`` unchanged."""
    return value._outcome if type(value) is OutcomeNumber else value  # noqa: SLF001 - of this module


def _read(value: Any) -> Any:
    """Return ``value`` with each ``OutcomeNumber`` replaced by its integer, which is drawn.

    Numbers inside lists and tuples are replaced too.
    """
    if type(value) is OutcomeNumber:
        return number_in(value)
    return type(value)(map(_read, value)) if type(value) in {list, tuple} else value


def _forwarding(name: str) -> Callable[..., Any]:
    def method(self: OutcomeNumber, *args: Any) -> Any:
        return getattr(number_in(self), name)(*args)

    return method


def _operation(apply: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    """Make the method of ``OutcomeNumber`` for one operator, such as ``__add__``, from a function of integers.

    An ``OutcomeNumber`` stands for an integer that is drawn when the program reads it. The method draws its value, and
    returns ``apply(value, other operand)``; with ``swapped``, ``apply(other operand, value)``, as ``__radd__`` needs.
    """

    def method(self: OutcomeNumber, other: Any, *modulus: Any) -> Any:
        number = number_in(self)
        return apply(other, number, *modulus) if swapped else apply(number, other, *modulus)

    return method


_ARITHMETIC: tuple[Callable[..., Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lshift,
    operator.rshift, operator.and_, operator.or_, operator.xor, divmod, pow,
)  # fmt: skip
_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_OWN = {"__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__dir__", "__getattribute__",
        "__setattr__", "__delattr__", "__doc__", "__sizeof__"}  # fmt: skip
"""Names that the class defines itself, or that are no methods."""
for _name in sorted({name for name in dir(int) if name.startswith("__")} - _OWN):
    setattr(OutcomeNumber, _name, _forwarding(_name))


for _apply in (*_ARITHMETIC, *_COMPARISONS):
    setattr(OutcomeNumber, f"__{_apply.__name__.strip('_')}__", _operation(_apply))
for _apply in _ARITHMETIC:
    setattr(OutcomeNumber, f"__r{_apply.__name__.strip('_')}__", _operation(_apply, swapped=True))


def _reduced(self: OutcomeNumber, *_: Any) -> Any:
    return int, (number_in(self),)


for _name in ("__reduce__", "__reduce_ex__"):
    setattr(OutcomeNumber, _name, _reduced)
for _name in ("__copy__", "__deepcopy__"):
    setattr(OutcomeNumber, _name, lambda self, *_: number_in(self))
OutcomeNumber.__complex__ = lambda self: complex(number_in(self))  # type: ignore[attr-defined]  # int has none, and is taken
