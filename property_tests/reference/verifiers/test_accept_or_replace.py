"""Accept and fallback rules that are not lossless: each has an exact law of its own, at a known distance from p."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Task, accept_probability, flip, residual
from specverify.mutants.acceptance_rule import match_then_fresh_sample
from specverify.mutants.mutant import accept_or_replace
from specverify.mutants.proposal import raw_draft_declared
from test_support.laws.rational import P, Q, always, as_law, distance, first_token, law_of, pmf, project, vector


def rule(accept, fallback, p=P, q=Q):
    """Draft d ~ q, keep it with probability accept(d), else draw from fallback(d)."""

    def program(draws):
        drafted = draws.categorical(q, ("draft", 0))
        if flip(draws, accept(drafted), ("accept", 0)):
            return drafted
        return draws.categorical(fallback(drafted), ("residual", 0))

    return program


def without(p, token):
    kept = pmf(*(mass * (index != token) for index, mass in enumerate(p)))
    return kept / kept.sum()


def ratio(token):
    return accept_probability(P, Q, token)


from_target = accept_or_replace(lambda _, p, q, token: accept_probability(p, q, token), lambda p, q, token: p)
"""What planted bugs of residuals are made of, with p in the residual's place."""


@pytest.mark.parametrize(
    ("program", "law", "bias"),
    [
        (rule(ratio, lambda _: residual(P, Q)), (".2", ".3", ".5"), "0"),
        (first_token(from_target, P, Q), (".28", ".42", ".30"), ".2"),
        (rule(ratio, lambda _: P), (".28", ".42", ".30"), ".2"),
        (rule(ratio, lambda token: without(P, token)), (".20", ".45", ".35"), ".15"),
        (rule(lambda token: Fraction(bool(P[token] >= Q[token])), lambda _: P), (".12", ".48", ".40"), ".18"),
    ],
    ids=["residual", "planted resampling from p", "resampling from p", "clamped scalar residual", "accept iff p >= q"],
)
def test_the_known_pair_under_a_rule_has_its_law_and_bias(program, law, bias):
    found = law_of(program)
    assert vector(found, 3) == pmf(*law).tolist()
    assert distance(found, as_law(P)) == Fraction(bias)


def test_drawing_again_after_a_missed_guess_gives_the_guess_too_much():
    p, guess = pmf(".4", ".3", ".3"), pmf(1, 0, 0)
    verifier = match_then_fresh_sample.parts(Task(always(P), always(Q), horizon=2)).verifier
    found = law_of(first_token(verifier, p, guess))
    assert vector(found, 3) == pmf(".64", ".18", ".18").tolist()
    assert distance(found, as_law(p)) == Fraction("0.24")


def test_declaring_another_pmf_than_the_sampled_one_biases_the_known_example():
    """Tokens come from the two most probable of q = (.5, .3, .2), the ratio and the residual use the whole q."""
    p, raw, sampled = pmf(".2", ".3", ".5"), pmf(".5", ".3", ".2"), pmf("5/8", "3/8", 0)
    found = law_of(rule(lambda token: accept_probability(p, raw, token), lambda _: residual(p, raw), p=p, q=sampled))
    assert vector(found, 3) == pmf(".25", ".375", ".375").tolist()
    assert distance(found, as_law(p)) == Fraction("0.125")


def test_a_planted_undeclared_truncation_shows_in_the_law_of_one_round():
    build = raw_draft_declared.open().variants[0].build
    decoder = build(Task(always(P), always(Q), horizon=2))
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].tokens)
    assert project(law, lambda tokens: tokens[0]) == {0: Fraction(1, 3), 2: Fraction(2, 3)}
