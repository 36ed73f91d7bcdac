"""A verifier that takes small weights for nothing: beside larger ones, and in the row behind all drafts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.laws.deep_scenarios import ONE_ROW_SCENARIOS
from specverify.run.verify import run_case
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.subject import Variant

RNG = np.random.default_rng(0)


def drawn(weights, least):
    """Return a token in proportion to the weights that are large enough, if some are."""
    kept = np.where(weights > least, weights, 0) if (weights > least).any() else weights
    return int(RNG.choice(len(kept), p=kept / kept.sum()))


def verifier(p, q, draft_tokens, *, residual_least=0.0, bonus_least=0.0):
    """Decide draft by draft."""
    for i, token in enumerate(draft_tokens):
        if RNG.random() * q[i, token] >= p[i, token]:
            left = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], drawn(left if left.any() else p[i], residual_least)]
    return [*draft_tokens, drawn(p[-1], bonus_least)]


def said(**given):
    """Return what is said of the law in each scenario of small weights."""
    law = check_named("law_is_target")
    subject = verifier_subject_of(partial(verifier, **given), "verifier", None, (1,))
    ones = (
        subject._replace(scenarios=(each,)).with_situations(Variant, subject.variants[:1]) for each in ONE_ROW_SCENARIOS
    )
    return [run_case(next(iter(law.cases(one))), law, Conditions()).status for one in ones]


@pytest.mark.parametrize("given", [{"residual_least": 1e-3}, {"residual_least": 5e-5}, {"bonus_least": 1e-4}], ids=str)
def test_small_weights_are_missed_where_they_are_left_out(given):
    assert Status.REFUTED in said(**given)


def test_a_verifier_that_leaves_out_nothing_holds():
    assert set(said()) == {Status.HOLDS}
