"""Examinations of a verifier with more drafts than its usual scenarios have.

They have few paths, because most pmfs are one-hot, or p and q nearly equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from specverify.intercept.refusals import NeedsValue
from specverify.laws.deep_scenarios import (
    CARRIED,
    DEEP_GAMMA,
    FIRST_REJECTIONS,
    MANY_LATER,
    MANY_LEFT,
    ONE_ROW_SCENARIOS,
    SCALES_APART,
    deep_scenarios,
    last_rows_open,
)
from specverify.laws.draws import Tape
from specverify.laws.enumeration import whole_run
from specverify.laws.scenarios import Scenario
from specverify.subjects.subject import InScenario, Variant

Cases = tuple[tuple[Variant, Scenario], ...]
Deep = Callable[[], Cases]
AtGamma = Callable[[int], Variant]
FEWER = 4
"""The number of drafts if the verifier does not run on ``DEEP_GAMMA``."""
ORDINARY = 3
"""The number of drafts that the ordinary scenarios already cover."""
LEAST: Final = 2
"""The number of drafts with which every verifier is examined by default."""


def deep_of(
    variant: AtGamma,
    gammas: tuple[int, ...] | None,
    more: tuple[Scenario, ...] = (),
    plain: AtGamma | None = None,
    cases: Cases = (),
    greedy: AtGamma | None = None,
) -> Deep:
    """Return a function without arguments that returns the cases with many drafts: pairs (variant, scenario).

    * ``variant``: ``variant(gamma)`` returns the variant with gamma drafts.
    * ``gammas``: The largest of these is the number of drafts in all cases. None: the largest number with which the
      verifier runs, of ``DEEP_GAMMA``, ``FEWER`` and ``LEAST``.
    * ``more``: Further scenarios.
    * ``plain``: ``plain(gamma)`` returns the variant without truncation of p, for scenarios in which p and q are nearly
      equal, or rows must have all their tokens. None: ``variant`` is used there too.
    * ``cases``: Further cases, of any number of drafts.
    * ``greedy``: ``greedy(gamma)`` returns the variant that decodes greedily. None: there is none.
    """
    return partial(_deep, variant, gammas, more, plain or variant, cases, greedy)


def where_it_runs(variant: Variant, scenarios: Sequence[Scenario]) -> Cases:
    """Return the pairs of ``variant`` with each of ``scenarios``; () if the variant raises in the first of them.

    A verifier may have a largest number of drafts, and raise above it; then these scenarios are left out.
    """
    return tuple((variant, scenario) for scenario in scenarios) if _runs_in(variant, scenarios[0]) else ()


def _runs_in(variant: Variant, scenario: Scenario) -> bool:
    here = InScenario(variant, scenario, rational=False)
    try:
        whole_run(here.decoder, here.prompt)(Tape(0))
    except NeedsValue:
        pass
    except Exception:  # noqa: BLE001 - it may refuse so many drafts in any way
        return False
    return True


def _deep(
    variant: AtGamma,
    gammas: tuple[int, ...] | None,
    more: tuple[Scenario, ...],
    plain: AtGamma,
    cases: Cases,
    greedy: AtGamma | None,
) -> Cases:
    most = max(gammas) if gammas else _most(variant)
    scenarios = (*(deep_scenarios(most) if most > ORDINARY else ()), *more)
    between = () if gammas else range(ORDINARY + 1, most)
    whole_rows = (*ONE_ROW_SCENARIOS, MANY_LEFT, *MANY_LATER, *SCALES_APART, *CARRIED)
    return (
        *((variant(most), scenario) for scenario in scenarios),
        *((variant(gamma), last_rows_open(gamma)) for gamma in between),
        *((plain(most), scenario) for scenario in whole_rows),
        *((greedy(most), scenario) for scenario in FIRST_REJECTIONS if greedy),
        *cases,
    )


def _most(variant: AtGamma) -> int:
    """Return the largest number of drafts with which the verifier runs, of ``DEEP_GAMMA``, ``FEWER`` and ``LEAST``.

    To test whether it runs, ``variant(gamma)`` makes it with gamma drafts. ``LEAST`` is returned without a test.
    """
    tried = (gamma for gamma in (DEEP_GAMMA, FEWER) if _runs_in(variant(gamma), deep_scenarios(gamma)[0]))
    return next(tried, LEAST)
