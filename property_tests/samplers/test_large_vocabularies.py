"""Thirty tokens of 128 256 that come too often or too rarely: a total variation of 0.01."""

from __future__ import annotations

import numpy as np
import pytest

from reference import softmax
from specverify.base.verdict import Status
from specverify.statistics.coarsening import bounding, coarsenings
from specverify.testing import check_sampler

V, TOKENS, TV = 128_256, 30, 0.01
P = softmax(4.0 * np.random.default_rng(0).standard_normal(V))
Q = softmax(np.log(P) + np.random.default_rng(1).standard_normal(V))
ORDER = np.argsort(-P)


def moved(tokens, gain):
    """Return P with ``TV`` more (or less) on the tokens, in proportion to what the others have."""
    law = P.copy()
    here = P[tokens].sum()
    law[tokens] = P[tokens] * (1 - TV / here) if not gain else P[tokens] + TV / len(tokens)
    rest = np.ones(V, bool)
    rest[tokens] = False
    law[rest] *= (1 - law[tokens].sum()) / law[rest].sum()
    return law


PLANTED = {
    "thirty rare ones anywhere come too often": moved(np.random.default_rng(2).choice(V, TOKENS, replace=False), True),
    "the last ids come too often": moved(np.arange(V - TOKENS, V), True),
    "thirty likely ones come too rarely": moved(ORDER[40 : 40 + TOKENS], False),
}


def sampler_of(law):
    edges = np.cumsum(law)
    edges /= edges[-1]
    return lambda seed, n: np.searchsorted(edges, np.random.default_rng(seed).random(n), side="right")


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("law", PLANTED.values(), ids=PLANTED)
def test_a_bias_on_thirty_tokens_is_refuted(law):
    assert abs(law - P).sum() / 2 == pytest.approx(TV, rel=1e-6)
    verdicts = check_sampler(sampler_of(law), law=P, draft=Q, most_samples=400_000, tolerance=0.04, on_fail=None)
    found = {verdict.check: verdict for verdict in verdicts}["samples_fit_law"]
    assert found.status is Status.REFUTED


def test_the_right_one_holds_and_what_each_way_shows_is_printed():
    verdicts = check_sampler(sampler_of(P), law=P, draft=Q, tolerance=0.04)
    fit = verdicts[1]
    assert fit.figures["tv_at_most"] <= 0.04
    notes = fit.figures["notes"]
    assert [note.partition(":")[0] for note in notes] == [
        "every outcome by itself",
        "by probability",
        "by rank",
        "by token id",
        "by p/q",
    ]
    assert "too many for" in notes[0]
    assert all("would have been refuted" in note for note in notes[1:])


def test_cells_are_a_partition_that_expects_ten_samples_each():
    for view in coarsenings(P, 100_000, Q)[1:]:
        assert view.masses.sum() == pytest.approx(1)
        assert (np.bincount(view.labels, weights=P) == view.masses).all()
        assert view.masses.min() * 100_000 >= 10
    bound, unseen, _ = bounding(P, 100_000)
    assert bound.masses.sum() == pytest.approx(1)
    assert unseen == pytest.approx(bound.masses[-1])


def test_an_impossible_token_has_no_cell():
    law = np.array([0.0, 0.5, 0.0, 0.5])
    whole = coarsenings(law, 100)[0]
    assert whole.labels.tolist() == [-1, 0, -1, 1]
    bound, unseen, _ = bounding(law, 100)
    assert (bound.labels.tolist(), unseen) == ([-1, 0, -1, 1], 0.0)
