"""Counts of samples are judged by a test."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.sample_counts import judged_counts
from specverify.vectors.vector import Outcome

pytestmark = pytest.mark.xdist_group("vectors")


@pytest.mark.parametrize("vector", ["law_of_round/text/generic-v2-p010-h4"])
def test_counts_of_samples_are_judged(vector):
    answer = all_vectors()[vector].expected[0].answer
    law = {tuple(item["tokens"]): Fraction(item["probability"]) for item in answer["law"]}
    rng = np.random.default_rng(0)

    def counts(masses, number):
        drawn = rng.multinomial(number, np.array(masses, dtype=float))
        return [{"tokens": list(text), "count": int(n)} for text, n in zip(law, drawn, strict=True)]

    masses = list(map(float, law.values()))
    moved = [
        mass + (0.1 if place == 0 else -0.1 if place == int(np.argmax(masses)) else 0)
        for place, mass in enumerate(masses)
    ]
    assert judged_counts(law, counts(masses, 100_000)).outcome is Outcome.PASSED
    assert judged_counts(law, counts(masses, 200)).outcome is Outcome.UNDECIDED
    assert judged_counts(law, counts(moved, 100_000)).outcome is Outcome.FAILED
    assert judged_counts(law, [{"tokens": [9], "count": 1}]).outcome is Outcome.FAILED
    assert judged_counts(law, []).outcome is Outcome.NOT_ANSWERED
    assert judged_counts(law, [{"tokens": [0], "count": -1}]).outcome is Outcome.FAILED
