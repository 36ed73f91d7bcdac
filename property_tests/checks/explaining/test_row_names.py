"""The names of rows that a wrong program uses."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.positions import WRONG_POSITION
from specverify.checks.explaining.engine_rounds import is_by_other_text
from specverify.checks.explaining.row_names import WRONG_POSITIONS, RowNames, text_difference


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ((0, 3, 2), "which keeps the rejected draft token 3"),
        ((0, 3, 4, 2), "which keeps the rejected draft token 3"),
        ((0, 3), "another text"),
        ((4, 2), "without the first token"),
        ((2,), "without the first 2 tokens"),
        ((0,), "without the last 2 tokens"),
        ((0, 4, 1), "with token 1 in place of 2"),
        ((0, 1, 2), "which has 1 in place of 4"),
        ((3, 1, 2), "which has 3 1 in place of 0 4"),
    ],
)
def test_the_text_of_a_wrong_row_is_told_by_its_difference(text, words):
    """The right text is (0, 4, 2), in which 4 replaces the rejected draft 3."""
    assert text_difference(text, (0, 4, 2), ((0, 3),)) == f" ({words})"


def test_a_text_that_lacks_the_first_or_the_last_tokens_is_not_told_as_one_of_them():
    assert text_difference((0, 1), (0, 1, 0, 1), ()) == " (without the first or the last 2 tokens)"
    assert is_by_other_text("drawn from p after (0, 1) (without the first or the last 2 tokens)")


def test_a_text_with_wrong_positions_is_told_as_one():
    """The token 0 in its place equals a rejected draft 0."""
    assert text_difference((0, 3, WRONG_POSITION, 2), (0, 3, 2), ((0, 3, 0),)) == WRONG_POSITIONS
    assert text_difference((0, 3, 0, 2), (0, 3, 2), ((0, 3, 0),)) == " (which keeps the rejected draft token 0)"
    assert str((0, 3, WRONG_POSITION, 2)) == "(0, 3, _, 2)"
    assert is_by_other_text(f"drawn from p after (0, _, 1){WRONG_POSITIONS} = (0.5, 0.5)")


@pytest.mark.parametrize(("asked", "name"), [(False, "p after (0, 1, _, 1)"), (True, "q")])
def test_a_row_of_a_text_with_wrong_positions_is_not_told_as_q_which_is_not_computed(asked, name):
    """Both are the same row here."""
    seen, fed = [0.25, 0.75], (0, 1, WRONG_POSITION, 1)
    p = lambda text: np.array(seen if text == fed else [0.5, 0.5])  # noqa: E731
    q = lambda text: np.array(seen)  # noqa: E731
    queried = ((0,), (0, 1), fed, *(((0, 1, 1),) if asked else ()))
    assert RowNames(p, q, (0,), queried, 2).row_name(seen, (0, 1, 1), ()).startswith(name)


@pytest.mark.parametrize(("asked", "named"), [((), False), (((0, 1),), True), (((0, 1), (0, 1, 1)), False)])
def test_a_certain_row_names_another_text_only_if_the_right_row_is_not_computed(asked, named):
    """A mask may leave one token, which is then as certain as in the row after another text."""
    p = lambda text: np.array([1.0, 0.0, 0.0] if text == (0, 1) else [0.4, 0.2, 0.4])  # noqa: E731
    q = lambda text: np.array([0.2, 0.6, 0.2])  # noqa: E731
    name = RowNames(p, q, (0,), asked, 3).row_name([1.0, 0.0, 0.0], (0, 1, 1), ())
    assert name.startswith("p after (0, 1)") is named


P = [0.5, 0.25, 0.125, 0.125]


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ([0.6, 0.2, 0.1, 0.1], "p with 1.5 times the odds of token 0, as if a penalty did not count it, = "),
        ([4 / 9, 1 / 3, 1 / 9, 1 / 9], "p with 1.5 times the odds of token 1 = "),
        ([0.4, 0.3, 0.15, 0.15], "p with 0.667 times the odds of token 0, as if a penalty counted it too often, = "),
        ([0.6, 0.2, 0.08, 0.12], "("),
        ([0.0, 0.5, 0.25, 0.25], "("),
    ],
    ids=["more", "not in the text", "less", "two tokens", "excluded"],
)
def test_a_row_of_p_with_other_odds_of_one_token_is_told_by_their_factor(seen, name):
    q = lambda text: np.array([0.7, 0.1, 0.1, 0.1])  # noqa: E731
    said = RowNames(lambda text: np.array(P), q, (0,), ((0,),), 4).row_name(seen, (0,), ())
    assert said.startswith(name)
    assert ("times the odds" in said) == name.startswith("p with")


def test_the_odds_of_two_possible_tokens_name_no_factor():
    row = lambda text: np.array([0.5, 0.5, 0.0])  # noqa: E731
    assert "odds" not in RowNames(row, row, (0,), ((0,),), 3).row_name([0.6, 0.4, 0.0], (0,), ())


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ([0.4, 0.1, 0.3, 0.2], "p with tokens 2 and 3, which no mask excludes, = "),
        ([0.4, 0.1, 0.5, 0.0], "p with token 2, which no mask excludes, = "),
        ([0.3, 0.2, 0.5, 0.0], "("),
        ([0.0, 0.5, 0.5, 0.0], "("),
    ],
)
def test_a_row_of_p_with_excluded_tokens_is_told_by_the_proportions_of_the_others(seen, name):
    p = lambda text: np.array([0.8, 0.2, 0.0, 0.0])  # noqa: E731
    assert RowNames(p, p, (0,), ((0,),), 4).row_name(seen, (0,), ()).startswith(name)
    alone = lambda text: np.array([1.0, 0.0, 0.0, 0.0])  # noqa: E731
    assert "mask" not in RowNames(alone, alone, (0,), ((0,),), 4).row_name(seen, (0,), ())
