"""A verifier at more drafts than its variants have: in scenarios that are certain but for a few rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from reference import Tokens
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.unknowns.deferred import NeedsValue
from specverify.laws.deep_scenarios import DEEP_GAMMA, deep_scenarios
from specverify.laws.draws import Tape
from specverify.laws.scenarios import Scenario
from specverify.subjects.subject import Variant

Deep = Callable[[], tuple[tuple[Variant, Scenario], ...]]
FEWER = 4
"""Drafts that are tried where it does not run on ``DEEP_GAMMA``."""
ORDINARY = 3
"""Drafts that the ordinary scenarios show."""


def deep_of(
    variant: Callable[[int], Variant],
    attempt: Callable[[int], object],
    gammas: tuple[int, ...] | None,
    more: tuple[Scenario, ...] = (),
) -> Deep:
    """Return what is looked at of a verifier beyond the ordinary scenarios, ``variant(gamma)`` being its variants.

    With ``gammas`` left out it is called once, ``attempt(gamma)``, to see whether it runs on so many drafts: one that
    is made for fewer raises, and is looked at with what it takes. Of gammas that somebody gave it is the largest.
    ``more`` are scenarios besides.
    """
    return partial(_deep, variant, attempt, gammas, more)


def _deep(
    variant: Callable[[int], Variant],
    attempt: Callable[[int], object],
    gammas: tuple[int, ...] | None,
    more: tuple[Scenario, ...],
) -> tuple[tuple[Variant, Scenario], ...]:
    tried = (max(gammas),) if gammas else (gamma for gamma in (DEEP_GAMMA, FEWER) if _runs(attempt, gamma))
    most = next(iter(tried), None)
    if most is None:
        return ()
    deep = deep_scenarios(most) if most > ORDINARY else ()
    return tuple((variant(most), scenario) for scenario in (*deep, *more))


def _runs(attempt: Callable[[int], object], gamma: int) -> bool:
    try:
        with answered_everywhere(Tape(0)):
            attempt(gamma)
    except NeedsValue:
        return True
    except Exception:  # noqa: BLE001 - it may refuse so many in any way
        return False
    return True


def accepted_row(gamma: int) -> tuple[Any, Any, Tokens]:
    """Return p ``[gamma + 1, 3]``, q ``[gamma, 3]`` and drafts that p and q agree about."""
    p = np.tile(np.array([1, 2, 1]) / 4, (gamma + 1, 1))
    return p, p[:-1].copy(), (1,) * gamma
