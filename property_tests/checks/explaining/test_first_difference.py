"""The first token, text or end that differs between an engine and its target."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specverify.checks.explaining.first_difference import first_difference, text_fault

LAW = {(0, 1): Fraction(1, 2), (1, 0): Fraction(1, 2)}


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ({(0, 1): Fraction(3, 4), (1, 0): Fraction(1, 4)}, "new token 1 is 0 with probability 0.75, expected 0.5"),
        ({(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 2)}, "new token 2 is 0 instead of 1 after new token 0"),
        ({(0, 1): Fraction(1, 2), (1,): Fraction(1, 2)}, "the text ends after 1 of 2 new tokens"),
        (
            {(0, 1, 1): Fraction(1, 2), (1, 0): Fraction(1, 2)},
            "the text continues with token 1 after its end after new tokens",
        ),
    ],
)
def test_the_first_token_that_differs_is_named(law, said):
    assert first_difference(law, LAW).fault.startswith(said)


@pytest.mark.parametrize(
    ("law", "is_allowed"),
    [
        ({(0,): 0.5, (1,): 0.3, (2,): 0.2}, True),
        ({(0,): 0.5, (1,): 0.25, (2,): 0.25}, False),
        ({(0,): 0.5, (1,): 0.5}, False),
    ],
)
def test_a_token_that_no_mask_excludes_is_told_by_the_proportions_of_the_others(law, is_allowed):
    said = first_difference(law, {(1,): 0.6, (2,): 0.4}).fault
    assert said.startswith("new token 1 is 0 with probability 0.5, expected 0")
    assert said.endswith("; the other tokens keep their proportions, as if no mask, top-k or top-p excluded it") == (
        is_allowed
    )
    assert "proportions" not in first_difference(law, {(2,): 1}).fault


def test_rows_that_are_right_alone_are_told_to_depend_on_each_other():
    expected = {((a,), (b,)): Fraction(1, 4) for a in range(2) for b in range(2)}
    law = {((0,), (0,)): Fraction(1, 2), ((1,), (1,)): Fraction(1, 2)}
    found = first_difference(law, expected, each="row").fault
    assert found.startswith("the rows are not independent: each alone is right, but (1) and (1) come together with pr")
    wrong = {((0,), (0,)): Fraction(1, 2), ((0,), (1,)): Fraction(1, 2)}
    assert first_difference(wrong, expected, each="row").fault.startswith("row 1, new token 1 is 0 with probability 1,")


def test_a_difference_of_rounding_is_not_listed_beside_large_ones():
    expected = {(0,): 0.25, (1,): 0.5, (2,): 0.25}
    rows = first_difference({(0,): 0.25 + 1e-9, (1,): 0.25 - 1e-9, (2,): 0.5}, expected).rows
    assert [line.split()[0] for line in rows[1:]] == ["2", "1"]


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ((1, 2, 0, 0, 1), "new token 3 is 0 instead of 3"),
        ((1, 2, 3), "the text ends after 3 of 5 new tokens"),
        ((1, 2, 3, 0, 1, 2), "1 token too many: the text should end after new token 5"),
        ((1, 3, 0, 1), "new token 2 (2) is missing"),
        ((1, 1, 2, 3, 0), "new token 1 (1) comes twice"),
    ],
)
def test_a_certain_text_that_differs_is_named(got, said):
    assert text_fault((1, 2, 3, 0, 1), got) == said


@pytest.mark.parametrize(
    ("got", "said"),
    [((2, 1), "new token 2 is 1, the end token, instead of 0"), ((0, 0), "new token 1 is 0 instead of 2")],
)
def test_a_wrong_token_that_is_the_end_token_is_named_so(got, said):
    assert text_fault((2, 0), got, eos=1) == said
    assert text_fault((2, 1), (2, 0), eos=1) == "new token 2 is 0 instead of 1, the end token"


def test_a_text_that_goes_on_behind_its_end_is_told_with_the_end_token():
    assert text_fault((2, 1), (2, 1, 0, 0), eos=1) == (
        "the text continues after its end token 1 (new token 2): 0 0 follows it"
    )
    assert text_fault((2, 1), (2, 1, 0)) == "1 token too many: the text should end after new token 2"
    assert text_fault((2, 0, 1), (2, 0), eos=1) == (
        "the text ends after 2 of 3 new tokens, although its last one, 0, is not the end token 1"
    )
