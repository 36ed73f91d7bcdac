"""The edge-cloud guide: acceptance, correction, and what may be committed unverified."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from reference import Task, flip, one_hot, overlap, residual, total_variation
from reference.algorithms import dynamic_k
from reference.lengths.gating import Gate, is_hard
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import (
    bias,
    normal_logits,
    ratio,
    rule_law,
    sampled_law,
    share_of,
    softmax_two_ways,
    tokens_per_round,
    with_overlap,
)
from test_support.laws.rational import P, Q, as_law, distance, law_of, vector

F = Fraction


def scalar_residual(p, q, token):
    """Return the guide's residual, normalised: p less q(y) at the rejected token y, not clamped."""
    rest = p - one_hot(token, p) * q[token]
    return rest / rest.sum()


def clamped(p, q, token):
    """Return norm((p - 1[y] q(y))+)."""
    rest = np.maximum(p - one_hot(token, p) * q[token], 0 * p)
    return rest / rest.sum()


def likelier(p, q):
    """Return the accept rule of the guide's code: p/q >= 1."""
    return lambda token: F(int(p[token] >= q[token]))


@erratum(
    "EC",
    "0",
    stated="Positions that satisfy alpha = min(1, p/q) are accepted.",
    verdict=Verdict.CONDITION,
    correct="alpha is the probability of acceptance, not a condition on the token. If a draft is accepted with "
    "probability alpha, the law is exact ({coin}). If a draft is accepted exactly when p >= q, the law for p = {p}, "
    "q = {q} is at distance {bias}, even with the right residual.",
)
def test_alpha_is_a_probability():
    coin = bias(sampled_law(P, Q))
    condition = bias(rule_law(likelier(P, Q), lambda _: residual(P, Q)))
    assert coin == 0 < condition
    return {"p": P, "q": Q, "coin": coin, "bias": condition}


@erratum(
    "EC",
    "4",
    stated="Purpose: fewer needless calls of the cloud for verification, the quality kept.",
    verdict=Verdict.CONDITION,
    correct="The gate is right only if the drafter's signals show where the drafter is wrong. Take the defaults for "
    "margin and entropy, the negative log-likelihood at the drafter's own 80th percentile, and no variance. Then a "
    "block of one token of q = {q} is sent to the cloud only if it is token {sent}. The law of the committed text is "
    "{bias} away from p = {p}, because the drafter is sure but wrong. The same gates are exact if they only decide "
    "the length of the draft.",
)
def test_an_unverified_block_has_the_law_of_the_drafter():
    nats = sorted((-math.log(mass), mass) for mass in Q.tolist())
    percentile = next(nat for i, (nat, _) in enumerate(nats) if sum(mass for _, mass in nats[: i + 1]) >= F(4, 5))
    gate = Gate(nll=percentile, entropy=2.5 * math.log(2), margin=0.2)
    sent = [token for token in range(3) if is_hard(gate, Q, token)]
    assert len(sent) == 1

    def program(draws):
        drafted = draws.categorical(Q, ("draft", 0))
        if drafted not in sent or flip(draws, ratio(P, Q)(drafted), ("accept", 0)):
            return drafted
        return draws.categorical(residual(P, Q), ("residual", 0))

    law = vector(law_of(program), 3)
    assert bias(law) > 0
    return {"p": P, "q": Q, "sent": sent[0], "bias": bias(law)}


@erratum(
    "EC",
    "6.1 and 8, dynamic k",
    stated="k grows by one after a share of at least .8 accepted drafts and falls by one after at most .4.",
    verdict=Verdict.TRUE,
    correct="The rule is also lossless, because k depends on past rounds only: distance {bias} on {tables} "
    "context-dependent tables (joint law of 4 tokens, k from 1 to 3).",
)
def test_dynamic_k_is_lossless():
    tables = [table_pair("generic", 2, seed) for seed in range(4)]
    found = []
    for p, q in tables:
        task = Task(p, q, horizon=4)
        law = decoder_law(dynamic_k.build(task, start=1, minimum=1, maximum=3), (0,)).probabilities
        found.append(distance(law, target_law(task, (0,))))
    assert set(found) == {0}
    assert distance(as_law(P), as_law(Q)) > 0
    return {"bias": max(found), "tables": len(tables)}


@erratum(
    "EC",
    "6.2, the accept test",
    stated="The code accepts while p/q >= 1 and draws the correction from p, or from the residual.",
    verdict=Verdict.DEFECT,
    correct="This is not min(1, p/q): the code never accepts if p < q. For p = {p}, q = {q} the law is {law}, at "
    "distance {bias}. With the residual it is {strict}, at distance {strict_bias}. The code accepts {accepted} "
    "instead of {alpha}.",
)
def test_the_code_of_the_guide_accepts_only_likelier_tokens():
    law, strict = (rule_law(likelier(P, Q), lambda _, row=row: row) for row in (P, residual(P, Q)))
    accepted = sum(q for p, q in zip(P, Q, strict=True) if p >= q)
    assert min(bias(law), bias(strict)) > 0
    assert accepted < overlap(P, Q)
    return {
        "p": P,
        "q": Q,
        "law": law,
        "bias": bias(law),
        "strict": strict,
        "strict_bias": bias(strict),
        "accepted": accepted,
        "alpha": overlap(P, Q),
    }


@erratum(
    "EC",
    "6.2, the accept test and rounding",
    stated="The code accepts where p_i / max(q_i, 1e-9) >= 1.0.",
    verdict=Verdict.DEFECT,
    correct="The code rejects drafts because of rounding alone. If two float32 softmax kernels compute p and q from "
    "equal logits, p/q < 1 for {share} of drawn tokens (V = 1000). So it rejects about every third draft of a "
    "drafter that equals the target. If drafts are accepted with probability p/q, the mean rejection probability is "
    "{coin:.1e}.",
)
def test_equal_models_fail_a_hard_threshold_by_rounding():
    p, q = softmax_two_ways(normal_logits(1000, 1000))
    places = (np.linspace(0.05, 0.95, len(q)), np.arange(len(q)))
    drawn = np.array(
        [row.cumsum().searchsorted(u * row.sum()) for row, u in zip(q.astype(float), places[0], strict=True)]
    )
    below = p[places[1], drawn] < q[places[1], drawn]
    coin = (q.astype(float) - np.minimum(p, q)).sum(axis=1).mean()
    assert 0.1 < below.mean() < 0.9
    assert coin < 1e-5
    return {"share": share_of(int(below.sum()), len(below)), "coin": coin}


@erratum(
    "EC",
    "6.2, the floor under q",
    stated="Dividing by max(q, 1e-9) avoids a division by zero.",
    verdict=Verdict.DEFECT,
    correct="The floor changes the ratio of rare tokens. For p = {p:.0e}, q = {q:.0e} the ratio is {floored:.1f} "
    "instead of {true:.0f}, so the token is rejected. Compare without a division: u q < p.",
)
def test_a_floor_under_q_rejects_rare_tokens():
    p, q = 1e-10, 1e-12
    floored, true = p / max(q, 1e-9), p / q
    assert floored < 1 < true
    assert all(u * q < p for u in (0.0, 0.5, 0.999))
    return {"p": p, "q": q, "floored": floored, "true": true}


@erratum(
    "EC",
    "8, timeouts",
    stated="Fallback: when the cloud takes longer than 400 ms, commit the first draft token for now, to keep going.",
    verdict=Verdict.CONDITION,
    correct="The text continues, but its law is wrong. The committed token has the law q. If the cloud is late with "
    "probability {late}, the law of a token is {bias} = P(late) TV(p, q) away from p. To send the request again is "
    "exact.",
)
def test_a_token_committed_on_timeout_is_the_drafters():
    late = F(1, 10)

    def program(draws):
        if flip(draws, late, ("late",)):
            return draws.categorical(Q, ("draft", 0))
        return draws.categorical(P, ("target", 0))

    law = vector(law_of(program), 3)
    assert bias(law) == late * total_variation(P, Q) > 0
    return {"late": late, "bias": bias(law)}


@erratum(
    "EC",
    "3 and 6.2, a whole block accepted",
    stated="When all k drafts pass there is no correction; the round ends.",
    verdict=Verdict.CONDITION,
    correct="The rule is lossless (distance {bias} over 3 tokens of a table, k = 2). But it ignores a row that the "
    "pass has computed: {without:.3f} tokens per call instead of {with_bonus:.3f} (alpha = {alpha}, k = {k}). From "
    "this row one more token can be drawn.",
)
def test_a_whole_block_earns_an_extra_token():
    alpha, k = F(4, 5), 6
    p, q = with_overlap(alpha)

    def program(draws):
        for i in range(k):
            drafted = draws.categorical(q, ("draft", i))
            if not flip(draws, ratio(p, q)(drafted), ("accept", i)):
                draws.categorical(residual(p, q), ("residual", i))
                return i + 1
        return k

    without = sum(count * mass for count, mass in law_of(program).items())
    with_bonus = tokens_per_round(alpha, k)
    assert without == (1 - alpha**k) / (1 - alpha) < with_bonus
    task = Task(*table_pair("generic", 2, 7), horizon=3)

    def text(draws):
        tokens = (0,)
        while len(tokens) < 4:
            for i in range(2):
                rows = task.target(tokens), task.draft(tokens)
                drafted = draws.categorical(rows[1], ("draft", len(tokens)))
                kept = flip(draws, ratio(*rows)(drafted), ("accept", len(tokens)))
                tokens += (drafted if kept else draws.categorical(residual(*rows), ("residual", i)),)
                if not kept:
                    break
        return tokens[1:4]

    off = distance(law_of(text), target_law(task, (0,)))
    assert off == 0
    return {"without": without, "with_bonus": with_bonus, "alpha": alpha, "k": k, "bias": off}


@erratum(
    "EC",
    "12, accepted tokens",
    stated="The accept factor ensures that the marginal law of accepted tokens is p.",
    verdict=Verdict.FALSE,
    meant=Verdict.CONDITION,
    correct="An accepted token has the law min(p, q)/alpha, which is {accepted} for p = {p}, q = {q}. Only accepted "
    "and corrected tokens together have the law p (distance {whole}).",
)
def test_accepted_tokens_alone_are_not_distributed_as_p():
    def program(draws):
        drafted = draws.categorical(Q, ("draft", 0))
        return drafted if flip(draws, ratio(P, Q)(drafted), ("accept", 0)) else None

    law = law_of(program)
    accepted = [law.get(token, 0) / (1 - law[None]) for token in range(3)]
    assert accepted == (np.minimum(P, Q) / overlap(P, Q)).tolist()
    assert bias(accepted) > 0 == bias(sampled_law(P, Q))
    return {"p": P, "q": Q, "accepted": accepted, "whole": bias(sampled_law(P, Q))}
