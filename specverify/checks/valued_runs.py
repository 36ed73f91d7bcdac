"""Runs of a program with plain values in place of symbolic random numbers: its behaviour must be the same.

A path is sampled with symbolic numbers, and each number gets a value that satisfies the constraints of the path. The
program then runs again with these values as plain floats. Draws that return an outcome, such as a multinomial, return
the outcome of the path again. If the second run emits other tokens, the program behaves differently when it is
examined, so the computed law is not the law of the program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np

from specverify.intercept.distributions import Boundary, MoreNumbers
from specverify.intercept.symbolic.uniform import uniforms_made, values_of
from specverify.laws.draws import Decision, Narrated
from specverify.laws.paths import Undecided
from specverify.laws.rounding import FLOAT32, collected
from specverify.reference import Draws, Pmf, Sampled, Site

SHOWN = 6
ALIGNMENTS = 64
"""The most assignments of repeated outcomes to draws that are tried if some draws are not repeated."""
Valued = Callable[[Draws, Boundary], Any]
"""``run(draws, boundary)`` runs the program with random numbers whose values ``boundary`` gives."""


class _Elsewhere(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if the program makes a draw that the first run did not make, or made with another number of outcomes."""


class _Outcomes:
    """Draws that repeat the recorded outcomes of a first run, found by the site of the draw."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        """Store ``decisions``, the recorded draws of the run with symbolic numbers."""
        self._left: dict[Site, list[Decision]] = defaultdict(list)
        self._asked: set[Site] = set()
        for decision in decisions:
            self._left[decision.site].append(decision)

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the recorded outcome of the draw from ``pmf`` at the place ``site`` in the program.

        Each recorded outcome is returned once. If several are left for this place, the first that was drawn from an
        equal pmf is returned; if there is none, the first of all. The draws may come in another order than in the first
        run, in which the last draw of a batch stays symbolic until it is read.

        Raises ``_Elsewhere`` if no outcome is left, or if the returned one was drawn from a pmf of another length.
        """
        left = self._left.get(site)
        self._asked.add(site)
        if not left:
            raise _Elsewhere(f"an outcome is drawn at {site} that was not drawn before")
        weights = np.asarray(pmf, dtype=float)
        decision = left.pop(next((place for place, item in enumerate(left) if _are(item.weights, weights)), 0))
        if len(pmf) != len(decision.weights):
            raise _Elsewhere(f"an outcome of {len(pmf)} is drawn at {site}, of {len(decision.weights)} before")
        return decision.outcome

    def left(self) -> frozenset[Site]:
        """Return the sites at which only some of the recorded outcomes were drawn again."""
        return frozenset(site for site in self._asked if self._left.get(site))


def _are(weights: Sequence[Any], others: Any) -> bool:
    return len(weights) == len(others) and np.allclose(np.asarray(weights, dtype=float), others)


def with_values(run: Callable[[Draws], Any], valued: Valued, number: int, seed: int) -> str:
    """Run ``number`` sampled paths again with plain values, and describe the first difference; "" if there is none.

    ``run`` is the program with symbolic numbers, and ``valued`` the program with values. ``seed`` samples the paths.
    """
    return next(filter(None, (_difference(run, valued, place) for place in range(seed, seed + number))), "")


def raises_without_values(run: Callable[[Draws], Any], valued: Valued, number: int, seed: int) -> str:
    """Describe how a program that raises with symbolic numbers differs with plain floats; "" if it does not.

    At most ``number`` paths of ``run`` are sampled, by ``seed``. The first path that raises is repeated by ``valued``,
    with floats that satisfy the constraints of the path. Another error, or none, is a difference.
    """
    for place in range(seed, seed + number):
        first = Narrated(Sampled(place))
        with uniforms_made() as made:
            raised = _raised(partial(run, first))
        if not raised:
            continue
        values = values_of(made, np.random.default_rng(place)) if made else None
        if values is None:
            return ""
        again = _raised(partial(valued, _Outcomes(first.decisions), Boundary(0.5, values=values)))
        goes_on = f"it raises {again}" if again else "it continues"
        return "" if again == raised else f"it raises {raised}; with {_shown(values)} for its random numbers {goes_on}"
    return ""


def _raised(run: Callable[[], Any]) -> str:
    """Return the error that ``run`` raises as text; "" if it raises none, or makes more draws than were recorded."""
    try:
        run()
    except (_Elsewhere, MoreNumbers):
        return ""
    except Exception as error:  # noqa: BLE001 - whatever it raises
        return f"{type(error).__name__}: {error}".rstrip(": ")
    return ""


def _difference(run: Callable[[Draws], Any], valued: Valued, seed: int) -> str:
    """Describe the difference between a run with symbolic numbers and a run with plain values on the same path.

    ``run`` takes symbolic numbers, ``valued`` takes values, and ``seed`` samples the path. Returns "" if there is no
    difference, or if the runs cannot be compared.
    """
    first = Narrated(Sampled(seed))
    with uniforms_made() as made, collected() as seen:
        outcome = run(first)
    if isinstance(outcome, Undecided) or not made or seen.rounding().epsilon > FLOAT32:
        return ""
    values = values_of(made, np.random.default_rng(seed))
    if values is None:
        return ""
    said, left = _compared(valued, first.decisions, values, outcome)
    fewer = islice(_without_some(first.decisions, left if said else frozenset()), ALIGNMENTS)
    return said if all(_compared(valued, some, values, outcome)[0] for some in fewer) else ""


def _compared(
    valued: Valued, decisions: Sequence[Decision], values: list[float], outcome: Any
) -> tuple[str, frozenset[Site]]:
    """Run ``valued`` with ``values``; describe how its result differs from ``outcome``, or return "".

    ``decisions`` are the recorded draws that it repeats. The second item of the result has the sites at which only some
    of them were repeated.
    """
    outcomes, given = _Outcomes(decisions), f"with {_shown(values)} for its random numbers"
    try:
        again = valued(outcomes, Boundary(0.5, values=values))
    except _Elsewhere as other:
        return f"{given} {other}", outcomes.left()
    except Exception as error:  # noqa: BLE001 - whatever it raises, it did not before
        return f"{given} it raises {type(error).__name__}: {error}", outcomes.left()
    return "" if again == outcome else f"{given} it emits {again}, not {outcome}", outcomes.left()


def _without_some(decisions: Sequence[Decision], sites: frozenset[Site]) -> Iterator[list[Decision]]:
    """Yield ``decisions`` with some of those at ``sites`` left out: first each one, then each two, and so on.

    A draw does not take place if its outcome is never read, so a run with plain values may make fewer draws.
    """
    places = [place for place, decision in enumerate(decisions) if decision.site in sites]
    for number in range(1, len(places) + 1):
        for dropped in combinations(places, number):
            yield [decision for place, decision in enumerate(decisions) if place not in dropped]


def _shown(values: list[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:SHOWN])
    return f"({shown}{', ...' if len(values) > SHOWN else ''})"
