"""Verifiers of batches whose rows have a generator each: its seed must not occur again in the next call."""

from __future__ import annotations

import itertools

import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import BATCHED
from specverify.subjects.verifier import verifier_subject

pytestmark = pytest.mark.usefixtures("unexplained")


def verifier(seed_of):
    """Return a verifier of batches; ``seed_of(call, row)`` is the seed of a row in a call."""
    calls = itertools.count()

    def verify(p, q, draft_tokens):
        p, q, ids = (torch.as_tensor(given) for given in (p, q, draft_tokens))
        call, (rows, gamma) = next(calls), ids.shape
        result = torch.full((rows, gamma + 1), -1)
        for row in range(rows):
            generator = torch.Generator().manual_seed(seed_of(call, row))
            coins = torch.rand(gamma, dtype=torch.float64, generator=generator)
            kept = coins * q[row].gather(1, ids[row, :, None])[:, 0] < p[row, :-1].gather(1, ids[row, :, None])[:, 0]
            count = int(kept.long().cumprod(0).sum())
            left = (p[row, count] - q[row, count]).clamp(min=0) if count < gamma else p[row, count]
            weights = left if left.any() else p[row, count]
            result[row, :count] = ids[row, :count]
            result[row, count] = torch.multinomial(weights, 1, generator=generator)[0]
        return result

    return verify


@pytest.mark.parametrize(
    ("seed_of", "status"),
    [
        (lambda call, row: 1000 * call + row, Status.HOLDS),
        (lambda call, row: call + row, Status.REFUTED),
    ],
)
def test_seeds_of_rows_that_occur_in_the_next_call_are_refuted(seed_of, status):
    subject = verifier_subject(verifier(seed_of), "rows", form=BATCHED)
    few = subject._replace(scenarios=subject.scenarios[:1])  # beside them, the quick plan has the rows of two calls
    verdict = run_check(few, check_named("rows_are_independent"), Checklist((), quick=True))
    assert verdict.status is status
    assert any("whole batches" in case for case in verdict.figures["planned"])
