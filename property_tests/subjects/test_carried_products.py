"""Block verification that takes a wrong product of ratios at one draft is refuted, in the quick plan too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_verifier

pytestmark = pytest.mark.usefixtures("unexplained")

RNG = np.random.default_rng()
Rows = np.ndarray[Any, np.dtype[Any]]


def block_verification(fault: str, wrong: int) -> Any:
    """Return block verification (arXiv 2403.10444) with a ``fault`` after ``wrong`` accepted drafts.

    * ``residual``: The row of p in the residual is not multiplied by the product of ratios.
    * ``acceptance``: Nor is it in the acceptance probability.
    * ``reset``: The product begins again.
    * ``limit``: The product may exceed 1.
    """

    def verify(p: Rows, q: Rows, draft_tokens: Rows) -> list[int]:
        carried = [1.0]
        for place, draft in enumerate(draft_tokens):
            ratio = p[place][draft] / q[place][draft]
            product = ratio * (1.0 if fault == "reset" and place == wrong else carried[place])
            carried.append(product if fault == "limit" and place + 1 == wrong else min(1.0, product))
        accepted = 0
        for count, product in enumerate(carried[1:], 1):
            weight = chance = min(1.0, product)
            if count < len(draft_tokens):
                weight = 1.0 if fault == "acceptance" and count == wrong else weight
                left = np.maximum(weight * p[count] - q[count], 0).sum()
                chance = left / (left + 1 - min(1.0, product)) if left + 1 > product else 1.0
            if RNG.random() <= chance:
                accepted = count
        row = p[accepted]
        if accepted < len(draft_tokens):
            weight = 1.0 if fault == "residual" and accepted == wrong else min(1.0, carried[accepted])
            row = np.maximum(weight * row - q[accepted], 0)
            row = row if row.sum() > 0 else p[accepted]
        return [*draft_tokens[:accepted], int(RNG.choice(len(row), p=row / row.sum()))]

    return verify


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("wrong", [1, 2])
@pytest.mark.parametrize("fault", ["residual", "acceptance", "reset", "limit"])
def test_a_wrong_product_is_refuted(fault: str, wrong: int) -> None:
    assert status(fault, wrong) is Status.REFUTED


def test_block_verification_holds() -> None:
    assert status("none", 0) is Status.HOLDS


def status(fault: str, wrong: int) -> Status:
    """Return the verdict of the quick plan on the law of block verification with a ``fault``."""
    [verdict] = check_verifier(block_verification(fault, wrong), checks=["law_is_target"], on_fail=None, quick=True)
    return verdict.status
