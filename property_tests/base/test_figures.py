"""The figures of several cases as one."""

from __future__ import annotations

import pytest

from specverify.base.figures import merged_figures


@pytest.mark.parametrize(
    ("name", "of_one", "of_other", "of_both"),
    [
        ("runs", 3, 4, 7),
        ("samples", 10, 5, 15),
        ("probe", ["rand"], ["randn"], ["rand", "randn"]),
        ("tv", 0.25, 0.5, 0.5),
        ("rounds", 3, 2, 3),
        ("function_of_draws", True, False, False),
    ],
)
def test_every_figure_is_merged_as_it_is_declared(name, of_one, of_other, of_both):
    assert merged_figures([{name: of_one}, {}, {name: of_other}]) == {name: of_both}
    assert merged_figures([{name: of_one}]) == {name: of_one}


def test_figures_keep_the_order_in_which_they_were_first_said():
    assert list(merged_figures([{"tv": 0, "runs": 1}, {"bias": 0, "runs": 1}])) == ["tv", "runs", "bias"]
    assert merged_figures([]) == {}


def test_a_figure_that_is_not_declared_is_refused():
    """Else it would be merged by a guess."""
    with pytest.raises(ValueError, match=r"no figure 'speed', expected one that specverify\.base\.figures declares"):
        merged_figures([{"speed": 1}])
