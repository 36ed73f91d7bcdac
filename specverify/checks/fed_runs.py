"""Fed runs: a path of the enumeration is sampled, the plain program gets random numbers from it, and both must agree.

A coupled run starts the program and follows it to a path of the enumeration. A fed run starts from a path of the
enumeration and runs the program with its numbers. So a path that the program never takes is found, and a path with a
small probability is tested too if the program has few paths.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.coupled_runs import SEED, difference_of, end_of, plain_end
from specverify.intercept.interpreters import Gathered
from specverify.intercept.recorded_numbers import NotRecorded
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.replayer import Replayer
from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed, Tape
from specverify.laws.paths import Path, paths
from specverify.reference import Draws

FEW = 24
"""A program with at most this many paths is run with numbers from each of its paths."""
_TOO_RARE = 1e-6
"""A rarer outcome may be left out by an enumeration, so it shows no further path."""


class FedRuns(NamedTuple):
    """The result of running the unchanged program with the random numbers of enumerated paths.

    Each run should have the result of its path.
    """

    runs: int
    """Number of paths whose result the program repeated."""
    parted: str = ""
    """Description of the first path with another result and of the first call that differs; "" if there is none."""
    every_path: bool = False
    """Whether every path of the program was used."""
    narrow: int = 0
    """Number of paths for which no random numbers were found that are far enough from rounding."""
    unrecorded: str = ""
    """Why the runs stopped early: a call without a recording rule, or one that is not supported; "" if they did not."""


class _FedPath(NamedTuple):
    """An enumerated path: its result ``ended``, and the intervals in which its random numbers lie (``gathered``)."""

    ended: Any
    gathered: Gathered


def fed(
    program: Callable[[Draws], Any],
    runs: int,
    seed: int = 0,
    enumerated: Callable[[Draws], Any] | None = None,
    *,
    few: int = FEW,
) -> FedRuns:
    """Run the plain program with numbers from up to ``runs`` sampled paths, and compare the results.

    The result has the number of paths that the program repeats. The runs end early in two cases:

    * The program does not repeat a path. The result describes it.
    * A call cannot be recorded or is not supported.

    Parameters
    ----------
    program
        A function of draws. It runs its code inside ``answered_everywhere``, which intercepts the random calls.
    runs
        The number of paths, sampled by their probability.
    seed
        Seed of the sample.
    enumerated
        The program whose paths are sampled, if it is not ``program``. Its last token may stay symbolic.
    few
        If the program has at most this many paths, each path is used once.
    """
    few = min(few, runs)

    def followed(draws: Draws) -> _FedPath:
        gathered = Gathered(draws)
        return _FedPath(end_of(enumerated or program, gathered), gathered)

    done = narrow = 0
    try:
        listed = _every_path(followed, few)
        every = bool(listed)
        sampled = (followed(Tape(SEED + seed + number)) for number in range(runs))
        for number, path in enumerate(listed if every else sampled):
            if isinstance(path.ended, NeedsValue | NotAFunctionOfItsDraws):
                return FedRuns(done, narrow=narrow, unrecorded=str(path.ended))
            fault = _difference(program, path, SEED + seed + number)
            if fault:
                return FedRuns(done, fault, every, narrow)
            done, narrow = (done, narrow + 1) if fault is None else (done + 1, narrow)
    except (NotRecorded, NotAFunctionOfItsDraws) as reason:
        return FedRuns(done, narrow=narrow, unrecorded=str(reason))
    return FedRuns(done, "", every, narrow)


def _every_path(program: Callable[[Draws], _FedPath], most: int) -> list[_FedPath]:
    """Return the results of all paths of ``program``; [] if it has more than ``most``.

    The first paths often show that there are more: another outcome of one of their draws leads to another path.
    """
    result = list[_FedPath]()
    for path in islice(paths(program), most + 1 if most else 0):
        result.append(path.outcome)
        if max(len(result), 1 + _other_outcomes(path)) > most:
            return []
    return result


def _other_outcomes(path: Path[Any]) -> int:
    """Count the outcomes of the draws of ``path`` that it does not follow, without those that are too rare to count."""
    number, before = 0, 1.0
    for decision in path.decisions:
        weights = [before * float(weight) for weight in decision.weights]
        before = weights.pop(decision.outcome)
        number += sum(weight > _TOO_RARE for weight in weights)
    return number


def _difference(program: Callable[[Draws], Any], path: _FedPath, place: int) -> str | None:
    """Describe how a run of ``program`` with the numbers of ``path`` differs from the path; "" if it agrees.

    The program runs unchanged: only the results of its random calls are replaced. Returns None if no numbers inside the
    intervals of the path are found. ``place`` selects the numbers and the seeds of the run. Raises ``NotRecorded`` for
    a call that is not supported.
    """
    numbers = path.gathered.numbers(np.random.default_rng(place))
    if numbers is None:
        return None
    replayer = Replayer(Replayed(path.gathered.by_name), numbers)
    plain = plain_end(program, replayer, place)
    if isinstance(plain, NeedsValue):
        raise NotRecorded(str(plain))
    first = replayer.parted or ("" if isinstance(plain, Exception) else replayer.left())
    return difference_of(plain, path.ended, first, "the path")
