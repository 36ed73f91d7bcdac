"""The edge-cloud guide: sampling parameters, signals, messages, caches and metrics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from reference import (
    ALGORITHMS,
    Sampled,
    Task,
    accept_probability,
    chain,
    generate,
    keep_lengths,
)
from reference.algorithms import lookahead
from reference.edge_cloud.messages import Verify
from reference.edge_cloud.wire import encode
from reference.lengths.gating import Gate, entropy, is_hard, margin
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import (
    bias,
    lengths,
    mean,
    ratio,
    rule_law,
    sampled_law,
    tokens_per_round,
    with_overlap,
)
from test_support.laws.rational import P, Q, always, law_of, pmf

F = Fraction


@erratum(
    "EC",
    "1 and 9, against 5.1",
    stated="Only token ids are uploaded.",
    verdict=Verdict.INCONSISTENT,
    correct="The request of Section 5.1 also contains q(y_i), a mask and the sampling parameters. Six drafts are "
    "{with_q} bytes of JSON with their probabilities, and {without} without.",
)
def test_the_upload_is_more_than_token_ids():
    ids, masses = (101, 7, 2044, 9, 31, 5), (0.123456, 0.5, 0.87, 0.25, 0.0625, 0.333333)
    with_q, without = (len(encode(Verify("s", 0, 10, ids, sent, ()))) for sent in (masses, ()))
    assert with_q > without
    return {"with_q": with_q, "without": without}


@erratum(
    "EC",
    "4.1, the margin",
    stated="The margin is p_1 - p_2, the difference of the two largest probabilities.",
    verdict=Verdict.INCONSISTENT,
    correct="In the guide p is the target. But the gate decides before the target is called, so the drafter's q_1 - "
    "q_2 is meant. The two margins can differ: p = {p} has {target}, q = {q} has {draft}, and a threshold may lie "
    "between them.",
)
def test_the_margin_is_the_drafters():
    target, draft = margin(P), margin(Q)
    gate = Gate(margin=(target + draft) / 2)
    assert is_hard(gate, P, 0) != is_hard(gate, Q, 0)
    return {"target": target, "draft": draft, "p": P, "q": Q}


@erratum(
    "EC",
    "4.1 and 8, the entropy",
    stated="H = -sum q log q, with the threshold 2.5 bits.",
    verdict=Verdict.INCONSISTENT,
    correct="The formula gives nats, and the threshold of the note is {nats:.4f} nats. If the value in nats is "
    "compared with the number of bits, the threshold is never reached with up to {silent} possible tokens, because "
    "ln {silent} = {ceiling:.3f}. With the threshold in nats it is reached with {right} equally likely tokens.",
)
def test_bits_are_not_nats():
    bits = 2.5
    nats = bits * math.log(2)
    silent = math.floor(math.exp(bits))
    right = next(size for size in range(2, 99) if entropy(np.full(size, 1 / size)) > nats)
    assert not is_hard(Gate(entropy=bits), np.full(silent, 1 / silent), 0)
    assert is_hard(Gate(entropy=nats), np.full(silent, 1 / silent), 0)
    return {"nats": nats, "silent": silent, "ceiling": math.log(silent), "right": right}


@erratum(
    "EC",
    "6.2, the rows",
    stated="prefill(ctx + y) gives a list of length k, whose row i judges y_i.",
    verdict=Verdict.DEFECT,
    correct="Row i must be the row after ctx and the drafts before y_i. So the rows start with the last token of the "
    "context: {rows} rows for k = {k}, the last for the extra token. The k rows of y itself are one position late: "
    "they test {late} with p = {late_p}, where the right value is {right_p} (a context-dependent table).",
)
def test_the_rows_start_with_the_last_context_token():
    target = table_pair("generic", 3, 4)[0]
    context, drafts, read = (0, 1), (2, 0, 1), []

    def counted(tokens):
        read.append(tokens)
        return target(tokens)

    draft = chain(drafts, tuple(target(context + drafts[:i]) for i in range(3)))
    law = law_of(lambda draws: speculative_sampling(draws, counted, context, draft).accepted)
    rows = sorted(set(read), key=len)
    assert law == {3: 1}
    assert rows == [context + drafts[:i] for i in range(4)]
    right, late = target(context)[drafts[0]], target(context + drafts[:1])[drafts[0]]
    assert right != late
    return {"rows": len(rows), "k": len(drafts), "late": f"y_1 = {drafts[0]}", "late_p": late, "right_p": right}


@erratum(
    "EC",
    "6.2, the cache",
    stated="After a rejection the cloud writes the cache entries of the accepted drafts and of z.",
    verdict=Verdict.DEFECT,
    correct="The correction z was not fed to the model, so it has no cache entry. With {known} known tokens and {n} "
    "of 6 drafts accepted, the cache keeps {keep} entries for {tokens} tokens. z is fed first in the next round.",
)
def test_the_correction_has_no_cache_entry_yet():
    known, n = 10, 2
    keep = keep_lengths(known, 6, n).target
    tokens = known + n + 1
    assert keep == tokens - 1
    return {"known": known, "n": n, "keep": keep, "tokens": tokens}


@erratum(
    "EC",
    "9",
    stated="la/k, alpha_mean and the cumulative acceptance A_cum measure acceptance.",
    verdict=Verdict.CONDITION,
    correct="These are three different quantities. For a constant rate {alpha} and k = {k}, the mean of la/k is "
    "{share:.3f}. A_cum depends on what counts as verified: accepted over judged positions is {judged:.2f}, accepted "
    "over drafted is {share:.3f}. alpha_mean is the mean of min(1, p/q) over all k positions, also over positions "
    "that were never reached.",
)
def test_three_metrics_of_acceptance():
    alpha, k = F(83, 100), 6
    law = lengths(*with_overlap(alpha), k)
    accepted, judged = mean(law) - 1, sum(mass * min(count, k) for count, mass in law.items())
    assert accepted / judged == alpha > accepted / k
    assert accepted == alpha * tokens_per_round(alpha, k - 1)
    return {"alpha": alpha, "k": k, "share": accepted / k, "judged": accepted / judged}


@erratum(
    "EC",
    "10, large k",
    stated="A large k wastes drafts, because a rejection in the middle voids the rest.",
    verdict=Verdict.TRUE,
    correct="The mean number of wasted drafts is {wasted:.2f} for k = 2, 4, 8, 12 at a rate of {alpha}.",
)
def test_longer_drafts_waste_more():
    alpha = F(4, 5)
    wasted = [k + 1 - mean(lengths(*with_overlap(alpha), k)) for k in (2, 4, 8, 12)]
    assert wasted == sorted(set(wasted))
    assert mean(lengths(*with_overlap(1), 4)) == 5
    return {"wasted": wasted, "alpha": alpha}


@erratum(
    "EC",
    "11",
    stated="EAGLE and lookahead train an auxiliary head that predicts future logits.",
    verdict=Verdict.FALSE,
    correct="Lookahead trains nothing. It is built from the target alone ({paper}); here it decoded {tokens} tokens "
    "of a constant target in {calls} calls. EAGLE predicts features, according to its paper and to the survey among "
    "these notes (read, not computed).",
)
def test_lookahead_has_no_trained_head():
    row = next(row for row in ALGORITHMS if row.name == "lookahead")
    task = Task(always(pmf(0, 1)), draft=None, horizon=12)
    done = generate(lookahead.build(task, width=4, order=3), (1,), Sampled(0))
    assert done.tokens == (1,) * 12
    assert len(done.rounds) < 12
    return {"paper": row.paper.split(",")[0], "tokens": len(done.tokens), "calls": len(done.rounds)}


@erratum(
    "EC",
    "12, the whole sequence",
    stated="With min(1, p/q) and the residual at the first rejection the text has the law of sampling p alone.",
    verdict=Verdict.CONDITION,
    correct="True with the residual norm((p - q)+): distance {right}. With the guide's own residual, clamped at 0, "
    "the distance is {clamped}.",
)
def test_the_summary_holds_for_the_right_residual():
    def scalar(token):
        rest = np.maximum(P - np.array([Q[v] * (v == token) for v in range(3)], dtype=object), 0 * P)
        return rest / rest.sum()

    right, clamped = bias(sampled_law(P, Q)), bias(rule_law(ratio(P, Q), scalar))
    assert right == 0 < clamped
    assert accept_probability(P, Q, 0) < 1
    return {"right": right, "clamped": clamped}
