"""Shortcuts with several candidates that are taken in practice, each of them biased."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Draft, flip
from reference import accept_probability as ratio
from reference.drafters.tree import excluding
from reference.verifiers.recursive_rejection import recursive_rejection
from test_support.laws.rational import P, Q, always, as_law, distance, law_of, pmf

F = Fraction
TALL = pmf(".1", ".5", ".4")
"""Against q the residual keeps two tokens, so that a second candidate can be mistreated."""


def bias(program, p):
    return distance(law_of(lambda draws: program(draws, p)), as_law(p))


def with_soft_q(draws, p):
    """Top-2 of q verified as if drawn from q."""
    draft = Draft((0, 1), (-1, -1), (Q, excluding(Q, (0,))))
    return recursive_rejection(draws, always(p), (), draft).tokens[0]


def skipping_duplicates(draws, p):
    """With replacement, a repeated candidate is passed over without being subtracted."""
    first, second = (draws.categorical(Q, ("draft", k)) for k in range(2))
    tokens = (first,) if first == second else (first, second)
    draft = Draft(tokens, (-1,) * len(tokens), (Q,) * len(tokens))
    return recursive_rejection(draws, always(p), (), draft).tokens[0]


def without_replacement_as_if_with(draws, p):
    first = draws.categorical(Q, ("draft", 0))
    second = draws.categorical(excluding(Q, (first,)), ("draft", 1))
    return recursive_rejection(draws, always(p), (), Draft((first, second), (-1, -1), (Q, Q))).tokens[0]


def sorted_candidates(draws, p):
    tokens = tuple(sorted((draws.categorical(Q, ("draft", k)) for k in range(2)), key=lambda token: -p[token]))
    return recursive_rejection(draws, always(p), (), Draft(tokens, (-1, -1), (Q, Q))).tokens[0]


def scalar_residual(draws, p):
    """After a rejection only the rejected entry is reduced."""
    token = draws.categorical(Q, ("draft", 0))
    if flip(draws, ratio(p, Q, token), ("accept", 0)):
        return token
    owed = p.copy()
    owed[token] = max(p[token] - Q[token], F(0))
    return draws.categorical(owed / owed.sum(), ("residual", 0))


@pytest.mark.parametrize(
    "program", [with_soft_q, skipping_duplicates, without_replacement_as_if_with, sorted_candidates, scalar_residual]
)
def test_the_usual_shortcuts_are_biased(program):
    assert bias(program, TALL) > 0


def test_the_known_bias_of_the_scalar_residual():
    assert bias(scalar_residual, P) == F(3, 20)
