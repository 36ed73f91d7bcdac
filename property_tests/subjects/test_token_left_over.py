"""A token that is left over after the halves or tiles of a vocabulary must not be lost, in the quick plan too."""

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
Draw = Callable[[Pmf], int]


def of_shards(*, loses: bool) -> Draw:
    """Return a draw from two shards of the vocabulary, first of the shard.

    ``loses``: if the number of tokens is odd and above four, the last token is in no shard.
    """

    def draw(weights: Pmf) -> int:
        half = len(weights) // 2 if loses and len(weights) > 4 else (len(weights) + 1) // 2
        shards = weights[:half], weights[half : 2 * half]
        sums = np.array([shard.sum() for shard in shards])
        which = int(RNG.choice(2, p=sums / sums.sum()))
        return which * half + int(RNG.choice(len(shards[which]), p=shards[which] / sums[which]))

    return draw


def verifier(draw: Draw) -> Callable[..., list[int]]:
    """Return a verifier that replaces a rejected draft with ``draw``."""

    def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
        for place, draft in enumerate(draft_tokens):
            if RNG.random() * q[place][draft] >= p[place][draft]:
                return [*draft_tokens[:place], draw(np.maximum(p[place] - q[place], 0))]
        return [*draft_tokens, int(RNG.choice(len(p[-1]), p=p[-1]))]

    return verify


@pytest.mark.parametrize(("loses", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_the_last_of_nine_tokens_is_drawn(*, loses: bool, status: Status) -> None:
    [verdict] = check_verifier(verifier(of_shards(loses=loses)), checks=["law_is_target"], on_fail=None, quick=True)
    assert verdict.status is status
