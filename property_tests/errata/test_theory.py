"""The theory note: the coupling itself, the acceptance rate, and its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference import Task, Verified, chain, chain_decoder, constant, flip, model_drafter, overlap, residual
from reference.algorithms import speculative_sampling
from reference.verifiers.speculative_sampling import speculative_sampling as verify
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import (
    bias,
    lengths,
    mean,
    ratio,
    rational_pairs,
    rule_law,
    sampled_law,
)
from test_support.laws.rational import P, Q, always, as_law, distance, law_of, pmf

WIDE, EVEN = (0.9, 0.1), (0.5, 0.5)
"""The pair of most counterexamples to the bound."""


@erratum(
    "TH",
    "1.2",
    stated="One pass of the target over the prefix and gamma drafts gives gamma + 1 distributions.",
    verdict=Verdict.TRUE,
    correct="For gamma = 5 a fully accepted round reads {rows} rows. (The implementation note's Sections 3.3.3 and 8 "
    "say gamma positions: its slice has {slice} rows, and the one of the extra token is read separately.)",
)
def test_a_verifying_pass_gives_one_row_more_than_drafts():
    read, known, gamma = [], 4, 5

    def target(tokens):
        read.append(len(tokens))
        return P

    draft = chain((2,) * gamma, (P,) * gamma)
    law = law_of(lambda draws: verify(draws, target, (0,) * known, draft).accepted)
    rows = list(range(known - 1, known + gamma - 1))
    assert law == {gamma: 1}
    assert len(set(read)) == gamma + 1
    assert len(rows) == gamma
    return {"rows": len(set(read)), "slice": len(rows)}


@erratum(
    "TH",
    "2.3",
    stated="Accepting with min(1, p/q) and otherwise drawing from norm((p - q)+) gives the law p exactly.",
    verdict=Verdict.TRUE,
    correct="Exact on {pairs} rational pairs with zeros, and over several rounds on {tables} context-dependent tables "
    "(joint law of 3 tokens, gamma = 2). Without the residual the first pair is off by {bias}.",
)
def test_the_output_law_is_the_target():
    pairs = [(P, Q), *rational_pairs(2, 40), *rational_pairs(4, 40)]
    assert all(sampled_law(p, q) == p.tolist() for p, q in pairs)
    tables = [table_pair(shape, 3, seed) for shape in ("generic", "zeros", "peaked") for seed in range(4)]
    for p, q in tables:
        task = Task(p, q, horizon=3)
        assert decoder_law(speculative_sampling.build(task, gamma=2), (0,)).probabilities == target_law(task, (0,))
    without = bias(rule_law(ratio(P, Q), lambda _: P))
    assert without > 0
    return {"pairs": len(pairs), "tables": len(tables), "bias": without}


@erratum(
    "TH",
    "2.3 and 2.6",
    stated="After a rejection the token is drawn from the adjusted distribution norm((p - q)+).",
    verdict=Verdict.CONDITION,
    correct="True if p and q differ. For p = q the mass of (p - q)+ is {mass}, so the distribution is 0/0. A rejection "
    "then has probability {rejected} in exact arithmetic, but can happen in floating point: draw from p in this case.",
)
def test_the_residual_needs_a_difference():
    excess = [max(a - b, 0) for a, b in zip(P, P, strict=True)]
    rejected = 1 - overlap(P, P)
    assert sum(excess) == rejected == 0
    assert residual(P, P).tolist() == P.tolist()
    assert sampled_law(P, P) == P.tolist()
    return {"mass": sum(excess), "rejected": rejected}


@erratum(
    "TH",
    "2.4",
    stated="The expected number of accepted drafts is sum min(p, q), and the acceptance rate alpha is that over gamma.",
    verdict=Verdict.FALSE,
    meant=Verdict.CONDITION,
    correct="sum min(p, q) is the acceptance probability alpha of one position. With q = p and gamma = 5 all {all} "
    "drafts are accepted, where the formulas give {sum} and alpha = {divided}. As defined there, alpha could never "
    "exceed 1/gamma. For TV(p, q) = {tv}, alpha is {alpha} at every reached position.",
)
def test_acceptance_is_not_divided_by_gamma():
    even, gamma = pmf("1/2", "1/2"), 5
    accepted = mean(lengths(even, even, gamma)) - 1
    total = overlap(even, even)
    assert accepted == gamma != total
    assert Fraction(total, gamma) == Fraction(1, 5) != 1
    two = lengths(P, Q, 2)
    first, second = 1 - two[1], two[3] / (two[2] + two[3])
    assert first == second == overlap(P, Q) == Fraction(3, 5)
    return {"all": accepted, "sum": total, "divided": Fraction(total, gamma), "tv": 1 - overlap(P, Q), "alpha": first}


@erratum(
    "TH",
    "3.1, phases 3 and 4",
    stated="n is the number accepted; then the n-th draft was rejected, and the residual is that of p_(t+n) and q_n.",
    verdict=Verdict.INCONSISTENT,
    correct="The (n+1)-th draft was rejected, so p_(t+n+1) and q_(n+1) are needed; q_0 does not exist. If the rule "
    "is read literally for n >= 1, the joint law of three tokens is off by {shifted:.4f} on a context-dependent "
    "table. With the right rows it is off by {right}.",
)
def test_the_residual_is_that_of_the_first_rejected_draft():
    p, q = table_pair("generic", 3, 1)
    task = Task(p, q, horizon=3)

    def literal(draws, target, prefix, draft):
        for n, token in enumerate(draft.tokens):
            row, proposed = target(prefix + draft.tokens[:n]), draft.pmfs[n]
            if not flip(draws, ratio(row, proposed)(token), ("accept", n)):
                i = max(n - 1, 0)
                rows = residual(target(prefix + draft.tokens[:i]), draft.pmfs[i])
                return Verified((*draft.tokens[:n], draws.categorical(rows, ("residual", n))), n)
        end = len(draft.tokens)
        return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), end)

    def off(rule):
        decoder = chain_decoder(task, model_drafter(q), constant(2), rule)
        return distance(decoder_law(decoder, (0,)).probabilities, target_law(task, (0,)))

    assert off(verify) == 0 < off(literal)
    return {"shifted": off(literal), "right": off(verify)}


@erratum(
    "TH",
    "3.2",
    stated="Drafting min(gamma, remaining - 1) tokens near the end keeps the output within its length.",
    verdict=Verdict.TRUE,
    correct="If 3 tokens remain, a round with gamma = 5 emits at most {most} tokens. With 5 drafts it would emit "
    "{over}.",
)
def test_the_last_drafts_leave_room_for_the_extra_token():
    even = pmf("1/2", "1/2")
    for remaining in range(1, 7):
        assert max(lengths(even, even, 5, horizon=remaining)) == remaining
    draft = chain((0,) * 5, (even,) * 5)
    over = len(law_of(lambda draws: verify(draws, always(even), (0,), draft).tokens).popitem()[0])
    assert over == 6
    return {"most": max(lengths(even, even, 5, horizon=3)), "over": over}


@erratum(
    "TH",
    "5.1",
    stated="Speculative decoding is a variant of rejection sampling, with M = 1 (because min(1, p/q) is used).",
    verdict=Verdict.FALSE,
    meant=Verdict.CONDITION,
    correct="Rejection sampling needs p <= M q, so M = 1 requires p = q. For p = {p}, q = {q} the smallest M is {m}, "
    "and rejection sampling accepts {classical}; speculative sampling accepts {alpha}. It is a variant with a "
    "residual (a maximal coupling). Its accepted tokens have the law {accepted} and not p; those of rejection "
    "sampling have the law p.",
)
def test_speculative_sampling_is_not_rejection_sampling():
    m = max(P / Q)
    classical = sum(q * (p / (m * q)) for p, q in zip(P, Q, strict=True))
    accepted = np.minimum(P, Q) / overlap(P, Q)
    assert m > 1
    assert classical == 1 / m < overlap(P, Q)
    assert distance(as_law(accepted), as_law(P)) > 0
    return {"p": P, "q": Q, "m": m, "classical": classical, "alpha": overlap(P, Q), "accepted": accepted}
