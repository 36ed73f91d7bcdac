"""Formulas with one free number: they are named only where the number matters."""

from __future__ import annotations

import pytest

from specverify.checks.explaining.one_number_rules import Accepted, Replaced, accept_rule, replace_rule

SLACK = 1e-6


def accepted(p, q, seen):
    return Accepted(p, q, seen, SLACK, (p, 1 - p))


def test_a_number_that_changes_nothing_is_not_named():
    pairs = ((0.25, 0.5), (0.125, 0.5), (0.375, 0.75))
    right = [accepted(p, q, p / q + 1e-7) for p, q in pairs]
    assert accept_rule(right) == ""
    assert "p/q + 0.01" in accept_rule([accepted(p, q, p / q + 0.01) for p, q in pairs])


def test_a_formula_that_is_solved_by_a_negative_number_is_left_out():
    first = accepted(0.5, 0.625, 0.875)
    nowhere = first.q - first.p / first.seen  # p / (q + c) has no value there
    assert accept_rule([first, accepted(0.5, nowhere, 0.75), accepted(0.25, 0.5, 0.75)]) == ""


@pytest.mark.parametrize(("share", "said"), [(1 + 1e-9, ""), (0.5, "norm(max(p - 0.5 q, 0))"), (1e-5, "")])
def test_a_residual_with_the_share_one_of_q_is_the_right_one(share, said):
    """With a share of nearly 0 it is p itself."""
    p, q = (0.5, 0.3, 0.2, 0.0), (0.1, 0.2, 0.1, 0.6)
    left = [max(a - share * b, 0.0) for a, b in zip(p, q, strict=True)]
    law = {token: mass / sum(left) for token, mass in enumerate(left)}
    assert replace_rule([Replaced(p, q, law, SLACK)]) == said


def test_a_number_that_rounding_changes_much_is_not_determined():
    """The second largest entry of the law is one of two equal ones; each gives another share of q."""
    p, q, law = (0.125, 0.1875, 0.3125, 0.375), (0.5, 0.125, 0.1875, 0.1875), (0, 1 / 6, 1 / 6, 2 / 3)
    assert replace_rule([Replaced(p, q, dict(enumerate(law)), SLACK)]) == ""


@pytest.mark.parametrize(("share", "said"), [(0.5, "norm(max(p - q, 0)), mixed with a share 0.5 of "), (0.9999, "")])
@pytest.mark.parametrize("whose", ["p", "q"])
def test_a_row_that_is_nearly_all_of_another_row_is_no_mixture(share, said, whose):
    p, q = (0.5, 0.3, 0.2, 0.0), (0.1, 0.2, 0.1, 0.6)
    p, q = (p, q) if whose == "q" else ((*p[:3], 0.0), (0.1, 0.2, 0.6, 0.1))
    left = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    mixed = p if whose == "p" else q
    law = {token: (1 - share) * mass / sum(left) + share * mixed[token] for token, mass in enumerate(left)}
    assert replace_rule([Replaced(p, q, law, SLACK)]) == said + whose * bool(said)


@pytest.mark.parametrize(("power", "said"), [(2, "norm(max(p - q, 0)^2)"), (1 + 1e-4, "")])
def test_a_number_that_is_shown_as_one_is_not_named(power, said):
    p, q = (0.5, 0.3, 0.2, 0.0), (0.1, 0.2, 0.1, 0.6)
    left = [max(a - b, 0.0) ** power for a, b in zip(p, q, strict=True)]
    law = {token: mass / sum(left) for token, mass in enumerate(left)}
    assert replace_rule([Replaced(p, q, law, SLACK)]) == said
