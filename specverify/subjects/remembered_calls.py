"""Memoise a verifier's calls: compute the law of the result for each call's arguments once, then sample from it.

Scenarios, numbers of drafts and checks repeat the same pmfs and drafts many times. A call is a function of its
arguments and its draws (``program_is_its_draws`` tests this), so one enumeration suffices for all repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic.buffers import arrays_answer
from specverify.laws import rounding
from specverify.laws.paths import RunBudget, Undecided, paths
from specverify.laws.rounding import Rounding, worst
from specverify.reference import Draws
from specverify.subjects.emitted import ends_left_open
from specverify.subjects.subject import Context

MOST_PATHS = 2000
"""The law of a call with more paths is not memoised."""
MOST_LOST_PATHS, WORTH = 10_000, 4
"""Memoisation of a verifier ends if it does not pay.

The calls with too many paths have then taken ``MOST_LOST_PATHS`` paths, and more than ``WORTH`` times as many as the
memoised calls. A verifier that draws in a loop until a token is accepted has few calls with few paths.
"""


class _PossibleResult(NamedTuple):
    """One possible result of a verifier's call (``answer``), and its probability (``mass``).

    ``rounding`` has the dtypes and the numbers of draws of the call, from which the error of ``mass`` is bounded.
    """

    answer: Any
    mass: float
    rounding: Rounding


class _EmissionLaw(NamedTuple):
    """The law of a call's result; empty if the call has more than ``MOST_PATHS`` paths.

    ``emitted`` has the possible results, and ``masses`` their probabilities in the same order.
    """

    emitted: tuple[_PossibleResult, ...]
    masses: np.ndarray[Any, np.dtype[np.float64]]
    """The probability of each result."""
    paths: int = 0
    """The number of paths that were followed."""


_UNKNOWN = _EmissionLaw((), np.empty(0))


class _LawMemory:
    """The laws of a verifier's calls, each computed once and kept for later calls with the same arguments.

    Only the laws of the verifier that was used last are kept.
    """

    def __init__(self) -> None:
        self.verify: Any = None
        self.laws: dict[Any, _EmissionLaw] = {}
        self.kept = self.lost = 0

    def of(self, verify: Any, key: Any, call: Callable[[Draws], Any]) -> _EmissionLaw:
        """Return the law of ``call``, a call of ``verify`` with the arguments ``key``; an empty law if it is not known.

        Only the laws of one verifier are kept: those of any other are discarded.
        """
        if self.verify is not verify:
            self.verify, self.laws, self.kept, self.lost = verify, {}, 0, 0
        if key in self.laws:
            return self.laws[key]
        if self.lost >= MOST_LOST_PATHS and self.lost > WORTH * self.kept:
            return _UNKNOWN
        law = self.laws[key] = _worked_out(call)
        self.kept += law.paths if law.emitted else 0
        self.lost += 0 if law.emitted else law.paths
        return law


_MEMORY = _LawMemory()


def remembered(draws: Draws) -> AbstractContextManager[None]:
    """Return the context manager in which ``draws`` answer the random calls of a verifier, with memoisation.

    The function itself is the request for memoisation: ``memoised`` computes the law of a call once if it gets this
    function as context, and makes the call each time with any other function.
    """
    return answered_everywhere(draws)


def memoised(
    answered: Context, verify: Any, given: Mapping[str, Any], call: Callable[[], Any], more: Any = ()
) -> Callable[[Draws], Any]:
    """Return the function of draws that makes ``call()`` in the context ``answered(draws)`` and returns its result.

    If ``answered`` is the function ``remembered``, the returned function draws the result from the law of the call
    instead, unless the call has too many paths. The law is computed once for each ``verify``, ``given`` (its NumPy
    arguments by name) and ``more`` (anything else that the call depends on).
    """

    def made(draws: Draws) -> Any:
        with answered(draws):
            return call()

    if answered is not remembered:
        return made
    key = (*((name, array.dtype.str, array.shape, array.tobytes()) for name, array in given.items()), more)
    law = _MEMORY.of(verify, key, made)
    return partial(_drawn, law) if law.emitted else made


def _drawn(law: _EmissionLaw, draws: Draws) -> Any:
    """Draw one possible result of a verifier's call from ``law`` by ``draws``, and return it.

    The floats and draws of the memoised call (its ``Rounding``) are recorded, as if the call were run.
    """
    result = law.emitted[draws.categorical(law.masses, ("verified", len(law.masses)))]
    _note(result.rounding)
    return result.answer


def _worked_out(call: Callable[[Draws], Any]) -> _EmissionLaw:
    """Return the law of the result of ``call``, by enumerating its paths; an empty law if there are too many.

    Paths that are too rare to be followed count as well; a loop that draws until a token is accepted has many.
    """
    followed: list[Any] = []
    spent = RunBudget(MOST_PATHS + 1)
    with ends_left_open(), arrays_answer():  # once for all runs
        for path in paths(call, rare=spent.leave_out):
            followed.append(path)
            spent.follow()
            if spent.is_over:
                break
    if spent.is_over or sum(spent.lost) > rounding.FLOAT64 * len(followed):
        return _UNKNOWN._replace(paths=MOST_PATHS)
    result: dict[Any, _PossibleResult] = {}
    for path in followed:
        for outcome, share in path.outcome.outcomes if isinstance(path.outcome, Undecided) else ((path.outcome, 1),):
            before = result.get(outcome, _PossibleResult(outcome, 0.0, Rounding()))
            seen = worst(before.rounding, path.rounding)
            result[outcome] = _PossibleResult(outcome, before.mass + float(path.weight * share), seen)
    masses = np.array([each.mass for each in result.values()])
    return _EmissionLaw(tuple(result.values()), masses / masses.sum(), len(followed))


def _note(seen: Rounding) -> None:
    """Record ``seen``, the dtypes and numbers of draws of a memoised call, as if the call were run.

    One draw less than in ``seen`` is recorded, because the draw of the result from the memoised law is already
    recorded.
    """
    rounding.saw_spacing(seen.epsilon)
    for _ in range(seen.decisions - 1):
        rounding.drew(seen.support)
    rounding.looked_up(seen.cells)
    rounding.known_within(seen.within)
    for _ in range(seen.uniforms):
        rounding.count_comparison(again=False)
