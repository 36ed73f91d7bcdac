"""Fed runs: a path of the enumeration is chosen, and the plain program is given numbers of its cell; both end alike.

Coupled runs begin with the program and end at a path; fed runs begin with a path and end at the program. So a path that
seldom comes is run as well, where paths are few, and one that the program never takes shows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.coupled_runs import SEED, difference_of, end_of, plain_end
from specverify.intercept.gathered import Gathered
from specverify.intercept.recorded_numbers import NotRecorded
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.replayer import Replayer
from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed, Tape
from specverify.laws.paths import paths
from specverify.reference import Draws

FEW = 24
"""If a program has no more paths than this, all of them are fed."""


class FedRuns(NamedTuple):
    """The result of running a program with numbers from sampled paths."""

    runs: int
    """Paths that ended alike."""
    parted: str = ""
    """The first path that did not, and the first call at which they part; nothing if all did."""
    every_path: bool = False
    """Whether the paths are all that there are."""
    narrow: int = 0
    """Paths that no number away from rounding was found for."""
    unrecorded: str = ""
    """Why no further path was run: a call that has no row, or that is refused."""


class _Followed(NamedTuple):
    """A path: its result, and numbers inside its intervals."""

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

    Parameters
    ----------
    program
        A program of draws, whose random calls are answered inside ``answered_everywhere``.
    runs
        The number of paths, sampled by their probability.
    seed
        Makes the paths of two calls differ.
    enumerated
        As for ``coupled``.
    few
        If there are no more paths than this, each of them is run once instead.
    """
    few = min(few, runs)

    def followed(draws: Draws) -> _Followed:
        gathered = Gathered(draws)
        return _Followed(end_of(enumerated or program, gathered), gathered)

    done = narrow = 0
    try:
        listed = [path.outcome for path in islice(paths(followed), few + 1)] if few else []
        every = 0 < len(listed) <= few
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


def _difference(program: Callable[[Draws], Any], path: _Followed, place: int) -> str | None:
    """Return how the plain run differs from its path, or ""; None if no numbers of its cell were found."""
    numbers = path.gathered.numbers(np.random.default_rng(place))
    if numbers is None:
        return None
    replayer = Replayer(Replayed(path.gathered.by_name), numbers)
    plain = plain_end(program, replayer, place)
    if isinstance(plain, NeedsValue):
        raise NotRecorded(str(plain))
    first = replayer.parted or ("" if isinstance(plain, Exception) else replayer.left())
    return difference_of(plain, path.ended, first, "the path")
