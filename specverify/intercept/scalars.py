"""One random number that nobody has valued, as a Python object, and the races of several.

``LazyFloat`` answers comparisons with numbers by coins and keeps arithmetic that keeps its order; all else asks for
the value and is refused, naming the operation and the line of the foreign code. Which of several is the largest is
one draw if they are a race of exponential clocks in any of the usual spellings, and refused otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from types import ModuleType
from typing import Any

import numpy as np

from specverify import rounding
from specverify.intercept import deferred
from specverify.intercept.caller import caller
from specverify.intercept.deferred import Continuous, NeedsValue, Step
from specverify.intercept.races import race


def refusal(sentence: str) -> NeedsValue:
    """Return the exception that says ``sentence`` and where the foreign code asked."""
    return NeedsValue(f"{sentence}, at {caller()}")


@contextmanager
def replaced(target: Any, values: dict[str, Any]) -> Iterator[None]:
    """Give a module or class other attributes inside the block, and what it had before after it."""
    own = vars(target)
    before = {name: own[name] for name in values if name in own}
    try:
        _give(target, values)
        yield
    finally:
        _give(target, before)
        for name in values.keys() - before.keys():
            if name in own:
                delattr(target, name)


def _give(target: Any, values: Mapping[str, Any]) -> None:
    """Set attributes; those of a module in one step, for this is done twice in every run."""
    if isinstance(target, ModuleType):
        vars(target).update(values)
        return
    for name, value in values.items():
        setattr(target, name, value)


class LazyFloat:
    """A monotone image of a uniform that has no value, only answers to comparisons."""

    __slots__ = ("continuous",)

    def __init__(self, continuous: Continuous) -> None:
        """Stand for ``continuous``."""
        self.continuous = continuous

    def _is(self, other: LazyFloat) -> bool:
        """Return whether both are the same number; refuses the comparison if they are not."""
        mine, its = self.continuous, other.continuous
        if mine.uniform is its.uniform and _shape(mine.steps) == _shape(its.steps):
            return True
        raise refusal("two random numbers are compared with each other")

    def _below(self, bound: Any) -> bool:
        rounding.saw(getattr(bound, "dtype", None))
        return bool(_asked(self.continuous.below, float(bound)))

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, LazyFloat):
            return not self._is(other)
        return not math.isnan(other) and self._below(other) if isinstance(other, Real) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._is(other) if isinstance(other, LazyFloat) else self.__lt__(other)

    def __gt__(self, other: Any) -> bool:
        if isinstance(other, LazyFloat):
            return not self._is(other)
        return not (math.isnan(other) or self._below(other)) if isinstance(other, Real) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._is(other) if isinstance(other, LazyFloat) else self.__gt__(other)

    def _then(self, step: Step) -> LazyFloat:
        return LazyFloat(self.continuous.then(step))

    def __pos__(self) -> LazyFloat:
        return self

    def __neg__(self) -> LazyFloat:
        return self._then(deferred.negate_step())

    def __add__(self, other: Any) -> LazyFloat:
        if isinstance(other, LazyFloat):
            raise refusal("two random numbers are added or subtracted")
        if not isinstance(other, Real):
            return NotImplemented
        return self if other == 0 else self._then(deferred.plus_step(float(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> LazyFloat:
        return self + -other if isinstance(other, Real | LazyFloat) else NotImplemented

    def __rsub__(self, other: Any) -> LazyFloat:
        return -self + other if isinstance(other, Real) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, LazyFloat):
            raise refusal("two random numbers are multiplied")
        if not isinstance(other, Real):
            return NotImplemented
        if other in {0, 1}:
            return self if other == 1 else 0.0
        return -self * -other if other < 0 else self._then(_asked(deferred.times_step, float(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, LazyFloat):
            raise refusal("a random number is divided by another")
        if not isinstance(other, Real):
            return NotImplemented
        if other == 0 and self._lowest() < 0:
            raise refusal("a random number of unknown sign is divided by 0")
        return self * (1.0 / float(other) if other else math.inf)

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, Real):
            return NotImplemented
        if not self._lowest() >= 0:
            raise refusal("a number is divided by a random number of unknown sign")
        if other == 0:
            return 0.0
        if other < 0:
            return -(-other / self)
        return self._then(_asked(deferred.divided_into_step, float(other)))

    def log(self) -> LazyFloat:
        """Return the natural logarithm: what ``np.log`` calls."""
        if not self._lowest() >= 0:
            raise refusal("np.log is taken of a random number of unknown sign")
        return self._then(deferred.log_step())

    def log1p(self) -> LazyFloat:
        """Return the logarithm of one plus the number: what ``np.log1p`` calls."""
        return (self + 1).log()

    def exp(self) -> LazyFloat:
        """Return the exponential: what ``np.exp`` calls."""
        return self._then(deferred.exp_step())

    def _lowest(self) -> float:
        """Return the infimum of the values it can have."""
        low, high = 0.0, 1.0
        for step in self.continuous.steps:
            ends = _image(step, low), _image(step, high)
            low, high = ends if step.increasing else ends[::-1]
        return low

    def __repr__(self) -> str:
        return f"LazyFloat{_shape(self.continuous.steps)}"


def _refusing(name: str) -> Callable[..., Any]:
    hint = "; math functions ask for it too, np.log does not" if name == "__float__" else ""

    def method(self: LazyFloat, *args: Any) -> Any:
        raise refusal(f"{name} needs the value of a random number, which has none{hint}")

    return method


for _name in ("float", "int", "index", "bool", "eq", "ne", "hash", "round", "floor", "ceil", "trunc", "abs", "complex",
              "pow", "rpow", "mod", "rmod", "floordiv", "rfloordiv", "divmod", "rdivmod", "format"):  # fmt: skip
    setattr(LazyFloat, f"__{_name}__", _refusing(f"__{_name}__"))
for _name in ("sqrt", "log2", "log10", "expm1", "exp2", "sin", "cos", "tan", "arctan", "rint", "square", "conjugate"):
    setattr(LazyFloat, _name, _refusing(f"np.{_name}"))


def _asked(question: Callable[..., Any], *args: Any) -> Any:
    """Put a question, and name the foreign line if it is refused."""
    try:
        return question(*args)
    except NeedsValue as refused:
        raise refusal(str(refused)) from None


def _shape(steps: Iterable[Step]) -> tuple[tuple[str, float], ...]:
    return tuple((step.name, step.number) for step in steps)


def _image(step: Step, value: float) -> float:
    """Apply a step to an end of the range of values, which may be infinite."""
    if step.name == "log":
        return math.log(value) if value > 0 else -math.inf
    if step.name == "exp":
        return math.exp(value) if value < 700 else math.inf
    if step.name == "times":
        return value * step.number if value else 0.0
    if step.name == "divided into":
        return step.number / value if value > 0 else math.inf
    return -value if step.name == "negate" else value + step.number


def winner(row: Sequence[Any], *, largest: bool) -> int:
    """Return the index of the largest or smallest of numbers and random numbers that race for it."""
    lazy = [entry for entry in row if isinstance(entry, LazyFloat)]
    if not lazy:
        numbers = np.array([float(entry) for entry in row])
        return int(numbers.argmax() if largest else numbers.argmin())
    signed = [entry if largest else -entry for entry in row]
    forms = [_canonical(entry.continuous.steps) for entry in signed if isinstance(entry, LazyFloat)]
    while all(form and form[-1].increasing and _shape(form[-1:]) == _shape(forms[0][-1:]) for form in forms):
        forms = [form[:-1] for form in forms]
    ratios = all([step.name for step in form[:3]] == ["log", "negate", "divided into"] for form in forms)
    if any(not isinstance(entry, LazyFloat) and not _loses(entry, ratios) for entry in signed):
        raise refusal("the largest of random numbers and a number is asked for")
    alike = len({_shape(form) for form in forms}) == 1
    forms = [_clock([deferred.log_step()] if alike else form) for form in forms]
    left = iter(zip(lazy, forms, strict=True))
    entries = [_raced(*next(left)) if isinstance(entry, LazyFloat) else -math.inf for entry in row]
    uniform = lazy[0].continuous.uniform
    return int(_asked(race, uniform.draws, ("race", *uniform.known.site), entries))


def _loses(number: Any, ratios: bool) -> bool:
    return bool(number == -math.inf or (ratios and number == 0))


def _raced(entry: LazyFloat, form: list[Step]) -> Continuous:
    return Continuous(entry.continuous.uniform, tuple(form))


def _clock(form: list[Step]) -> list[Step]:
    """Return a form that ``race`` knows; the largest ``c log u`` is the smallest exponential clock over its weight."""
    names = [step.name for step in form]
    if names[:1] == ["log"] and set(names[1:]) <= {"times"}:
        weight = 1.0 / math.prod(step.number for step in form[1:])
        return [deferred.log_step(), deferred.negate_step(), deferred.divided_into_step(weight)]
    ratio = names[:3] == ["log", "negate", "divided into"] and set(names[3:]) <= {"times"}
    if not ratio and (names[:4] != ["log", "negate"] * 2 or set(names[4:]) - {"plus"}):
        raise refusal("the largest of several random numbers is asked for, and they are not a race of clocks")
    return form


def _canonical(steps: Iterable[Step]) -> list[Step]:
    """Return equivalent steps with signs first and factors last; ``1 - u`` is a uniform like ``u``."""
    found: list[Step] = []
    for step in steps:
        _push(found, step)
    return found[2:] if _shape(found[:2]) == (("negate", 0.0), ("plus", 1.0)) else found


def _push(found: list[Step], step: Step) -> None:
    before = found[-1] if found else step
    pair = (before.name, step.name) if found else ("", "")
    if pair == ("negate", "negate"):
        found.pop()
    elif pair == ("plus", "plus"):
        found[-1] = deferred.plus_step(before.number + step.number)
    elif pair == ("times", "times"):
        found[-1] = deferred.times_step(before.number * step.number)
    elif pair in {("plus", "negate"), ("times", "negate"), ("times", "plus")}:
        found.pop()
        _push(found, deferred.plus_step(step.number / before.number) if step.name == "plus" else step)
        _push(found, deferred.plus_step(-before.number) if before.name == "plus" else before)
    else:
        found.append(step)


def looked_up(bounds: Sequence[Any], value: Any, side: str) -> int:
    """Return the place of a number or random number in sorted numbers; no random number equals one of them."""
    if any(isinstance(bound, LazyFloat) for bound in bounds):
        raise refusal("a number is looked up among random ones")
    if isinstance(value, LazyFloat) and all(step.increasing for step in value.continuous.steps):
        return int(_asked(value.continuous.interval_of, bounds))
    return sum(bound < value or (side == "right" and not value < bound) for bound in bounds)
