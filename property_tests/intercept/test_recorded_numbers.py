"""The intervals of the uniforms behind recorded numbers of libraries."""

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.recorded_numbers import _trials, items_of
from specverify.intercept.recorder import Recorder
from specverify.laws.draws import Tape


@pytest.mark.parametrize("p", [0.125, 0.5, 1.0])
def test_geometric_numbers_divide_the_uniforms_by_their_probabilities(p):
    numbers = np.arange(1, 6) if p < 1 else np.ones(1)
    cells = [(item.low, item.high) for item in _trials(numbers, p)]
    assert cells[0] == pytest.approx((1 - p, 1.0))
    assert [high - low for low, high in cells] == pytest.approx([p * (1 - p) ** (n - 1) for n in numbers])


@pytest.mark.parametrize("row", [np.array([0.5, 0.25, 0.25]), [0.5, 0.25, 0.25]], ids=["array", "list"])
def test_a_record_keeps_the_weights_of_a_buffer_that_is_overwritten(row):
    recorder, rng = Recorder(Tape(0)), np.random.default_rng(0)
    with answered_everywhere(recorder):
        rng.choice(3, p=row)
        row[:] = [0.0, 0.0, 1.0]
        rng.choice(3, p=row)
    weights = [list(item.weights) for record in recorder.records for item in items_of(record)]
    assert weights == [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("scale", [np.inf, 0.0])
def test_a_number_on_which_the_result_does_not_depend_may_be_any(scale):
    recorder, rng = Recorder(Tape(0)), np.random.default_rng(0)
    with answered_everywhere(recorder):
        rng.exponential([1.0, scale])
    known, other = (item for record in recorder.records for item in items_of(record))
    assert 0 < known.low < 1
    assert (other.low, other.outcome) == (0.5, None)


def test_a_program_that_seeds_numpy_is_recorded():
    recorder = Recorder(Tape(0))
    with answered_everywhere(recorder):
        np.random.seed(0)  # noqa: NPY002 - old code calls it
        np.random.rand()  # noqa: NPY002
    assert [record.name for record in recorder.records] == ["rand"]
