"""Noise vectors: many symbolic random numbers with one chain of steps, stored as arrays.

``Many`` is an array of numbers and symbolic numbers. Each symbolic number is a monotone function of its own uniform:
one chain of steps for all, whose parameters may be arrays. An element can always be extracted as a ``Continuous`` or a
number, so an operation without a vector rule is done element by element. A vector rule maps every symbolic number of an
array to a symbolic number or a number; otherwise it raises ``RuleDeclined``, and the elements are handled one by one.
The operands of a vector rule are noise vectors and plain numbers (floats or arrays of the same shape).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.audit import Draw, Raced
from specverify.intercept.refusals import NeedsValue, RuleDeclined
from specverify.intercept.run import mode
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.steps import EXP, LOG, MOST_OMITTED, RARELY, RULES, MonotoneStep, pushed
from specverify.intercept.symbolic.uniform import Known, Uniform, look
from specverify.laws import rounding
from specverify.laws.rounding import FLOAT64
from specverify.reference import Draws, Site

# Many steps


_LARGEST_LOGARITHM = 700.0
"""Below this the exponential is a finite ordinary float, as in ``steps``."""
_UNSEEN = 2.0**-60
"""A uniform is a multiple of 2**-53 or more, so adding at most this changes only a uniform of 0."""


class Steps(NamedTuple):
    """One strictly monotone function that is applied to all elements of a noise vector.

    ``name`` and ``number`` are those of ``steps.MonotoneStep``, such as "plus" and the summand. A chain of such steps
    makes scores, for example Gumbel noise, of uniforms.
    """

    name: str
    number: Any = 0.0
    """A float for all elements, or an array with one number for each element."""


LOGS, EXPS = Steps(LOG.name), Steps(EXP.name)


NEUTRAL = {"times": 1.0, "power": 1.0}
"""Step -> the number with which it is the identity, where that is not 0."""


def of(step: Steps, values: Any) -> Any:
    """Return ``step`` applied to the array ``values``, also at ends of its domain; see ``MonotoneStep.of``."""
    values = np.asarray(values, dtype=np.float64)
    if step.name == "plus":
        return values + step.number
    if step.name == "times":
        return np.where(values == 0, 0.0, values * step.number)
    if step.name == LOG.name:
        return np.where(values > 0, np.log(np.maximum(values, 0.0)), -np.inf)
    if step.name == EXP.name:
        return np.exp(values)
    if step.name in RULES:
        return RULES[step.name].of(values)
    raised = np.power(np.maximum(values, 0.0), step.number)
    return np.where((values < 0) & (np.asarray(step.number) > 0), -np.inf, raised)


def back(step: Steps, bounds: Any) -> Any:
    """Return the numbers whose images under ``step`` are ``bounds``; see ``MonotoneStep.back``."""
    if step.name == "plus":
        return bounds - step.number
    if step.name == "times":
        return bounds / step.number
    if step.name == LOG.name:
        return of(EXPS, bounds)
    if step.name in RULES:
        return RULES[step.name].inverse(bounds)
    return (
        of(LOGS, bounds) if step.name == EXP.name else of(step._replace(number=1.0 / np.asarray(step.number)), bounds)
    )


def grows(step: Steps) -> bool:
    """Return True if the step preserves the order of numbers, and False if it reverses the order.

    Raises ``RuleDeclined`` if some elements of the vector keep their order and others do not.
    """
    if step.name not in NEUTRAL:
        return True
    positive = np.asarray(step.number) > 0
    if positive.any() != positive.all():
        raise RuleDeclined("the numbers of a noise vector keep and turn their order at once")
    return bool(positive.all())


def chained(steps: tuple[Steps, ...], step: Steps) -> tuple[Steps, ...]:
    """Return the chain ``steps`` followed by ``step``, in normal form.

    Raises ``RuleDeclined`` if the step preserves the order in some elements only.
    """
    if not steps and step.name == "plus" and np.all(np.abs(step.number) <= _UNSEEN):
        return steps
    if step.name in {"plus", *NEUTRAL}:
        grows(step)
        if np.all(np.abs(np.asarray(step.number) - NEUTRAL.get(step.name, 0.0)) <= (step.name in NEUTRAL) * FLOAT64):
            return steps
    rest, last = steps[:-1], steps[-1] if steps else step
    rule = _RULES.get((last.name, step.name))
    if not steps or rule is None or _stays(rest, last, step):
        return (*steps, step)
    for each in rule(np.asarray(last.number), step):
        rest = chained(rest, each)
    return rest


def _stays(rest: tuple[Steps, ...], last: Steps, step: Steps) -> bool:
    if step.name == EXP.name and last.name in {"times", "plus"}:
        return rest[-1:] != (LOGS,) if last.name == "times" else bool(np.any(np.abs(last.number) > _LARGEST_LOGARITHM))
    return last.name == "times" and step.name in {LOG.name, "power"} and bool(np.all(np.asarray(last.number) == -1))


_RULES: dict[tuple[str, str], Callable[[Any, Steps], tuple[Steps, ...]]] = {
    (LOG.name, EXP.name): lambda number, step: (),
    (EXP.name, LOG.name): lambda number, step: (),
    ("plus", "plus"): lambda number, step: (Steps("plus", number + step.number),),
    ("times", "times"): lambda number, step: (Steps("times", number * step.number),),
    ("power", "power"): lambda number, step: (Steps("power", number * step.number),),
    ("plus", "times"): lambda number, step: (step, Steps("plus", number * step.number)),
    ("plus", EXP.name): lambda number, step: (step, Steps("times", np.exp(number))),
    ("times", EXP.name): lambda number, step: (step, Steps("power", number)),
    (EXP.name, "power"): lambda number, step: (Steps("times", step.number), EXPS),
    ("power", LOG.name): lambda number, step: (step, Steps("times", number)),
    ("times", LOG.name): lambda number, step: (
        Steps("times", np.sign(number)),
        step,
        Steps("plus", np.log(np.abs(number))),
    ),
    ("times", "power"): lambda number, step: (
        Steps("times", np.sign(number)),
        step,
        Steps("times", np.power(np.abs(number), step.number)),
    ),
}
"""Names of two successive steps -> the steps that replace them, given the first step's numbers. The rules are those of
``steps``, without ``floor``."""


# Many


_FIRST = count()


# The uniform numbers


class NoiseBlock:
    """All uniform numbers that one call drew, such as those of ``torch.rand(V)``; noise vectors refer to them."""

    def __init__(self, draws: Draws, site: Site, draw: Draw, size: int) -> None:
        """Store the call at ``site``, which drew ``size`` uniforms; ``draws`` chooses the results of their comparisons.

        ``draw`` identifies the generator state from which they were drawn.
        """
        self.draws, self.site, self.draw, self.size = draws, site, draw, size
        self.known: _KnownOfBlock = draw.shared(lambda: _KnownOfBlock(size))
        coupled = mode().coupled
        if coupled is not None:
            coupled.take_block(self)

    def uniform(self, place: int) -> Uniform:
        """Return the uniform with index ``place`` as a symbolic number of its own."""
        site = (*self.site, place)
        return Uniform(self.draws, site, _DrawInBlock(site, self, place))


class _KnownOfBlock:
    """The constraints on the uniforms of a noise block.

    Two calls that draw in the same way from the same generator state return the same numbers, and their noise blocks
    share one object of this class.
    """

    def __init__(self, size: int) -> None:
        self.first = next(_FIRST) << 40
        """The id of the first uniform of the block; the others follow."""
        self.raced = np.zeros(size, dtype=bool)
        self.single: dict[int, Known] = {}
        """Index -> constraints of a uniform that was used alone."""


class _DrawInBlock(Draw):
    """The draw that belongs to a single uniform of a noise block.

    It is made for an element that is extracted from a noise vector and becomes a symbolic number of its own.
    """

    __slots__ = ("block", "number")

    def __init__(self, site: Site, block: NoiseBlock, number: int) -> None:
        super().__init__(site)
        self.block, self.number = block, number

    def shared(self, make: Callable[[], Any]) -> Any:
        known = self.block.known
        if self.number not in known.single:
            known.single[self.number] = make()
            if known.raced[self.number]:
                known.single[self.number].raced = Raced("", 0.0)
        return known.single[self.number]

    def look(self) -> str:
        return self.block.draw.look()

    def recorded(self, coupled: Any) -> float:
        """Return the value of the number in the recorded run of the unchanged program that ``coupled`` repeats."""
        return float(coupled.in_block(self.block, self.number))


# The numbers


class Many(NamedTuple):
    """A noise vector: ``steps`` applied to uniforms, then limited to ``[low, high]``.

    The uniforms are those of the noise ``blocks``. Some elements may be plain numbers.
    """

    blocks: tuple[NoiseBlock, ...]
    ids: Any
    """Id of the uniform of each element, counted over all blocks; -1 if the element is a concrete number."""
    numbers: Any
    """Values of the concrete elements."""
    steps: tuple[Steps, ...] = ()
    """Monotone steps applied to the uniforms; their numbers are floats or arrays shaped like ``ids``."""
    low: Any = -np.inf
    high: Any = np.inf

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the array."""
        return tuple(self.ids.shape)

    @property
    def random(self) -> Any:
        """Return an array of bools: True for the symbolic elements."""
        return self.ids >= 0

    def then(self, step: Steps) -> Many:
        """Return the vector with ``step`` applied to its symbolic elements; plain numbers are unchanged.

        Raises ``NeedsValue`` if a factor or an exponent in the resulting chain is 0 or not finite.
        """
        if (omitted := self._omitted_with(step)) > 0:
            rounding.known_within(omitted)
            return self
        steps = chained(self.steps, step)
        for each in steps:
            size = np.abs(each.number)
            if each.name in {"times", "power"} and not np.all((size > 0) & (size < np.inf) | ~self.random):
                raise NeedsValue("out-of-range", f"random numbers leave the range of floats ({step.name})")
        with np.errstate(all="ignore"):
            ends = of(step, self.low), of(step, self.high)
        return self._replace(steps=steps, low=ends[0] if grows(step) else ends[1], high=ends[1 if grows(step) else 0])

    def _omitted_with(self, step: Steps) -> float:
        """Return the probability that is left out with a ``step`` that adds little to uniforms; 0 for any other step.

        An example is ``-log(u + 1e-10)``. A uniform plus a small number a has another value than a uniform with
        probability a.
        """
        if self.steps or step.name != "plus" or not (np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high))):
            return 0.0
        added = np.where(self.random, np.abs(step.number), 0.0)
        is_little = _UNSEEN < added.max(initial=0.0) <= RARELY and added.sum() <= MOST_OMITTED
        return float(added.sum()) if is_little else 0.0

    def ends(self) -> tuple[Any, Any]:
        """Return the infima and the suprema of the symbolic elements.

        Each is an array of the vector's shape, or a float if it is the same for all. The values at plain numbers have
        no meaning.
        """
        low, high = np.float64(0.0), np.float64(1.0)
        with np.errstate(all="ignore"):
            for step in self.steps:
                low, high = (of(step, low), of(step, high)) if grows(step) else (of(step, high), of(step, low))
            return np.minimum(np.maximum(low, self.low), self.high), np.maximum(np.minimum(high, self.high), self.low)

    def taken(self, take: Callable[[Any], Any]) -> Many:
        """Return the vector of the elements that ``take``, an indexing function of arrays, selects."""

        def of_number(number: Any) -> Any:
            return take(np.broadcast_to(number, self.shape)) if np.ndim(number) else number

        steps = tuple(step._replace(number=of_number(step.number)) for step in self.steps)
        ids, numbers = take(self.ids), take(self.numbers)
        return Many(self.blocks, ids, numbers, steps, of_number(self.low), of_number(self.high))

    def few(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the elements with the flat indices ``places``, numbers and ``Continuous``, as an object array."""
        result = np.empty(places.shape, dtype=object)
        for index, place in np.ndenumerate(places):
            result[index] = self.element(int(place))
        return result

    def element(self, place: int) -> Any:
        """Return the element with the flat index ``place``: a number or a ``Continuous``."""
        result = int(self.ids.flat[place])
        if result < 0:
            return float(self.numbers.flat[place])
        block = next(each for each in self.blocks if 0 <= result - each.known.first < each.size)

        def at(number: Any) -> float:
            return float(np.broadcast_to(number, self.shape).flat[place]) if np.ndim(number) else float(number)

        steps: tuple[MonotoneStep, ...] = ()
        for step in self.steps:
            steps = pushed(steps, MonotoneStep(step.name, at(step.number)))
        return Continuous(block.uniform(result - block.known.first), steps, at(self.low), at(self.high))

    def elements(self) -> Any:
        """Return all elements (each a number or a ``Continuous``) as an object array."""
        result = np.empty(self.ids.size, dtype=object)
        result[:] = [self.element(place) for place in range(self.ids.size)]
        return result.reshape(self.shape)

    def look(self) -> None:
        """Record that the program reads all elements.

        Raises ``NeedsValue`` if the elements share a generator state with a draw that the program has already read, and
        the two draws use different numbers of that generator: how they depend on each other is then unknown.
        """
        for block in self.blocks:
            look(block.draw)


def uniforms(block: NoiseBlock, shape: tuple[int, ...]) -> Many:
    """Return the uniforms of ``block`` as a noise vector of the given shape."""
    ids = block.known.first + np.arange(block.size, dtype=np.int64).reshape(shape)
    return Many((block,), ids, np.zeros(shape))


def as_many(values: Any) -> Many:
    """Return the plain numbers ``values`` as a ``Many`` without symbolic elements."""
    result = np.asarray(values, dtype=np.float64)
    return Many((), np.full(result.shape, -1, dtype=np.int64), result)


def numbers(values: Any, like: Many) -> Many:
    """Return the plain numbers ``values`` as a ``Many`` with the steps and limits of ``like``.

    The result can be joined with ``like``, because it has the same steps.
    """
    first = int(like.random.argmax()) if like.ids.size else 0

    def of_first(number: Any) -> Any:
        return np.broadcast_to(number, like.shape).flat[first] if np.ndim(number) else number

    steps = tuple(step._replace(number=of_first(step.number)) for step in like.steps)
    return as_many(values)._replace(steps=steps, low=of_first(like.low), high=of_first(like.high))


def joined(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Many:
    """Return one vector of the arrays in ``parts``, noise vectors or plain numbers.

    ``join``, a function such as ``np.concatenate``, puts arrays together. Raises ``RuleDeclined`` if the names of the
    steps of the parts differ; the numbers of the steps may differ.
    """
    like = next((part for part in parts if isinstance(part, Many) and part.random.any()), as_many(0.0))
    names = [step.name for step in like.steps]
    whole = [
        part
        if isinstance(part, Many) and part.random.any()
        else numbers(part.numbers if isinstance(part, Many) else part, like)
        for part in parts
    ]
    if any([step.name for step in part.steps] != names for part in whole):
        raise RuleDeclined("noise vectors with different chains of steps are put together")

    def together(found: list[Any]) -> Any:
        if all(np.ndim(each) == 0 for each in found) and len(set(map(float, found))) == 1:
            return found[0]
        return join([np.broadcast_to(each, part.shape) for each, part in zip(found, whole, strict=True)])

    return Many(
        tuple(dict.fromkeys(block for part in whole for block in part.blocks)),
        join([part.ids for part in whole]),
        join([part.numbers for part in whole]),
        tuple(Steps(name, together([part.steps[at].number for part in whole])) for at, name in enumerate(names)),
        together([part.low for part in whole]),
        together([part.high for part in whole]),
    )


# Many algebra


def _apart(left: Any, right: Any) -> tuple[Many, Any]:
    value, number = (left, right) if isinstance(left, Many) else (right, left)
    if isinstance(number, Many):
        raise RuleDeclined("two noise vectors meet")
    return value, number


def _numbers(value: Many, where: Any, numbers: Any, function: Callable[[Any], Any]) -> Many:
    """Return ``value`` with ``function`` applied to its array of plain numbers.

    Where the mask ``where`` is True, the symbolic elements are replaced by the elements of ``numbers``.
    """
    result = np.where(value.random, numbers, function(value.numbers))
    return value._replace(ids=np.where(where, -1, value.ids), numbers=result)


def _where(condition: Any, one: Any, other: Any) -> Any:
    """Return the elements of ``one`` where ``condition`` is True, and those of ``other`` elsewhere.

    If ``one`` is a single number and the condition is True everywhere, return ``one`` itself, not an array.
    """
    return one if np.ndim(one) == 0 and np.all(condition) else np.where(condition, one, other)


def add(left: Any, right: Any) -> Many:
    """Return ``left + right``; one is a noise vector (an array of symbolic random numbers), the other plain numbers."""
    value, number = _apart(left, right)
    finite = np.isfinite(number)
    return _numbers(value, ~finite, number, lambda found: found + number).then(Steps("plus", _where(finite, number, 0)))


def negative(value: Many) -> Many:
    """Return the negative of ``value``, a noise vector (an array of symbolic random numbers)."""
    return value._replace(numbers=-value.numbers).then(Steps("times", -1.0))


def _sign(value: Many) -> float:
    """Return the common sign of the symbolic elements of ``value``, 1 or -1.

    Raises ``RuleDeclined`` if signs differ or are unknown.
    """
    low, high = value.ends()
    if np.all(low >= 0):
        return 1.0
    if np.all(high <= 0):
        return -1.0
    raise RuleDeclined("the sign of the numbers of a noise vector is not one for all")


def _never_zero(value: Many) -> Many:
    """Return ``value``. Raises ``RuleDeclined`` for a vector that is clamped at 0.

    Dividing by 0 would give inf or -inf, by the sign of the zero.
    """
    (low, high), (first, last) = value.ends(), value._replace(low=-np.inf, high=np.inf).ends()
    if np.any(((low == 0) & (first < 0)) | ((high == 0) & (last > 0))):
        raise RuleDeclined("numbers of a noise vector may be 0")
    return value


def multiply(left: Any, right: Any) -> Many:
    """Return ``left * right``; one is a noise vector (an array of symbolic random numbers), the other plain numbers."""
    value, number = _apart(left, right)
    ordinary = (np.abs(number) > 0) & (np.abs(number) < np.inf)
    gone = number if ordinary.all() else number * _sign(_never_zero(value))
    result = _numbers(value, ~ordinary, gone, lambda numbers: numbers * number)
    return result.then(Steps("times", _where(ordinary, number, 1.0)))


def divide(left: Any, right: Any) -> Many:
    """Return ``left / right``; one is a noise vector (an array of symbolic random numbers), the other plain numbers."""
    if isinstance(right, Many):
        if isinstance(left, Many):
            raise RuleDeclined("two noise vectors are divided")
        return multiply(reciprocal(right), left)
    zero = np.equal(right, 0)
    if not zero.any():
        return multiply(left, 1.0 / right)
    infinite = np.copysign(np.inf, right) * _sign(_never_zero(left))
    result = _numbers(left, zero, infinite, lambda numbers: numbers / right)
    return result.then(Steps("times", np.where(zero, 1.0, 1.0 / right)))


def reciprocal(value: Many) -> Many:
    """Return 1 / value. Raises ``RuleDeclined`` for a vector with elements of different signs, or clamped at 0."""
    sign = _sign(_never_zero(value))
    turned = value._replace(numbers=sign / value.numbers).then(Steps("times", sign)).then(Steps("power", -1.0))
    return turned._replace(numbers=turned.numbers * sign).then(Steps("times", sign))


def powered(base: Any, exponent: Any) -> Many:
    """Return ``base ** exponent``; one is a noise vector (an array of symbolic numbers), the other plain numbers."""
    if isinstance(base, Many):
        if isinstance(exponent, Many) or not np.all(np.isfinite(exponent) & np.not_equal(exponent, 0)):
            raise RuleDeclined("an exponent is random, 0 or infinite")
        if np.any(np.asarray(exponent) < 0):
            _never_zero(base)
        if np.all(base.ends()[1] <= 0) and np.ndim(exponent) == 0 and exponent % 1 == 0:
            turned = negative(base)._replace(numbers=base.numbers**exponent).then(Steps("power", exponent))
            return turned if exponent % 2 == 0 else negative(turned)._replace(numbers=turned.numbers)
        return _nonnegative(base)._replace(numbers=base.numbers**exponent).then(Steps("power", exponent))
    if not np.all((base > 0) & (base < np.inf)):
        raise RuleDeclined("a random power of a number that is not positive")
    return exp(multiply(exponent, np.log(base)))


def _nonnegative(value: Many) -> Many:
    if not np.all(value.ends()[0] >= 0):
        raise RuleDeclined("a noise vector has numbers below 0")
    return value


def log(value: Many) -> Many:
    """Return the logarithms of ``value``, a noise vector (an array of symbolic random numbers)."""
    return _nonnegative(value)._replace(numbers=np.log(value.numbers)).then(LOGS)


def exp(value: Many) -> Many:
    """Return the exponentials of ``value``, a noise vector (an array of symbolic random numbers)."""
    return value._replace(numbers=np.exp(value.numbers)).then(EXPS)


def by_rule(name: str, value: Many) -> Many:
    """Return the monotone function ``name`` of ``steps.RULES``, applied to the noise vector ``value``."""
    return value._replace(numbers=RULES[name].of(value.numbers)).then(Steps(name))


def maximum(left: Any, right: Any) -> Many:
    """Return the element-wise maximum of ``left`` and ``right``, a noise vector and plain numbers in either order."""
    value, number = _apart(left, right)
    low, high = value.ends()
    over = np.asarray(number >= high)
    result = _numbers(value, over, number, lambda numbers: np.maximum(numbers, number))
    return (
        result if np.all(number <= low) else result._replace(low=np.maximum(value.low, np.where(over, -np.inf, number)))
    )


def minimum(left: Any, right: Any) -> Many:
    """Return the element-wise minimum of ``left`` and ``right``, a noise vector and plain numbers in either order."""
    value, number = _apart(left, right)
    return negative(maximum(negative(value), -number))


def clip(value: Many, low: Any, high: Any) -> Many:
    """Return the noise vector ``value`` limited to ``[low, high]``."""
    return minimum(maximum(value, low), high)


def subtract(left: Any, right: Any) -> Many:
    """Return ``left - right``; one is a noise vector (an array of symbolic random numbers), the other plain numbers."""
    return add(left, negative(right) if isinstance(right, Many) else -right)


def square(value: Many) -> Many:
    """Return the squares of ``value``, a noise vector (an array of symbolic random numbers).

    Raises ``RuleDeclined`` if its elements have different signs.
    """
    sign = _sign(value)
    return multiply(value, sign)._replace(numbers=value.numbers**2).then(Steps("power", 2.0))
