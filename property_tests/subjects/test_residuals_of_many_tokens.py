"""Draws from the residual that are right with two tokens and wrong with three or four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_verifier

pytestmark = pytest.mark.usefixtures("unexplained", "named_checks_alone")

RNG = np.random.default_rng()
Pmf = np.ndarray[Any, np.dtype[Any]]


def right(residual: Pmf) -> int:
    """Return a token drawn from the residual."""
    return int(RNG.choice(len(residual), p=residual / residual.sum()))


def race_with_a_product(residual: Pmf) -> int:
    """Return the token of the largest product with a clock; a race divides by the clocks."""
    return int(np.argmax(residual * RNG.exponential(size=len(residual))))


def of_the_largest(number: int) -> Callable[[Pmf], int]:
    """Return a draw that keeps the ``number`` largest entries of the residual."""

    def draw(residual: Pmf) -> int:
        return right(np.where(residual >= np.sort(residual)[-min(number, len(residual))], residual, 0))

    return draw


def verifier(draw: Callable[[Pmf], int]) -> Callable[..., list[int]]:
    """Return a verifier that replaces a rejected draft with ``draw``."""

    def verify(p: Pmf, q: Pmf, draft_tokens: Pmf) -> list[int]:
        for place, draft in enumerate(draft_tokens):
            if RNG.random() * q[place][draft] >= p[place][draft]:
                return [*draft_tokens[:place], draw(np.maximum(p[place] - q[place], 0))]
        return [*draft_tokens, right(p[-1])]

    return verify


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("draw", "status"),
    [
        (right, Status.HOLDS),
        (race_with_a_product, Status.REFUTED),
        (of_the_largest(2), Status.REFUTED),
        (of_the_largest(3), Status.REFUTED),
    ],
)
@pytest.mark.parametrize("options", [{"quick": True}, {"gammas": (1,)}])
def test_a_residual_of_four_tokens_is_drawn_right(
    draw: Callable[[Pmf], int], status: Status, options: dict[str, Any]
) -> None:
    [verdict] = check_verifier(verifier(draw), checks=["law_is_target"], on_fail=None, **options)
    assert verdict.status is status
