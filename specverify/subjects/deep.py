"""A verifier at more drafts than its variants have: in scenarios that are certain but for a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from specverify.intercept.unknowns.deferred import NeedsValue
from specverify.laws.deep_scenarios import DEEP_GAMMA, deep_scenarios
from specverify.laws.draws import Tape
from specverify.laws.enumeration import whole_run
from specverify.laws.scenarios import Scenario
from specverify.subjects.subject import InScenario, Variant

Cases = tuple[tuple[Variant, Scenario], ...]
Deep = Callable[[], Cases]
FEWER = 4
"""Drafts that are tried where it does not run on ``DEEP_GAMMA``."""
ORDINARY = 3
"""Drafts that the ordinary scenarios show."""


def deep_of(variant: Callable[[int], Variant], gammas: tuple[int, ...] | None, more: tuple[Scenario, ...] = ()) -> Deep:
    """Return what is looked at of a verifier beyond the ordinary scenarios, ``variant(gamma)`` being its variants.

    With ``gammas`` left out it is run once to see whether it takes so many drafts: one that is made for fewer raises,
    and is looked at with what it takes. Of gammas that somebody gave it is the largest. ``more`` are scenarios besides.
    """
    return partial(_deep, variant, gammas, more)


def where_it_runs(variant: Variant, scenarios: Sequence[Scenario]) -> Cases:
    """Return the variant in these scenarios, or nowhere if it raises in the first of them."""
    here = InScenario(variant, scenarios[0], rational=False)
    try:
        whole_run(here.decoder, here.prompt)(Tape(0))
    except NeedsValue:
        pass
    except Exception:  # noqa: BLE001 - it may refuse so many drafts in any way
        return ()
    return tuple((variant, scenario) for scenario in scenarios)


def _deep(variant: Callable[[int], Variant], gammas: tuple[int, ...] | None, more: tuple[Scenario, ...]) -> Cases:
    if gammas:
        most = max(gammas)
        scenarios = (*(deep_scenarios(most) if most > ORDINARY else ()), *more)
        return tuple((variant(most), scenario) for scenario in scenarios)
    tried = (where_it_runs(variant(gamma), (*deep_scenarios(gamma), *more)) for gamma in (DEEP_GAMMA, FEWER))
    return next(filter(None, tried), ())
