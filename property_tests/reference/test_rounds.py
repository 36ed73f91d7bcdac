"""Chains verified decision by decision, as narrated.py tells."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Verified, chain, residual
from reference.verifiers.accept_or_replace import accept_or_replace
from reference.verifiers.block_verification import block_verification
from reference.verifiers.drop_unlikely import drop_unlikely
from reference.verifiers.greedy_match import greedy_match
from reference.verifiers.match_argmax_then_sample import match_argmax_then_sample
from reference.verifiers.sample_and_match import sample_and_match
from reference.verifiers.speculative_sampling import speculative_sampling
from test_support.laws.rational import P, Q, pmf
from test_support.reference.narrated import BONUS, OUTER, SECOND, THIRD, TO_THE_END, Done, coin, played

CHAIN = chain((0, 1), (Q, None))
"""Token 0 drawn from Q, then token 1 by a drafter that draws nothing."""
FIRST, SECOND_COIN = (("accept", 0), coin("1/3")), (("accept", 1), coin("1/2"))


def accept_by_context(prefix, p, q, token):
    """Return an accept probability that is another one for every argument."""
    return p[token] * q[token] / len(prefix)


def replace_by_token(p, q, token):
    return residual((p + q) / 2, pmf(*(int(index == token) for index in range(len(p)))))


def backwards(p):
    return p[::-1]


def chains():
    """Return name -> (setting, what it does); made anew in every test, since a verifier is made by a call."""
    relaxed = accept_or_replace(accept_by_context, replace_by_token, backwards)
    return {
        "speculative sampling, all accepted": (
            (speculative_sampling, CHAIN, (0, 0, 2)),
            ((FIRST, SECOND_COIN, BONUS), TO_THE_END, Verified((0, 1, 2), 2)),
        ),
        "speculative sampling, the second rejected": (
            (speculative_sampling, CHAIN, (0, 1, 2)),
            ((FIRST, SECOND_COIN, (("residual", 1), OUTER)), ((), (0,)), Verified((0, 2), 1)),
        ),
        "dropping nothing": (
            (drop_unlikely(Fraction(3, 5)), CHAIN, (0, 0, 2)),
            ((FIRST, SECOND_COIN, BONUS), TO_THE_END, Verified((0, 1, 2), 2)),
        ),
        "dropping, the first rejected": (
            (drop_unlikely(Fraction(3, 5)), CHAIN, (1, 2)),
            ((FIRST, (("residual", 0), pmf(0, "3/8", "5/8").tolist())), ((),), Verified((2,), 0)),
        ),
        "dropping, the first dropped": (
            (drop_unlikely(Fraction(61, 100)), CHAIN, (0,)),
            (((("residual", 0), P.tolist()),), ((),), Verified((0,), 0)),
        ),
        "a relaxed rule, all kept": (
            (relaxed, CHAIN, (0, 0, 2)),
            (
                (
                    (("accept", 0), coin("3/50")),
                    (("accept", 1), coin("1/6")),
                    (("bonus",), pmf(".5", "1/3", "1/6").tolist()),
                ),
                TO_THE_END,
                Verified((0, 1, 2), 2),
            ),
        ),
        "a relaxed rule, the first replaced": (
            (relaxed, CHAIN, (1, 2)),
            (((("accept", 0), coin("3/50")), (("residual", 0), pmf(0, ".5", ".5").tolist())), ((),), Verified((2,), 0)),
        ),
        "a block, all accepted": (
            (block_verification, CHAIN, (0, 2)),
            (((("accept", 1), coin("1/6")), BONUS), TO_THE_END, Verified((0, 1, 2), 2)),
        ),
        "a block, accepted to one": (
            (block_verification, CHAIN, (1, 0, 2)),
            (
                (
                    (("accept", 1), coin("1/6")),
                    (("accept", 0), coin("1/5")),
                    (("residual", 1), OUTER),
                ),
                TO_THE_END,
                Verified((0, 2), 1),
            ),
        ),
        "a block, rejected": (
            (block_verification, CHAIN, (1, 1, 2)),
            (
                ((("accept", 1), coin("1/6")), (("accept", 0), coin("1/5")), (("residual", 0), [0, 0, 1])),
                TO_THE_END,
                Verified((2,), 0),
            ),
        ),
        "sample and match, all matched": (
            (sample_and_match, CHAIN, (0, 1, 2)),
            (
                ((("target", 0), P.tolist()), (("target", 1), SECOND.tolist()), (("target", 2), THIRD.tolist())),
                TO_THE_END,
                Verified((0, 1, 2), 2),
            ),
        ),
        "sample and match, the first missed": (
            (sample_and_match, CHAIN, (1,)),
            (((("target", 0), P.tolist()),), ((),), Verified((1,), 0)),
        ),
        "match the argmax, missed at once": (
            (match_argmax_then_sample, CHAIN, (0,)),
            (((("target", 0), P.tolist()),), ((), ()), Verified((0,), 0)),
        ),
        "match the argmax, matched once": (
            (match_argmax_then_sample, chain((2,), (None,)), (1,)),
            (((("target", 1), THIRD.tolist()),), ((), (2,)), Verified((2, 1), 1)),
        ),
        "match the argmax, matched twice": (
            (match_argmax_then_sample, chain((2, 2), (None, None)), (1,)),
            (((("target", 2), SECOND.tolist()),), ((), (2,), (2, 2)), Verified((2, 2, 1), 2)),
        ),
        "greedy match, missed at once": ((greedy_match, CHAIN, ()), ((), ((),), Verified((2,), 0))),
    }


@pytest.mark.parametrize("name", chains())
def test_a_chain_is_verified_decision_by_decision(name):
    setting, expected = chains()[name]
    assert played(P, *setting) == Done(*expected)


def test_planted_names_are_noticed():
    """The comparison sees another site, another pmf and another text."""
    right = played(P, speculative_sampling, CHAIN, (0, 0, 2))
    longer = played(P, sample_and_match, CHAIN, (0, 1, 2))
    assert right.read == longer.read
    assert right.verified == longer.verified
    assert right != longer
