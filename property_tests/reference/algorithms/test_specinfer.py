"""SpecInfer's verification against its Algorithm 2 stated again: a set of siblings, one of them picked at random."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from reference import Draft
from reference.verifiers.recursive_rejection import in_random_order, recursive_rejection, try_at_random
from specverify.laws.draws import Narrated, Tape
from specverify.laws.model_strategies import pmf_pairs
from test_support.laws.rational import P, Q, always, examples, law_of, pmf, project

OTHER = pmf(".1", ".1", ".8")


def one_position(verify, p, pmfs):
    """The law of (token, accepted) with one candidate from each pmf."""

    def program(draws):
        tokens = tuple(draws.categorical(q, ("draft", k)) for k, q in enumerate(pmfs))
        verified = verify(draws, always(p), (0,), Draft(tokens, (-1,) * len(pmfs), tuple(pmfs)))
        return verified.tokens[0], verified.accepted

    return law_of(program)


def verify_stochastic(p, drawn):
    """Line 25 on: while the set H of siblings is not empty, pick one at random, accept it or subtract its q."""
    law = {}

    def loop(owed, siblings, weight):
        if not siblings:
            for token, mass in enumerate(owed):
                law[token, 0] = law.get((token, 0), 0) + weight * mass
        for chosen in siblings:
            share, (token, q) = weight / len(siblings), drawn[chosen]
            kept = min(Fraction(1), owed[token] / q[token])
            law[token, 1] = law.get((token, 1), 0) + share * kept
            if kept < 1:
                after = [max(a - b, 0) for a, b in zip(owed, q, strict=True)]
                loop([mass / sum(after) for mass in after], siblings - {chosen}, share * (1 - kept))

    loop(p.tolist(), frozenset(range(len(drawn))), Fraction(1))
    return law


def by_algorithm(p, pmfs):
    law = {}
    for first, a in enumerate(pmfs[0]):
        for second, b in enumerate(pmfs[1]):
            if a * b:
                for seen, mass in verify_stochastic(p, [(first, pmfs[0]), (second, pmfs[1])]).items():
                    law[seen] = law.get(seen, 0) + a * b * mass
    return {seen: mass for seen, mass in law.items() if mass}


def test_what_is_asked_is_named_and_the_last_sibling_is_not_asked_for():
    draws = Narrated(Tape(0))
    step = try_at_random(draws, P, (2, 1, 2), (Q, Q, OTHER), 4)
    names = [decision.site for decision in draws.decisions]
    tried = names[2:-1] if not step.accepted else names[2:]
    assert names[:2] == [("next", 4, 0), ("next", 4, 1)]
    assert tried == [("accept", 4, k) for k in range(len(tried))]
    assert tried
    assert names[-1] == (tried[-1] if step.accepted else ("residual", 4))


def accepted(law):
    return project(law, lambda seen: seen[1]).get(1, 0)


def test_the_order_matters_to_acceptance_alone():
    in_turn = [one_position(recursive_rejection, P, pmfs) for pmfs in ((Q, OTHER), (OTHER, Q))]
    at_random = one_position(in_random_order, P, (Q, OTHER))
    assert [accepted(law) for law in (*in_turn, at_random)] == [
        Fraction(23, 25),
        Fraction(89, 100),
        Fraction(181, 200),
    ]
    assert at_random == by_algorithm(P, (Q, OTHER))


@examples(30)
@given(pmf_pairs(3), pmf_pairs(3))
def test_every_law_is_that_of_the_algorithm(one, other):
    (p, q), (_, second) = one, other
    law = one_position(in_random_order, p, (q, second))
    assert law == by_algorithm(p, (q, second))
    assert project(law, lambda seen: seen[0]) == {token: mass for token, mass in enumerate(p) if mass}
