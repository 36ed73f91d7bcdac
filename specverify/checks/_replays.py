"""Replaying a program in other states of the world: what it does must hang on its draws alone.

A path is sampled, its choices are noted, and it is run again with the same choices while every generator that can be
reached stands elsewhere, the clocks show another time and the operating system gives other bytes. A hidden draw that
changes the draws or the output with probability x a replay escapes n replays with probability (1 - x)^n.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple

from reference import Draws, Sampled
from specverify.intercept.block import gifts_kept
from specverify.intercept.moved import moved
from specverify.intercept.probe import Found, probed
from specverify.intercept.unknowns.deferred import NeedsValue
from specverify.laws.draws import Narrated, NotAFunctionOfItsDraws, Replayed, Tape

REPLAYS_OF_A_PATH = 4
MISS = 1e-3
WAY_OUT = (
    "pass the generator in or use torch, NumPy or random, whose draws are answered; or let samples decide "
    "(sampled=True, or the check samples_agree)"
)


class Replays(NamedTuple):
    """What came of replaying a program."""

    number: int
    fault: str = ""
    """Why it is no function of its draws, or nothing."""
    refusal: str = ""
    """Why it could not be run, or nothing."""
    given: tuple[str, ...] = ()
    """Numbers that it was given as they are, for seeds."""


def noticed(replays: int) -> float:
    """Return the probability with which a hidden draw must change a replay to be missed with at most ``MISS``."""
    return 1.0 if replays < 1 else 1 - MISS ** (1 / replays)


def looked_at(run: Callable[[Draws], Any], seed: int = 0) -> Found:
    """Return what is seen of two runs that nobody answers."""
    with suppress(NeedsValue):  # libraries load parts of themselves at the first run
        run(Tape(seed))
    with probed() as found:
        for tape in (seed, seed + 1):
            run(Tape(tape))
        return found()


def replayed(run: Callable[[Draws], Any], number: int, seed: int = 0) -> Replays:
    """Replay paths of a program ``number`` times, each in another state of the world."""
    done = 0
    with gifts_kept() as given:
        while done < number:
            first = Narrated(Sampled(seed + done))
            outcome = run(first)
            choices = tuple(decision.outcome for decision in first.decisions)
            for _ in range(min(REPLAYS_OF_A_PATH, number - done)):
                fault = _difference(run, first.decisions, choices, outcome, moved(done))
                done += 1
                if fault:
                    return Replays(done, fault, given=tuple(given))
    return Replays(done, given=tuple(given))


def _difference(
    run: Callable[[Draws], Any], decisions: Any, choices: Any, outcome: Any, world: AbstractContextManager[None]
) -> str:
    again = Narrated(Replayed(choices))
    try:
        with world:
            repeated = run(again)
    except NotAFunctionOfItsDraws as found:
        return str(found)
    for place, (one, other) in enumerate(zip(decisions, again.decisions, strict=False)):
        if one != other:
            return f"draw {place} was {one.weights} at {one.site} and on replay {other.weights} at {other.site}"
    if len(again.decisions) < len(decisions):
        return f"the draw at {decisions[len(again.decisions)].site} was not made on replay"
    return "" if repeated == outcome else f"the choices {choices} gave {outcome} and on replay {repeated}"
