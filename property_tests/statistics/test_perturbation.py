"""Perturbed laws: their distance, and the hardest one to detect."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.statistics import (
    largest_perturbation,
    perturbed,
)
from test_support.statistics.statistical import (
    UNIFORM,
    distance,
    exhaustive,
)


@st.composite
def laws(draw, size):
    weights = draw(st.lists(st.integers(1, 10**6), min_size=size, max_size=size))
    return {token: weight / sum(weights) for token, weight in enumerate(weights)}


@exhaustive
@given(st.integers(2, 40).flatmap(laws), st.floats(0, 1))
def test_a_perturbed_law_is_a_law_at_the_distance_asked_for(law, fraction):
    tv = fraction * largest_perturbation(law)
    moved = perturbed(law, tv)
    assert moved.keys() == law.keys()
    assert min(moved.values()) >= -1e-15
    assert math.fsum(moved.values()) == pytest.approx(1.0, abs=1e-12)
    assert distance(moved, law) == pytest.approx(tv, abs=1e-12)
    noncentrality = math.fsum((moved[x] - law[x]) ** 2 / law[x] for x in law)
    assert noncentrality >= 4 * tv**2 * (1 - 1e-9) - 1e-12


def test_the_perturbation_of_a_balanced_law_is_the_hardest_to_see():
    moved = perturbed(UNIFORM, 0.1)
    assert math.fsum((moved[x] - UNIFORM[x]) ** 2 / UNIFORM[x] for x in UNIFORM) == pytest.approx(0.04, rel=1e-12)
