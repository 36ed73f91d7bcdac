"""Pooled cells: enough expected samples in each, and a declared blind spot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.statistics.test_perturbation import laws
from specverify.statistics import (
    detectable_total_variation,
    detectable_tv,
    goodness_of_fit,
    partition,
)
from test_support.statistics.statistical import (
    GEOMETRIC,
    WIDE,
    at_most,
    distance,
    draws,
    exhaustive,
)


@st.composite
def pairs_of_laws(draw):
    size = draw(st.integers(2, 12))
    return draw(laws(size)), draw(laws(size))


@exhaustive
@given(pairs_of_laws(), st.integers(10, 10**5))
def test_pooling_hides_at_most_the_pooled_mass(pair, samples):
    law, other = pair
    cells = partition(law, samples)
    merged = distance({x: law[x] for x in cells.separate}, {x: other[x] for x in cells.separate})
    merged += abs(sum(law[x] for x in cells.pooled) - sum(other[x] for x in cells.pooled)) / 2
    assert merged <= distance(law, other) + 1e-12
    assert distance(law, other) <= merged + cells.pooled_mass + 1e-12


@exhaustive
@given(st.integers(1, 40).flatmap(laws), st.integers(1, 10**5), st.floats(0.5, 100))
def test_every_cell_expects_enough_samples(law, samples, minimum_expected):
    cells = partition(law, samples, minimum_expected)
    assert cells.separate.keys() | cells.pooled.keys() == law.keys()
    assert not cells.separate.keys() & cells.pooled.keys()
    assert len(cells.pooled) != 1
    expected = [samples * mass for mass in cells.separate.values()]
    expected += [samples * cells.pooled_mass] if cells.pooled else []
    assert len(expected) == cells.cells
    assert cells.cells == 1 or min(expected) >= minimum_expected * (1 - 1e-12)


def test_the_blind_spot_is_invisible_and_declared():
    law = {"often": 0.7} | dict.fromkeys(range(300), 0.001)
    biased = {"often": 0.7, 0: 0.3}
    assert distance(biased, law) == pytest.approx(0.299, rel=1e-9)
    fits = [goodness_of_fit(counts, law) for counts in draws(law | {x: biased.get(x, 0.0) for x in law}, 1000, 300, 8)]
    assert at_most(sum(fit.p_value <= 1e-3 for fit in fits), 300, 1.5e-3)
    assert {(fit.cells, fit.pooled_cells) for fit in fits} == {(2, 300)}
    declared = detectable_total_variation(law, 1000, 1e-3, 1e-3)
    assert declared == pytest.approx(detectable_tv(1000, 2, 1e-3, 1e-3) + 0.3, rel=1e-12)
    assert declared > distance(biased, law)


def test_a_pooled_cell_that_expects_too_little_takes_the_least_likely_of_the_others():
    law = {"a": 0.5, "b": 0.3, "c": 0.19, "d": 0.006, "e": 0.004}
    cells = partition(law, 500)
    assert set(cells.separate) == {"a", "b"}
    assert set(cells.pooled) == {"c", "d", "e"}
    fit = goodness_of_fit({"a": 250, "b": 150, "c": 60, "d": 40, "e": 0}, law)
    assert (fit.cells, fit.pooled_cells, fit.statistic) == (3, 3, pytest.approx(0.0, abs=1e-20))
    assert fit.pooled_mass == pytest.approx(0.2, rel=1e-12)
    assert fit.tv_observed == pytest.approx(40 / 500 - 0.006, rel=1e-9)


def test_the_partition_does_not_depend_on_the_counts():
    # The samples are of another law, unsupported outcomes included.
    fits = [goodness_of_fit(counts, GEOMETRIC) for counts in draws(WIDE | GEOMETRIC, 1000, 50, seed=4)]
    assert {(fit.cells, fit.pooled_cells) for fit in fits} == {(7, 25)}
