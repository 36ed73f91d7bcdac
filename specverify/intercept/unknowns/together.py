"""What is known of several uniform numbers together, and coins that hang on more than one of them.

A comparison of a quantity that is made of several is a coin like one of a single number: its probability given all
earlier answers. Products that contain each other have it in closed form (``arrivals``). Else it lies between two
bounds (``splitting``); what the middle of them may be off counts as what rounding may do to the law. Where the bounds
are too far apart, or do not tell whether an answer can come at all, the question is refused with what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import localcontext
from functools import lru_cache
from itertools import pairwise
from math import inf, prod  # by name: inside a block ``math`` has others
from typing import Any, NamedTuple, Protocol

from specverify.intercept.unknowns.arrivals import DIGITS, probability, windows
from specverify.intercept.unknowns.formulas import OUTWARDS, Fact, Formula
from specverify.intercept.unknowns.splitting import MOST_UNIFORMS, Share, share
from specverify.intercept.unknowns.steps import STEPPED, carried_back
from specverify.laws.rounding import LARGEST

NEVER = 2.0**-54
"""Less probability than a uniform of float64 can show."""


class Known(Protocol):
    """What is known of a uniform number."""

    low: float
    high: float
    together: Together | None


class Quantity(Protocol):
    """What is made of uniform numbers."""

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return it in terms of the places of its uniform numbers."""


class Answer(NamedTuple):
    """What was found of a quantity: that it is below a bound, or is not."""

    of: Quantity
    bound: float
    or_equal: bool
    true: bool

    def implies(self, of: Quantity, bound: float, *, or_equal: bool) -> bool:
        """Return whether the same answer follows about another bound of the same quantity."""
        if of != self.of or (bound == self.bound and or_equal not in {self.or_equal, self.true}):
            return False
        return bound >= self.bound if self.true else bound <= self.bound


class Together:
    """Uniform numbers, and the answers that they have given together. Their own answers are in their intervals."""

    def __init__(self, members: Sequence[Known], answers: Sequence[Answer] = ()) -> None:
        """``answers`` are of quantities made of ``members`` alone."""
        self.members, self.answers = list(members), list(answers)

    def chance(self, of: Quantity, bound: float, *, or_equal: bool) -> Chance:
        """Return how likely a quantity of the members is below ``bound``, given all that is known of them."""
        implied = [answer.true for answer in self.answers if answer.implies(of, bound, or_equal=or_equal)]
        if implied:
            return Chance(float(implied[0]))
        places = {id(known): place for place, known in enumerate(self.members)}

        def fact(answer: Answer) -> Fact:
            formula = answer.of.formula(lambda known: places[id(known)])
            return Fact(formula, answer.bound, answer.or_equal, answer.true)

        ends = tuple((known.low, known.high) for known in self.members)
        return _chance(ends, tuple(map(fact, self.answers)), fact(Answer(of, bound, or_equal, true=True)))

    def learn(self, answer: Answer) -> None:
        """Keep what was answered; the members know of each other from now on."""
        self.answers.append(answer)
        for known in self.members:
            known.together = self


class Chance(NamedTuple):
    """A probability that is known to lie ``within`` so much of a number, or why it is not known."""

    middle: float
    within: float = 0.0
    refusal: str = ""


def among(found: Sequence[Known]) -> Together:
    """Return the uniform numbers, and all of which something is known together with them."""
    groups = list(dict.fromkeys(known.together or Together([known]) for known in found))
    return Together(
        list(dict.fromkeys(known for group in groups for known in group.members)),
        [answer for group in groups for answer in group.answers],
    )


@lru_cache(maxsize=1 << 14)
def _chance(ends: tuple[tuple[float, float], ...], facts: tuple[Fact, ...], asked: Fact) -> Chance:
    closed = _in_closed_form(ends, facts, asked)
    if closed is not None:
        return Chance(0.0 if closed < NEVER else 1.0 if 1 - closed < NEVER else closed)
    if len(ends) > MOST_UNIFORMS:
        return Chance(0.5, 0.5, f"{len(ends)} random numbers are compared together, and {MOST_UNIFORMS} can be at most")
    found = _of_one_quantity(ends, facts, asked) or share(ends, facts, asked)
    if found.whole <= 0:
        return Chance(0.5, 0.5, "random numbers are compared together after answers that can hardly come together")
    if found.open:
        what = "random numbers are compared together, and whether one of the answers can come at all is not told"
        return Chance(0.5, 0.5, f"{what} by boxes; that they are compared with is as good as a value they often have, "
                                "or as an earlier answer")  # fmt: skip
    for certain, (least, most) in ((1.0, found.no), (0.0, found.yes)):
        if least <= 0:
            return Chance(certain, float(most / found.whole))
    low, high = found.chance
    within = (high - low) / 2
    refusal = (
        f"{len(ends)} random numbers are compared together, and the probability of it is known to lie between "
        f"{low:.6g} and {high:.6g}: for a verdict they may be {LARGEST:g} apart; compare fewer of them together"
    )
    return Chance(float(low + within), float(within), refusal if high - low > LARGEST else "")


def _of_one_quantity(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> Share | None:
    """Return the volumes of both answers if all facts are about what is asked: differences of its own law."""
    levels = [_level(fact) for fact in (*facts, asked)]
    if not facts or None in levels or len({fact.formula[:2] for fact in (*facts, asked)}) > 1:
        return None
    *given, (at, above) = [level for level in levels if level is not None]
    low = max((level for level, below in given if not below), default=-inf)
    high = min((level for level, below in given if below), default=inf)
    core = asked.formula._replace(steps=())
    least, most = (prod(end - start for start, end in ends) * (1 + way * OUTWARDS * len(ends)) for way in (-1, 1))
    ladder = [share(ends, (), Fact(core, level)).yes if abs(level) < inf else (least, most) if level > 0 else (0.0, 0.0)
              for level in (low, min(max(at, low), high), high)]  # fmt: skip
    parts = [(0.0, 0.0) if one == other else (max(0.0, other[0] - one[1]), max(0.0, other[1] - one[0]))
             for one, other in pairwise(ladder)]  # fmt: skip
    return Share(*(parts if above else parts[::-1]))


def _level(fact: Fact) -> tuple[float, bool] | None:
    """Return what a quantity without its steps is compared with, and whether it is below; None for steps and clamps."""
    formula = fact.formula
    if (formula.low, formula.high) != (-inf, inf) or any(step.name in STEPPED for step in formula.steps):
        return None
    turns = sum(not step.increasing for step in formula.steps)
    return carried_back(formula.steps, fact.bound), fact.true == (turns % 2 == 0)


def _in_closed_form(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> float | None:
    """Return the probability of what is asked given the facts, if all is about products that contain each other."""
    found = windows(ends, (*facts, asked))
    if found is None:
        return None
    known = bool(facts) or any(each != (0.0, 1.0) for each in ends)
    given = windows(ends, facts) if known else ()
    if given is None:
        return None
    with localcontext(DIGITS):
        whole = probability(given) if given else 1
        return float(probability(found) / whole) if whole else None
