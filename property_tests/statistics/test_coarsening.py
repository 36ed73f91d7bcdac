"""Cells of a large vocabulary: a partition, without impossible tokens."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.statistics.coarsening import bounding, coarsenings
from specverify.trust.large_vocabulary import P, Q


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
