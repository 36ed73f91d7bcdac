"""Races: which of several random numbers is the largest, or comes at which place of their order.

Each number is to have its own exponential clock, E = -log u or -log(1 - u), and all are to be one decreasing function
of times, or one increasing function. The first clock to ring is the largest then, or the smallest. That is what Gumbel
noise, weights over exponentials and powers of uniforms are made for. What is known of an order is kept (``order``): the
next place, the best of two blocks and the same question again are answered by it, and who is first of the same noise
with other weights, once (``reweighted``). A race of clocks that are late or clamped (``clocks``) decides once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, log  # by name: inside a block ``math`` has others
from typing import Any, NamedTuple

import numpy as np
from numpy import array  # by name: inside a block NumPy has another

from specverify.intercept import audit
from specverify.intercept.audit import Raced, Racer
from specverify.intercept.unknowns.clocks import Clock, law_of_first
from specverify.intercept.unknowns.continuous import Continuous, Extreme
from specverify.intercept.unknowns.elementwise import applied
from specverify.intercept.unknowns.given import drawn, few
from specverify.intercept.unknowns.joined import UNKNOWN, Joined
from specverify.intercept.unknowns.order import Runner, agreed, first_of
from specverify.intercept.unknowns.reweighted import law_of_second, star_of
from specverify.intercept.unknowns.scores import NO_RACE, Race, race_of
from specverify.intercept.unknowns.uniform import NeedsValue, Uniform, look


def winner(entries: Sequence[Any], *, largest: bool = True, first_of_ties: bool = True, place: str = "") -> int:
    """Return the index of the largest or smallest of numbers and random numbers, one of these at least.

    Of equal ones it is the first, unless ``first_of_ties`` is False: then ties are refused. ``place`` is the line that
    asks, if it is not the one that is running. Raises ``NeedsValue`` where they are no race, and where their noise has
    decided something before that does not tell their order.
    """
    scores = [entry if largest else applied("negative", entry) for entry in map(drawn, entries)]
    ahead = _number_ahead(scores, first_of_ties=first_of_ties)
    if ahead is not None:
        return ahead
    parts = _all_parts(scores)
    found = _order(tuple(part for part, _ in parts), 1, place, first_of_ties=first_of_ties)[0]
    return parts[found][1]


def law_of_winner(entries: Sequence[Any], *, largest: bool = True, place: str = "") -> list[tuple[int, float]] | None:
    """Return the index of each that may be the ``winner`` and the probability of that, and draw nothing.

    One that is the largest of several clocks is there once for each of them. None where a draw tells more than who
    wins: something has been asked of one of the numbers before. Raises what ``winner`` raises.
    """
    if any(map(few, entries)):
        return None
    scores = [entry if largest else applied("negative", entry) for entry in entries]
    ahead = _number_ahead(scores, first_of_ties=True)
    if ahead is not None:
        return [(ahead, 1.0)]
    parts = _all_parts(scores)
    contest = _contest([part for part, _ in parts], 1, place)
    if not contest.race.first or any(_is_known(uniform) for _, uniform, _ in contest.racing):
        return None
    if contest.plain:
        rates = array([clock.rate for _, _, clock in contest.racing])
        places, masses = [at for at, _, _ in contest.racing], rates / rates.sum()
    else:
        places, masses = list(range(len(parts))), law_of_first(contest.race.clocks, first_of_ties=True)
    return [(parts[at][1], mass) for at, mass in zip(places, masses.tolist(), strict=True) if mass > 0]


def _is_known(uniform: Uniform) -> bool:
    """Return whether anything has been asked of a uniform number."""
    known = uniform.known
    return bool(known.asked or known.raced or known.runner or known.low > 0 or known.high < 1)


def ranked(
    entries: Sequence[Any], rank: int, *, largest: bool = True, first_of_ties: bool = False, place: str = ""
) -> int:
    """Return the index of what comes at a place of the order, 0 the first, of the largest or of the smallest."""
    if any(not isinstance(entry, UNKNOWN) and isnan(entry) for entry in entries):
        raise NeedsValue("equal-numbers", "the order of random numbers and NaN is asked for")
    if rank == 0:
        return winner(entries, largest=largest, first_of_ties=first_of_ties, place=place)
    scores = [entry if largest else applied("negative", entry) for entry in entries]
    return _order(scores, rank + 1, place, first_of_ties=first_of_ties)[rank]


def _number_ahead(scores: Sequence[Any], *, first_of_ties: bool) -> int | None:
    """Return the index of a number that no random one reaches, if there is one."""
    numbers = {at: score for at, score in enumerate(scores) if not isinstance(score, UNKNOWN)}
    if not numbers:
        return None
    undefined = next((at for at, number in numbers.items() if isnan(number)), None)
    most = max(numbers.values())
    if undefined is not None:
        return undefined
    if any(most < score.ends()[1] for score in scores if isinstance(score, UNKNOWN)):
        return None
    found = [at for at, number in numbers.items() if number == most]
    if len(found) > 1 and not first_of_ties:
        raise NeedsValue(
            "equal-numbers", "the largest of equal numbers is asked for, and which of them it is is not known"
        )
    return found[0]


def _all_parts(scores: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return what all scores are the largest of, each with the index of its score."""
    parts = [(part, at) for at, score in enumerate(scores) for part in _parts(score)]
    alone = len(parts) == len(scores)
    if not alone and len({id(part.uniform.known) for part, _ in parts if isinstance(part, Continuous)}) < len(parts):
        return _without_twice(parts)
    return parts


def _parts(score: Any) -> tuple[Any, ...]:
    """Return what a score is the largest of."""
    if not isinstance(score, Extreme):
        return (score,)
    if not score.largest or score.rank:
        raise NeedsValue(
            "order-of-joined", "the largest of several random numbers is asked for, and one is the smallest of others"
        )
    return score.parts


def _without_twice(parts: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    return list({part: (part, at) for part, at in reversed(parts)}.values())


class _Contest(NamedTuple):
    """A race that may be run, for all that is known of its numbers."""

    race: Race
    racing: list[tuple[int, Uniform, Clock]]
    """Those that take part: index, uniform and clock of each."""
    plain: bool
    """Whether all clocks start at once and are not clamped."""


def _contest(scores: Sequence[Any], number: int, place: str) -> _Contest:
    """Return the race of which the largest ``number`` of scores are asked; raises ``NeedsValue`` if it is none."""
    noise = [score.uniform for score in scores if isinstance(score, Continuous)]
    for uniform in noise:
        look(uniform.draw)
    if any(isinstance(score, Joined) for score in scores) or any(uniform.known.together for uniform in noise):
        raise NeedsValue("not-a-race", f"{NO_RACE}: one is made of several, or was compared together with others")
    race = race_of(scores)
    racing = [(at, score.uniform, clock) for at, (score, clock) in enumerate(zip(scores, race.clocks, strict=True))
              if clock.rate]  # fmt: skip
    known = [uniform.known for _, uniform, _ in racing]
    audit.raced(
        [Racer(uniform.draw, uniform.known.questions, uniform.known.raced, log(clock.rate))
         for _, uniform, clock in racing], place)  # fmt: skip
    if len({id(uniform.known) for uniform in noise}) < len(noise):
        raise NeedsValue(
            "equal-numbers", "the largest of several random numbers is asked for, and two of them are one number"
        )
    again = any(each.raced for each in known)
    if again and not all(each.runner and not each.runner.told if each.raced else True for each in known):
        raise NeedsValue("second-race", "random noise is used in a second race, or after it was compared with a number")
    plain = all(clock.plain for _, _, clock in racing)
    if not plain and (again or not race.first or number > 1):
        raise NeedsValue("second-race", "random noise that is clamped or has been compared is used in a second race")
    return _Contest(race, racing, plain)


def _order(scores: Sequence[Any], number: int, place: str, *, first_of_ties: bool) -> list[int]:
    """Return the indices of the largest ``number`` of scores, in order."""
    race, racing, plain = _contest(scores, number, place)
    drawn = _Drawn(racing)
    if plain:
        found = _by_order(drawn, race, number)
    else:
        found = [drawn.one(law_of_first(race.clocks, first_of_ties=first_of_ties))]
    for _, uniform, clock in racing:
        uniform.known.raced = Raced(place or audit.place(), log(clock.rate))
    return found if len(found) == number else _and_numbers(scores, found, number)


class _Drawn(NamedTuple):
    """Those that take part: index, uniform and clock of each. It draws what is not known of their order."""

    racing: Sequence[tuple[int, Uniform, Clock]]

    def one(self, pmf: Any) -> int:
        uniform = self.racing[0][1]
        uniform.known.asked += 1
        return uniform.draws.categorical(pmf, ("race", *uniform.known.site, uniform.known.asked))


def _by_order(drawn: _Drawn, race: Race, number: int) -> list[int]:
    """Return the indices of the first ``number`` to ring, or of the last ones."""
    for _, uniform, clock in drawn.racing:
        if uniform.known.runner is None:
            uniform.known.runner = Runner(clock.rate, flipped=clock.flipped)
    runners = {uniform.known.runner: (at, clock) for at, uniform, clock in drawn.racing if uniform.known.runner}
    turned = [runner.flipped != clock.flipped for runner, (_, clock) in runners.items()]
    rates = [clock.rate for _, clock in runners.values()]
    alike = len(set(rates)) == 1 and all(turned)
    if any(turned) and not alike:
        raise NeedsValue("second-race", "random noise is used in a second race, with other weights")
    if not agreed(list(runners), rates):
        return [_reweighted(drawn, list(runners), rates, once=number == 1 and race.first and not any(turned))]
    left, found, first = list(runners), [], race.first != alike
    for _ in range(min(number, len(left)) if first else len(left)):
        ringing = first_of(left, drawn.one)
        left.remove(ringing)
        found.append(runners[ringing][0])
    return found if first else found[::-1][:number]


def _reweighted(drawn: _Drawn, runners: list[Runner], rates: list[float], *, once: bool) -> int:
    """Return the index of the first to ring in a second race at other ``rates``, after which nothing more is told.

    Raises ``NeedsValue`` unless it is asked who is first, ``once``, and the race before told no more than that.
    """
    root = star_of(runners) if once else None
    if root is None:
        raise NeedsValue(
            "second-race", "random noise is used in a second race, with other weights, and more is known of it"
        )
    raced = [*root.all_behind()]
    before = [runner.rate if runner in raced else 0.0 for runner in runners]
    first = runners.index(root) if root in runners else None
    found = drawn.one(law_of_second(before, rates, sum(runner.rate for runner in raced), first))
    for runner in raced:
        runner.told = True
    for _, uniform, _ in drawn.racing:
        uniform.known.runner = None
    return drawn.racing[found][0]


def _and_numbers(scores: Sequence[Any], found: list[int], number: int) -> list[int]:
    """Return the order with the numbers behind the random ones."""
    rest = [at for at in range(len(scores)) if at not in found]
    values = [-inf if isinstance(scores[at], Continuous) else scores[at] for at in rest]
    if len(set(values)) < len(values):
        raise NeedsValue("equal-numbers", "the order of equal numbers behind random ones is asked for")
    return [*found, *(rest[at] for at in np.argsort(values)[::-1])][:number]
