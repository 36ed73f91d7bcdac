"""Rows of one call: pairs with many paths are skipped, and no call is made before a case is examined."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import rows_are_independent
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import BATCHED
from specverify.subjects.subject import Variant
from specverify.subjects.verifier import verifier_subject

CHECK = rows_are_independent.CHECK
RNG = np.random.default_rng()


def drawn(weights):
    return int(RNG.choice(len(weights), p=weights / weights.sum()))


def verify(p, q, drafts, lengths, calls):
    """Verify each row of a batch by the rule; ``calls`` counts the calls."""
    calls.append(len(drafts))
    result = np.full((len(drafts), p.shape[1]), -1)
    for row, (length, tokens) in enumerate(zip(lengths, drafts, strict=True)):
        kept = 0
        while kept < length and RNG.random() * q[row, kept, tokens[kept]] < p[row, kept, tokens[kept]]:
            result[row, kept] = tokens[kept]
            kept += 1
        result[row, kept] = drawn(np.maximum(p[row, kept] - q[row, kept], 0) if kept < length else p[row, kept])
    return result


def verifier(calls):
    """Return the verifier, without the scenarios in which whole batches are examined."""

    def verify_batch(target_probs, draft_probs, draft_tokens, lengths):
        return verify(target_probs, draft_probs, draft_tokens, lengths, calls)

    subject = verifier_subject(verify_batch, "it", (2,), BATCHED)
    pairs = tuple(variant for variant in subject.variants if variant.joint is not None)
    return subject.with_situations(Variant, [variant._replace(batches=None) for variant in pairs])


@pytest.mark.parametrize(("most", "skips"), [(700, False), (8, True)])
def test_pairs_with_more_paths_than_the_limit_are_skipped_and_counted(monkeypatch, most, skips):
    monkeypatch.setattr(rows_are_independent, "MOST_PATHS", most)
    verdict = run_check(verifier([]), CHECK, Checklist((), quick=True))
    assert verdict.status is Status.HOLDS, verdict.statement
    assert ("skipped" in verdict.figures) is skips


def test_no_call_is_made_before_a_case_is_examined():
    calls = []
    subject = verifier(calls)
    known = len(calls)
    assert len(list(CHECK.cases(subject))) > 10
    assert len(calls) == known
