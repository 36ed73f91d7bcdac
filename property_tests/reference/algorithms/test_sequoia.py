"""Sequoia's siblings against its Algorithm 2 stated again, one draw and one decision after the other."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from reference import Task
from reference.algorithms import sequoia
from reference.drafters.tree import independent, without_replacement, without_replacement_then_uniform
from reference.verifiers.k_seq import k_seq
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, examples, law_of, pmf
from test_support.reference.multi_draft_rules import accepted, counts, one_level, pairs

CERTAIN = pmf(1, 0, 0)


def algorithm_2(p, q, count):
    """The law of (token, accepted): with what is owed, the draft, and the rejected tokens."""
    law = {}

    def put(token, kept, mass):
        if mass:
            law[token, kept] = law.get((token, kept), 0) + mass

    def go(left, owed, draft, rejected, weight):
        if left == 0 or not any(draft):
            for token, mass in enumerate(owed):
                put(token, 0, weight * mass)
            return
        for token, drawn in enumerate(draft):
            if not drawn:
                continue
            keep = min(Fraction(1), owed[token] / drawn)
            put(token, 1, weight * drawn * keep)
            if keep == 1:
                continue
            after = [max(a - b, 0) for a, b in zip(owed, draft, strict=True)]
            rest = [0 if other == token else mass for other, mass in enumerate(draft)]
            if sum(rest) == 0:
                rest = [0 if other in {*rejected, token} else Fraction(1) for other in range(len(draft))]
            go(
                left - 1,
                [mass / sum(after) for mass in after],
                [mass / sum(rest) for mass in rest] if sum(rest) else rest,
                {*rejected, token},
                weight * drawn * (1 - keep),
            )

    go(count, p.tolist(), q.tolist(), set(), Fraction(1))
    return law


def test_an_exhausted_draft_goes_on_evenly():
    assert accepted(P, CERTAIN, 3, without_replacement, recursive_rejection) == Fraction(1, 5)
    assert accepted(P, CERTAIN, 3, without_replacement_then_uniform, recursive_rejection) == 1
    assert sum(mass for (_, kept), mass in algorithm_2(P, CERTAIN, 3).items() if kept) == 1


@examples(40)
@given(pairs, counts)
def test_siblings_are_those_of_the_algorithm(pair, count):
    p, q = pair
    assert one_level(p, q, count, without_replacement_then_uniform, recursive_rejection) == algorithm_2(p, q, count)
    assert count < len(p) or accepted(p, q, count, without_replacement_then_uniform, recursive_rejection) == 1


def test_other_rules_do_not_cover_what_two_siblings_cover():
    """Sequoia's appendix: p = (1, 0), q = (1/2, 1/2), two candidates. SpecInfer rejects both in 25 %, SpecTr too."""
    p, q = pmf(1, 0), pmf("1/2", "1/2")
    assert accepted(p, q, 2, independent, recursive_rejection) == Fraction(3, 4)
    assert accepted(p, q, 2, independent, k_seq(8)) == Fraction(3, 4)
    assert accepted(p, q, 2, without_replacement_then_uniform, recursive_rejection) == 1


def test_the_row_drafts_so():
    task = Task(*table_pair("point_draft", 3, 0), horizon=2)
    decoder = sequoia.build(task, acceptance=(0.6, 0.3, 0.2), size=4, depth=1)
    rounds = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1])
    assert {(len(done.draft), done.accepted) for done in rounds} == {(3, 1)}
