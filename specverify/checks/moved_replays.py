"""Replays of a program with other generator states, times and operating-system bytes: only its draws may matter.

A path is sampled and its choices recorded. The program then runs again with the same choices, while every reachable
generator has another state, the clocks show another time and the operating system returns other random bytes. A hidden
draw that changes the draws or the output with probability x per replay escapes n replays with probability (1 - x)^n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from specverify.intercept.cpython.sandbox import Found, moved, probed
from specverify.intercept.everywhere import AT_ONCE
from specverify.intercept.refusals import NeedsValue, gifts_kept
from specverify.intercept.streams import CHOSEN, Noted, states_noted
from specverify.laws.draws import Decision, Narrated, NotAFunctionOfItsDraws, Replayed, Tape
from specverify.reference import Draws, Sampled
from specverify.subjects.call_arguments import FIRST_SEED, runs_begin_at

REPLAYS_OF_A_PATH = 4
OF_OTHER_SEEDS = REPLAYS_OF_A_PATH - 1
"""Which replay of a path gets other seeds as arguments. The output may depend on them by generators alone, whose draws
are intercepted."""
BY_SEED = (
    ", in a call with another seed: random numbers that the program computes from its seed by itself, as by a hash of "
    "seed and position, are not intercepted"
)
SEEDS_APART = 1000
MISS = 1e-3
MOST_ESTIMATED = 1e6
"""The largest number of paths that is estimated."""
WAY_OUT = (
    "pass the generator in or use torch, NumPy, JAX or random, whose draws are intercepted; or let samples decide "
    "(sampled=True, or the check samples_agree)"
)
CARRIED = (
    "if it keeps something from call to call, such as numbers drawn ahead, a pool of n-grams or how many drafts to "
    "make, let each call begin in the state of the first one ({how}); if it visits a set of objects, whose order "
    "depends on their addresses, visit a list or a dictionary; else "
)
BY_ENGINES = "create the engine inside the call, or pass make(scenario), which returns a new call(prompt) for every run"
BY_VERIFIERS = "make the verifier in it: lambda *given: MyVerifier()(*given)"
KEPT = "what is drawn once and kept, such as the weights of a model, must be drawn before the call"


class Replays(NamedTuple):
    """The result of replaying a program: the number of replays, and how one of them differed, or ""."""

    number: int
    fault: str = ""
    """How the program's behaviour depends on something other than its draws; "" if it does not."""
    refusal: str = ""
    """Why the program could not be replayed; "" if it could."""
    given: tuple[str, ...] = ()
    """Random numbers that the program received as plain values, for use as seeds."""
    seeded: tuple[str, ...] = ()
    """The draws whose generator had equal states in the original run and in a replay that changed all reachable state.
    """
    unseeded: tuple[str, ...] = ()
    """The draws whose generator had another state in the replay."""
    fixed: tuple[str, ...] = ()
    """The draws whose generator had equal states in a call with another seed."""
    of_seed: tuple[str, ...] = ()
    """The draws whose generator had another state in a call with another seed."""
    runs: int | None = None
    """Estimated number of runs of these replays and of one enumeration of the program; None if it is not estimated."""
    by_name: bool = False
    """Whether all runs drew through ``draws`` alone, so that no rule of interception was used."""


def noticed(replays: int) -> float:
    """Return how probable a change of a replay must be for ``replays`` replays to detect it.

    A hidden draw that changes each replay with this probability is missed with probability ``MISS``. The result is 1
    without replays.
    """
    return 1.0 if replays < 1 else 1 - MISS ** (1 / replays)


def find_unseen_calls(run: Callable[[Draws], Any], seed: int = 0) -> Found:
    """Return the calls of the program ``run`` that may draw random numbers without interception.

    Such calls are draws that are not intercepted, reads of clocks and system bytes, and unknown native code. The
    program runs twice; its intercepted draws are made with the seed ``seed`` and the next one.
    """
    with suppress(NeedsValue):  # libraries load parts of themselves at the first run
        run(Tape(seed))
    with probed() as result:
        for tape in (seed, seed + 1):
            run(Tape(tape))
        return result()


def replayed(run: Callable[[Draws], Any], number: int, seed: int = 0) -> Replays:
    """Replay sampled paths of the program ``run`` with other generator states, clocks and system bytes.

    ``number`` is the number of replays; they end at the first that differs from its path. ``seed`` samples the paths.
    """
    done, made_from, of_seeds, paths, drawn = 0, _MadeFrom(), _MadeFrom(), list[float](), 0
    with gifts_kept() as given:
        while done < number:
            first = Narrated(Sampled(seed + done))
            with states_noted() as before:
                outcome = run(first)
            paths.append(_paths_estimated(first.decisions))
            drawn += len(before)
            choices = tuple(decision.outcome for decision in first.decisions)
            for turn in range(min(REPLAYS_OF_A_PATH, number - done)):
                reseeded = turn == OF_OTHER_SEEDS
                with states_noted() as now, _other_seeds(done) if reseeded else nullcontext():
                    fault = _difference(run, first, choices, outcome, moved(done), sites=not reseeded)
                (of_seeds if reseeded else made_from).compare(before, now)
                if reseeded and fault:
                    fault = f"{fault}{BY_SEED}"
                drawn += len(now)
                done += 1
                if fault:
                    return Replays(done, fault, given=tuple(given))
    runs = done + len(paths) + round(min(sum(paths) / len(paths), MOST_ESTIMATED)) if paths else None
    seeded, unseeded, fixed, of_seed = (
        tuple(kind) for made in (made_from, of_seeds) for kind in (made.seeded, made.unseeded)
    )
    return Replays(
        done, "", "", tuple(given), seeded, unseeded, fixed, of_seed, runs, by_name=bool(paths) and not drawn
    )


def _other_seeds(number: int) -> AbstractContextManager[None]:
    return runs_begin_at(FIRST_SEED + (number + 1) * SEEDS_APART)


def _paths_estimated(decisions: Sequence[Decision]) -> float:
    """Return an estimate of the number of paths of a program, from one sampled path: 1 / P(path).

    It is at most ``MOST_ESTIMATED``. ``decisions`` are those of the path.
    """
    weights = (float(each.weights[each.outcome]) / float(sum(each.weights)) for each in decisions)
    return 1 / max(math.prod(weights), 1 / MOST_ESTIMATED)


class _MadeFrom:
    """The program lines that draw random numbers, in two groups.

    ``seeded``: the generator had the same state in the original run and in a replay. ``unseeded``: it had another
    state. The replay changes all generator states, clocks and system bytes before the run.
    """

    def __init__(self) -> None:
        """Create an empty record."""
        self.seeded: dict[str, None] = {}
        self.unseeded: dict[str, None] = {}

    def compare(self, one: Noted, other: Noted) -> None:
        """Add the program lines that draw in both runs to ``seeded`` or ``unseeded``.

        ``one`` is the record of the original run, and ``other`` that of its replay. A line is seeded if its generator
        had the same state in both, which the program set.
        """
        for (site, state), (_, moved_state) in zip(one, other, strict=False):
            if state is not None and moved_state is not None:
                names = self.seeded if state == moved_state != CHOSEN else self.unseeded
                names[" at ".join(map(str, site[:2]))] = None


def _difference(
    run: Callable[[Draws], Any],
    first: Narrated,
    choices: Any,
    outcome: Any,
    world: AbstractContextManager[None],
    *,
    sites: bool,
) -> str:
    """Return how a run with equal ``choices`` in another ``world`` differs from the run ``first``; "" if it does not.

    ``outcome`` is that of the first run. ``sites`` is False if the names of draws, which contain the seed of their
    generator, may differ.
    """
    again, decisions = Narrated(Replayed(choices)), first.decisions
    try:
        with world:
            repeated = run(again)
    except NotAFunctionOfItsDraws as found:
        before = decisions[len(again.decisions)].site if len(again.decisions) < len(decisions) else again.asked
        told = str(found) if before == again.asked else f"{found}; in the run before it was made at {before}"
        return told + _why(first, again, elsewhere=before != again.asked)
    for place, (one, other) in enumerate(zip(decisions, again.decisions, strict=False)):
        if one.weights != other.weights or (sites and one != other):
            drawn = f"draw {place} was {one.weights} at {one.site} and on replay {other.weights} at {other.site}"
            return drawn + _why(first, again, elsewhere=one.site != other.site)
    if len(again.decisions) < len(decisions):
        return f"the draw at {decisions[len(again.decisions)].site} was not made on replay"
    return "" if repeated == outcome else f"the choices {choices} gave {outcome} and on replay {repeated}"


def _why(one: Narrated, other: Narrated, *, elsewhere: bool) -> str:
    """Return a phrase with a possible reason why two runs made different draws; "" if none is known.

    ``elsewhere`` states that the draws are at different program lines. ``one`` and ``other`` are the records of the two
    runs.
    """
    if len(one.threads) > 1 or len(other.threads) > 1:
        return f": {AT_ONCE}"
    return f": {KEPT}" if elsewhere else ""
