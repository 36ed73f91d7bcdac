"""The edge-cloud guide: sampling parameters on both sides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference import (
    chain,
    flip,
    overlap,
    residual,
    softmax,
    top_k,
    top_p,
    warped,
)
from reference.verifiers.speculative_sampling import speculative_sampling
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import bias, ratio, sampled_law
from test_support.laws.rational import P, law_of, pmf

F = Fraction


@erratum(
    "EC",
    "2 and 10, equal parameters",
    stated="Drafter and target must have the same sampling parameters; any mismatch lowers acceptance noticeably.",
    verdict=Verdict.FALSE,
    meant=Verdict.CONDITION,
    correct="Exactness requires only that the reported q is the law from which the draft was drawn. Equal "
    "temperatures are not needed, and may even lower the acceptance. For p = softmax{target} and drafter logits "
    "{draft}, alpha is {same:.4f} at equal temperatures and {colder:.4f} with the drafter at T = 1/2. Both laws are "
    "p up to rounding.",
)
def test_different_temperatures_can_raise_acceptance():
    target, draft = np.array([2.0, 1.0, 0.0]), np.array([1.0, 0.5, 0.0])
    p, same, colder = softmax(target), softmax(draft), softmax(draft, 0.5)
    assert overlap(p, colder) > overlap(p, same) + 0.1
    rounding = max(abs(np.array(sampled_law(p, q)) - p).max() for q in (same, colder))
    assert rounding < 1e-12
    return {"target": target.astype(int), "draft": draft, "same": overlap(p, same), "colder": overlap(p, colder)}


@erratum(
    "EC",
    "2 and 13, the reported q",
    stated="Parameters agree if they are configured alike; the drafter outputs tokens and q(y_i).",
    verdict=Verdict.CONDITION,
    correct="The reported q must be the law from which the token was drawn. If the token is drawn from the top 2 of "
    "q = {q} and q itself is reported, p = {p} becomes the law {law}, at distance {bias}. With the truncated q as "
    "the reported one the law is exact ({reported}).",
)
def test_the_reported_q_must_be_the_sampled_one():
    q = pmf(".5", ".3", ".2")
    sampled = top_k(q, 2)

    def program(draws):
        drafted = draws.categorical(sampled, ("draft", 0))
        if flip(draws, ratio(P, q)(drafted), ("accept", 0)):
            return drafted
        return draws.categorical(residual(P, q), ("residual", 0))

    law = [law_of(program).get(token, 0) for token in range(3)]
    assert bias(law) > 0 == bias(sampled_law(P, sampled))
    return {"q": q, "p": P, "law": law, "bias": bias(law), "reported": bias(sampled_law(P, sampled))}


@erratum(
    "EC",
    "6.2, the cloud's probabilities",
    stated="The cloud takes the softmax of its logits; the request brings temperature, top-p and penalty.",
    verdict=Verdict.INCONSISTENT,
    correct="The code never uses these parameters. So its p is not truncated, while q is (Section 8 requires the "
    "same top-p for both). For p = q = {row} the output has the law {raw} instead of {wanted}, at distance {bias}.",
)
def test_the_cloud_has_to_apply_the_sampling_parameters():
    row = pmf(".6", ".3", ".1")
    wanted = top_p(row, F("0.9"))
    raw = sampled_law(row, wanted)
    assert bias(raw, wanted) > 0 == bias(sampled_law(wanted, wanted), wanted)
    return {"row": row, "raw": raw, "wanted": wanted, "bias": bias(raw, wanted)}


@erratum(
    "EC",
    "8, the repetition penalty",
    stated="q and p use the same repetition penalty.",
    verdict=Verdict.CONDITION,
    correct="True if the penalty is computed for each position: the row of p that judges y_i must be penalised for "
    "the drafts before y_i too. If the history is fixed at the start of the round, the law of two tokens is "
    "{frozen:.4f} away from the penalised target (penalty {penalty}). With the right history it is 0 away, up to "
    "rounding.",
)
def test_the_penalty_sees_the_drafts_before_its_position():
    penalty, prompt = 1.5, (0,)

    def logits(tokens):
        return np.array([1.0, 0.5, -0.5]) + 0.3 * np.array([len(tokens) % 2, 1, 0])

    target = warped(logits, repetition_penalty=penalty)
    known_only = lambda tokens: softmax(_penalised(logits(tokens), prompt, penalty))  # noqa: E731
    drafter = warped(logits, repetition_penalty=penalty, temperature=2.0)

    def two(model):
        def program(draws):
            first = draws.categorical(drafter(prompt), ("draft", 0))
            draft = chain((first,), (drafter(prompt),))
            out = speculative_sampling(draws, model, prompt, draft).tokens
            return out if len(out) == 2 else (*out, draws.categorical(target(prompt + out), ("next",)))

        return law_of(program)

    plain = law_of(lambda draws: _two_draws(draws, target, prompt))
    frozen, right = (
        sum(abs(law.get(key, 0) - mass) for key, mass in plain.items()) / 2 for law in (two(known_only), two(target))
    )
    assert frozen > 0.01
    assert right < 1e-12
    return {"frozen": frozen, "penalty": penalty}


def _penalised(values, tokens, penalty):
    seen = np.isin(np.arange(len(values)), tokens)
    return np.where(seen, np.where(values > 0, values / penalty, values * penalty), values)


def _two_draws(draws, target, prompt):
    first = draws.categorical(target(prompt), ("first",))
    return first, draws.categorical(target((*prompt, first)), ("second",))
