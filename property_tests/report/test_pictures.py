"""What notebooks draw with: trees that are trees, points that end under p, letters by who wrote them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib: the extra plot or notebooks")

import matplotlib as mpl
from matplotlib.figure import Figure

from reference import Round
from specverify.report import pictures
from specverify.report.pictures.acceptance_bars import draw_weights

P = np.array([Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)])
Q = np.array([Fraction(3, 5), Fraction(3, 10), Fraction(1, 10)])


def axes():
    return Figure().subplots()


def test_a_tree_has_a_line_for_each_node_and_a_path_stands_out():
    drawn = axes()
    pictures.draw_tree(drawn, (-1, -1, 0, 0, 1), list("abcde"), path=(1, 4))
    assert sorted(text.get_text() for text in drawn.texts) == [*"abcde", "text"]
    assert [line.get_color() == pictures.ORANGE for line in drawn.lines] == [False, True, False, False, True]
    heights = {text.get_text(): text.get_position()[1] for text in drawn.texts}
    assert heights["text"] > heights["a"] == heights["b"] > heights["c"] == heights["e"]


@pytest.mark.parametrize(
    ("parents", "labels", "said"),
    [((0, -1), None, "node 0 has the parent 0"), ((-1, -1), ["a"], "1 labels for 2 nodes: expected one each")],
)
def test_what_is_no_tree_is_refused(parents, labels, said):
    with pytest.raises(ValueError, match=said):
        pictures.draw_tree(axes(), parents, labels)


def test_points_fall_under_q_and_end_under_p():
    thrown = pictures.thrown_points(P, Q, number=2000, seed=0)
    for points, pmf in ((thrown.start, Q), (thrown.end, P)):
        tokens = np.rint(points[:, 0]).astype(int)
        assert (points[:, 1] < pmf.astype(float)[tokens]).all()
        counted = np.bincount(tokens, minlength=3) / len(points)
        assert np.abs(counted - pmf.astype(float)).max() < 0.05
    assert (thrown.end[thrown.kept] == thrown.start[thrown.kept]).all()
    assert abs(thrown.kept.mean() - 0.6) < 0.05


def test_the_film_is_a_moving_png():
    film = pictures.acceptance_film(P, Q, pictures.thrown_points(P, Q, number=24, seed=0))
    assert film.startswith(b"\x89PNG")
    assert b"acTL" in film


def test_bars_of_height_zero_are_not_drawn():
    drawn = axes()
    pictures.draw_coupling(drawn, P, Q)
    orange = [bar for bar in drawn.patches if bar.get_hatch()]
    assert sorted(round(bar.get_height(), 6) for bar in orange) == [0.4, 0.4]


def test_letters_are_told_by_who_wrote_them():
    rounds = [Round((0, 1, 2), (0, 1), 2, 2), Round((3,), (0, 1), 0, 1)]
    found = pictures.pieces_of("ab", rounds, "wxyz".__getitem__)
    assert [tuple(piece) for piece in found if piece.text] == [
        ("ab", "written before"),
        ("wx", "drafted and accepted"),
        ("y", "from the target"),
        ("z", "from the target"),
    ]
    drawn = axes()
    pictures.draw_words(drawn, found)
    assert [text.get_text() for text in drawn.texts] == list("abwxyz")
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["drafted and accepted", "from the target"]


def test_sliders_that_say_no_pmf_are_told_so(capsys):
    asked = []
    draw_weights(lambda p, q: asked.append((p, q)), (0, 0), (1, 1))
    assert asked == []
    assert capsys.readouterr().out == "all weights are 0: expected one above 0\n"


def test_a_slider_that_is_moved_draws_its_pmf():
    pytest.importorskip("ipywidgets", reason="the extra notebooks is not installed")
    asked = []
    drawn = pictures.explore(lambda p, q: asked.append((p, q)), (1, 3), (2, 2))
    p, q = (columns.children for columns in drawn.children[0].children)
    p[0].value = 5
    q[1].value = 0
    weights = [tuple(map(float, pmf)) for pmf in asked[-1]]
    assert weights == [(0.625, 0.375), (1, 0)]
    assert len(asked) == 3


def test_the_style_is_set_and_its_colours_differ():
    with mpl.rc_context():
        pictures.use_style()
        assert mpl.rcParams["axes.spines.top"] is False
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"][0] == pictures.BLUE
