"""The implementation note: acceptance, residual, and the functions from logits to probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from reference import (
    Task,
    Verified,
    accept_probability,
    argmax,
    chain_decoder,
    constant,
    entropy_adaptive,
    flip,
    model_drafter,
    normalized_entropy,
    one_hot,
    residual,
)
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import bias, lengths, mean, normal_logits, ratio, rule_law, share_of, softmax_two_ways
from test_support.laws.rational import P, Q, as_law, distance, law_of, pmf, vector

F = Fraction


def normalised_part(values):
    """Return max(0, x) over its sum, as the note does it: 0/0 where nothing is positive."""
    kept = np.where(values > 0, values, np.zeros_like(values))
    with np.errstate(invalid="ignore"):
        return kept / kept.sum(axis=-1, keepdims=True)


def argmax_sampler(p, q, pick):
    """Return the law of one position: draft argmax q, accept with min(1, p/q), else ``pick`` from the residual."""

    def program(draws):
        drafted = argmax(q)
        if flip(draws, accept_probability(p, q, drafted), ("accept", 0)):
            return drafted
        return pick(draws, residual(p, q))

    return vector(law_of(program), len(p))


@erratum(
    "IM",
    "2.1 and 2.2",
    stated="max_fn computes max(0, p - q) over its sum.",
    verdict=Verdict.CONDITION,
    correct="True if p - q is positive somewhere. If two float32 softmax kernels compute p and q from equal logits, "
    "{share} of rows (V = 8) have some p < q and no p > q. Then a rejection is possible (mean probability "
    "{chance:.1e} per token), and max_fn returns NaN. The fix is to draw from p.",
)
def test_the_normalised_positive_part_can_be_nan():
    p, q = softmax_two_ways(normal_logits(20_000, 8))
    empty = (p <= q).all(axis=1) & (p < q).any(axis=1)
    assert empty.sum() > 500
    with np.errstate(divide="ignore"):
        chances = np.where(empty, (q * np.maximum(1 - p.astype(float) / q, 0)).sum(axis=1), 0)
    row = int(empty.argmax())
    assert np.isnan(normalised_part(p[row] - q[row])).all()
    assert residual(p[row], q[row]).tolist() == p[row].tolist()
    assert normalised_part((P - Q).astype(float)) == pytest.approx(residual(P, Q).astype(float))
    assert chances.mean() > 0
    return {"share": share_of(int(empty.sum()), len(p)), "chance": chances.mean()}


@erratum(
    "IM",
    "3.3.2",
    stated="The buffer for q has the target's vocabulary size.",
    verdict=Verdict.CONDITION,
    correct="True if both models have the same vocabulary. If the drafter is padded to {padded} entries and the "
    "target has {size}, storing the drafter's row raises {error}. The sizes have to be compared first.",
)
def test_the_buffer_of_q_assumes_one_vocabulary():
    size, padded = 3, 4
    buffer = np.zeros((1, 2, size))
    buffer[0, 0] = np.full(size, 1 / size)
    with pytest.raises(ValueError, match="could not broadcast") as caught:
        buffer[0, 1] = np.full(padded, 1 / padded)
    with pytest.raises(ValueError, match="vocabularies differ"):
        accept_probability(P, pmf(1, 0, 0, 0), 0)
    return {"size": size, "padded": padded, "error": type(caught.value).__name__}


@erratum(
    "IM",
    "3.3.4, the comparison",
    stated="A draft is rejected iff a uniform r is greater than p/q.",
    verdict=Verdict.DEFECT,
    correct="A float32 uniform of NumPy has 24 bits, so r = 0 occurs with probability {chance:.2e}. Then a token "
    "with p = 0 is accepted. The right test is r q < p: at r = 0 it accepts {kept} such tokens.",
)
def test_a_uniform_of_zero_must_not_accept_the_impossible():
    uniforms = np.random.default_rng(0).random(100_000, dtype=np.float32)
    assert (uniforms * 2**24 % 1 == 0).all()
    p, q, r = np.float32(0), np.float32(0.5), np.float32(0)
    assert not r > p / q
    assert not r * q < p
    assert accept_probability(pmf(0, 1), pmf("1/2", "1/2"), 0) == 0
    return {"chance": 2.0**-24, "kept": int(r * q < p)}


@erratum(
    "IM",
    "3.3.4, why the loop stops",
    stated="After a rejection the later drafts are void, because they continue a rejected text.",
    verdict=Verdict.TRUE,
    correct="If the round continues with the drafts after the replacement, the law is off by {bias:.4f} (joint law "
    "of 3 tokens of a context-dependent table). If it stops there, the law is off by {stopped}.",
)
def test_drafts_behind_a_rejection_are_void():
    p, q = table_pair("generic", 2, 3)
    task = Task(p, q, horizon=3)

    def onward(draws, target, prefix, draft):
        out = ()
        for i, token in enumerate(draft.tokens):
            row = target(prefix + draft.tokens[:i])
            if flip(draws, accept_probability(row, draft.pmfs[i], token), ("accept", i)):
                out = (*out, token)
            else:
                out = (*out, draws.categorical(residual(row, draft.pmfs[i]), ("residual", i)))
        return Verified((*out, draws.categorical(target(prefix + out), ("bonus",))), len(out))

    def off(rule):
        decoder = chain_decoder(task, model_drafter(q), constant(2), rule)
        return distance(decoder_law(decoder, (0,)).probabilities, target_law(task, (0,)))

    assert off(speculative_sampling) == 0 < off(onward)
    return {"bias": off(onward), "stopped": off(speculative_sampling)}


@erratum(
    "IM",
    "3.3.5",
    stated="skip_sample_adjustment samples p after a rejection, for debugging.",
    verdict=Verdict.CONDITION,
    correct="The option changes the law without a warning: for p = {p}, q = {q} the law is {law}, at distance {bias}.",
)
def test_skipping_the_adjustment_changes_the_law():
    law = rule_law(ratio(P, Q), lambda _: P)
    assert bias(law) > 0 == bias(rule_law(ratio(P, Q), lambda _: residual(P, Q)))
    return {"p": P, "q": Q, "law": law, "bias": bias(law)}


@erratum(
    "IM",
    "3.3.6, the returned rate",
    stated="The function returns the text and the acceptance rate, accepted over drafted tokens.",
    verdict=Verdict.TRUE,
    correct="It is E[n]/gamma, which the theory note calls alpha. This is not the acceptance rate per position: with "
    "the rate {alpha} and gamma = 5 it is {rate:.3f}. To find the rate, divide by the number of positions reached "
    "(this gives {reached}).",
)
def test_accepted_over_drafted_is_not_the_acceptance_rate():
    law = lengths(pmf(".8", ".2"), pmf(1, 0), 5)
    accepted, reached = mean(law) - 1, sum(mass * min(count, 5) for count, mass in law.items())
    alpha = F(4, 5)
    assert accepted / 5 < alpha == accepted / reached
    return {"rate": accepted / 5, "alpha": alpha, "reached": accepted / reached}


@erratum(
    "IM",
    "4.2, the default setting",
    stated="The greedy processor makes generation deterministic: the most probable token.",
    verdict=Verdict.DEFECT,
    correct="The processor uses softmax probabilities in the accept test, and takes the argmax of q and of the "
    "residual. First example: p = {p}, q = {q}. Both argmaxes are token 0, but token 1 is emitted with probability "
    "{other:.3f}. Second example: p = {p2}, q = {q2}. The greedy token 0 has probability {answer}, and the law is "
    "{law}. Greedy decoding needs one-hot p and q; then the law is {exact}.",
)
def test_softmax_probabilities_with_an_argmax_sampler_are_not_greedy():
    p, q = pmf(".5", ".45", ".05"), pmf(".9", ".05", ".05")
    p2, q2 = pmf(".5", ".3", ".2"), pmf(".4", ".6", 0)
    first, second = (argmax_sampler(*pair, lambda draws, row: argmax(row)) for pair in ((p, q), (p2, q2)))
    assert argmax(p) == argmax(q) == 0 < first[1]
    assert argmax(p2) == 0 == second[0]
    exact = argmax_sampler(one_hot(0, p2), one_hot(1, q2), lambda draws, row: argmax(row))
    assert exact == [1, 0, 0]
    return {
        "p": p,
        "q": q,
        "other": first[1],
        "p2": p2,
        "q2": q2,
        "answer": second[0],
        "law": second,
        "exact": exact,
    }


@erratum(
    "IM",
    "3.3.2 and 4.2",
    stated="The drafter's probabilities are stored as q, whatever its sampler does.",
    verdict=Verdict.DEFECT,
    correct="If the drafter returns the argmax of q, the draft was not drawn from q. For p = {p}, q = {q} the law is "
    "then {law}, at distance {bias}, even if the residual is sampled. If q is stored as a point mass on the draft, "
    "the law is exact ({right}).",
)
def test_an_argmax_draft_was_not_drawn_from_the_soft_q():
    def residual_draw(draws, row):
        return draws.categorical(row, ("residual", 0))

    law = argmax_sampler(P, Q, residual_draw)
    right = argmax_sampler(P, one_hot(argmax(Q), Q), residual_draw)
    assert bias(law) > 0 == bias(right)
    return {"p": P, "q": Q, "law": law, "bias": bias(law), "right": bias(right)}


@erratum(
    "IM",
    "7",
    stated="EGAG updates gamma from the drafter's entropy before drafting, with bounds and a moving average.",
    verdict=Verdict.CONDITION,
    correct="The note does not state the map from entropy to gamma, its direction, the base of the logarithm, what "
    "is averaged, and the rounding. Also, the entropy exists only after the first draft pass. These choices matter. "
    "A rounded average stays at {stuck}, where an average without rounding reaches {real:.3f} after {rounds} rounds "
    "(from 5 towards 1, beta = {beta}). With one-hot rows (temperature 0) H is always {point:.0f}, so gamma never "
    "changes. If the entropy is read before the block is drawn, every choice is lossless (distance {bias}).",
)
def test_the_entropy_rule_is_not_specified():
    beta, rounds = 0.9, 40
    stuck = 5
    for _ in range(rounds):
        stuck = math.floor(beta * stuck + (1 - beta) * 1 + 0.5)
    rule = entropy_adaptive(lambda tokens: pmf(1, 0) if len(tokens) == 1 else pmf("1/2", "1/2"), 1, 5, beta)
    state = rule.plan(rule.init, (0,)).state
    for _ in range(rounds):
        state = rule.plan(state, (0, 0)).state
    assert stuck == 5
    assert state < 2
    point = abs(normalized_entropy(pmf(0, 1, 0)))
    assert point == 0 < normalized_entropy(Q)
    p, q = table_pair("generic", 2, 5)
    task = Task(p, q, horizon=3)
    decoder = chain_decoder(task, model_drafter(q), entropy_adaptive(q, 0, 2, 0.5), speculative_sampling)
    off = distance(decoder_law(decoder, (0,)).probabilities, target_law(task, (0,)))
    assert off == 0 < distance(as_law(P), as_law(Q))
    return {"stuck": stuck, "real": state, "rounds": rounds, "beta": beta, "point": point, "bias": off}
