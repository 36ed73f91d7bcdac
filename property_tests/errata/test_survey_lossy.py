"""The survey: rules that are not lossless, and what makes others lossless."""

from __future__ import annotations

import math

import numpy as np

from reference import (
    Sampled,
    Task,
    generate,
    residual,
    total_variation,
)
from reference.algorithms import (
    bild,
    bild_released,
    confidence_stopping,
    specdec,
    triforce,
    typical_acceptance,
)
from reference.algorithms.bild import is_unlikely
from reference.algorithms.typical_acceptance import typical_threshold
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import bias, ratio, rule_law
from test_support.laws.rational import P, Q, always, distance, law_of, pmf, project, vector


def first_token_law(decoder, size=3):
    """Return the law of the first token of a decoder that starts from one token."""
    law = decoder_law(decoder, (0,)).probabilities
    return vector(project(law, lambda tokens: tokens[0]), size)


@erratum(
    "SV",
    "SpecDec",
    stated="Verification is relaxed: a token passes within the target's top beta and a gap tau to the best.",
    verdict=Verdict.TRUE,
    correct="So the method is lossy. For p = {p}, a draft that is always token 1 and tau = 1, the output is "
    "{relaxed} with beta = 2 and {strict} with beta = 1.",
)
def test_the_relaxed_verification_is_lossy():
    task = Task(always(P), always(pmf(0, 1, 0)), horizon=2)
    relaxed, strict = (first_token_law(specdec.build(task, beta=beta, tau=1.0, gamma=1)) for beta in (2, 1))
    assert relaxed == [0, 1, 0] != strict == [0, 0, 1]
    return {"p": P, "relaxed": relaxed, "strict": strict}


@erratum(
    "SV",
    "Typical acceptance (Medusa)",
    stated="Tokens above a certain probability threshold are kept, with their prefix.",
    verdict=Verdict.TRUE,
    correct="The threshold depends on the entropy: min(epsilon, delta exp(-H)) is {low:.4f} for p = {p} and "
    "{high:.4f} for 16 equal tokens (epsilon = {epsilon}, delta = {delta}). The method is not lossless. In the "
    "released fast mode, with its top-token candidates, the output is certain at any temperature. Its distance from "
    "p is {bias} if token 1 is drafted, and {alone} if nothing is drafted.",
)
def test_the_typical_threshold_moves_with_the_entropy():
    p, epsilon, delta = pmf(".5", ".3", ".2"), 0.09, 0.3
    low, high = (typical_threshold(row, epsilon, delta) for row in (p, pmf(*["1/16"] * 16)))
    drafted = Task(always(p), always(pmf(0, 1, 0)), horizon=2)
    laws = [first_token_law(typical_acceptance.build(drafted, gamma=gamma)) for gamma in (1, 0)]
    assert high < low
    assert laws == [[0, 1, 0], [1, 0, 0]]
    far = [bias(law, p) for law in laws]
    assert min(far) > 0
    return {"low": low, "high": high, "p": p, "epsilon": epsilon, "delta": delta, "bias": far[0], "alone": far[1]}


@erratum(
    "SV",
    "TriForce",
    stated="Lossless acceleration of long sequence generation with hierarchical speculative decoding (the title); a "
    "target with a part of its cache is put in between.",
    verdict=Verdict.CONDITION,
    meant=Verdict.TRUE,
    correct="True if the inner stage is lossless for its own target: distance {bias} over 3 tokens of a table. If "
    "the inner stage draws from its target after a rejection, and not from the residual, its tokens do not have the "
    "q that it reports: q'' = {inner}, q' = {middle}, p = {p} give {law}, at distance {off}.",
)
def test_a_hierarchy_is_lossless_if_its_inner_stage_is():
    target, draft = table_pair("generic", 2, 2)
    task = Task(target, draft, horizon=3)
    exact = distance(decoder_law(triforce.build(task), (0,)).probabilities, target_law(task, (0,)))
    inner, middle = pmf(".7", ".1", ".2"), pmf(".3", ".5", ".2")
    proposed = np.array(rule_law(ratio(middle, inner), lambda _: middle, middle, inner), dtype=object)
    kept = [mass * min(a / b, 1) for mass, a, b in zip(proposed, P, middle, strict=True)]
    law = (np.array(kept, dtype=object) + (1 - sum(kept)) * residual(P, middle)).tolist()
    assert exact == 0 < bias(law)
    return {"bias": exact, "inner": inner, "middle": middle, "p": P, "law": law, "off": bias(law)}


@erratum(
    "SV",
    "Draft and Verify",
    stated="Drafting stops when the next token's probability is below an adaptive threshold.",
    verdict=Verdict.CONDITION,
    correct="True if the improbable token stays in the draft as its last token: then the law is exact ({kept}). If "
    "the token is dropped and p is drawn, the law for p = {p}, q = {q} is {third} away at the threshold 1/3, and "
    "{half} at 1/2 with q = {flat}.",
)
def test_the_unlikely_token_is_kept():
    def dropped(threshold, q):
        def program(draws):
            drafted = draws.categorical(q, ("draft", 0))
            if q[drafted] < threshold:
                return draws.categorical(P, ("target", 0))
            kept = draws.categorical(pmf(ratio(P, q)(drafted), 1 - ratio(P, q)(drafted)), ("accept", 0)) == 0
            return drafted if kept else draws.categorical(residual(P, q), ("residual", 0))

        return bias(vector(law_of(program), 3))

    flat = pmf(".5", ".3", ".2")
    third, half = dropped(pmf("1/3")[0], Q), dropped(pmf("1/2")[0], flat)
    task = Task(*table_pair("generic", 3, 0), horizon=2)
    law = decoder_law(confidence_stopping.build(task, threshold=0.4, gamma=1), (0,)).probabilities
    kept = distance(law, target_law(task, (0,)))
    assert kept == 0 < min(third, half)
    return {"kept": kept, "p": P, "q": Q, "third": third, "half": half, "flat": flat}


@erratum(
    "SV",
    "Big little decoder",
    stated="A token is rolled back where the distance of the two models' probabilities is above a threshold.",
    verdict=Verdict.CONDITION,
    correct="The distance is -log p(d) for the token d that the small model would emit, so it can be large for equal "
    "models: p = q = {row} has TV {tv} and the distance {nll:.3f} nats, above a threshold of {limit}. The released "
    "code examines only the first such position. Example: the small model's text is {small}, the large model's "
    "{large}, and both write the first token: the rule gives {rule}, the code {code}.",
)
def test_the_distance_is_that_of_a_hard_token():
    row, limit = pmf(".4", ".3", ".3"), 0.9
    assert is_unlikely(row, 0, limit)
    assert not is_unlikely(row, 0, 1.0)

    def model(rows):
        return lambda tokens: rows[min(len(tokens) - 1, len(rows) - 1)]

    first = pmf(1, 0, 0)  # the release begins with a token of the large model
    target, draft = model([first, row, pmf(0, 0, 1)]), model([first, row, pmf(0, 1, 0)])
    task = Task(target, draft, horizon=5)
    texts = []
    for algorithm, gamma in ((bild, 3), (bild_released, 2)):
        decoder = algorithm.build(task, fallback=0, rollback=limit, gamma=gamma)
        texts.append(generate(decoder, (0,), Sampled(0)).tokens[1:3])
    assert texts[0] == (0, 2) != texts[1]
    return {
        "row": row,
        "tv": total_variation(row, row),
        "nll": -math.log(row[0]),
        "limit": limit,
        "small": (0, 1),
        "large": (0, 2),
        "rule": texts[0],
        "code": texts[1],
    }
