"""The theory note: the bound of the acceptance rate by the divergence, and its proof."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import (
    divergence,
    overlap_share,
    random_pairs,
    share_of,
)

WIDE, EVEN = (0.9, 0.1), (0.5, 0.5)
"""The pair of most counterexamples to the bound."""


@erratum(
    "TH",
    "2.5, theorem",
    stated="The acceptance rate is at least 1/(1 + KL(p || q)).",
    verdict=Verdict.FALSE,
    correct="Counterexample: for p = {p}, q = {q}, alpha is {alpha:.3f} and KL {kl:.4f}, so the bound is "
    "{bound:.3f}. Near p = q the bound always fails, because 1 - alpha is of the order of the square root of KL: "
    "{near_p} against {q} has {near:.3f} < {near_bound:.3f}. Of pairs drawn uniformly it fails on {two} (V = 2), "
    "{five} (V = 5), {fifty} (V = 50).",
)
def test_acceptance_is_not_bounded_by_one_over_one_plus_kl():
    def bound(p, q):
        return 1 / (1 + divergence(p, q))

    near = (0.55, 0.45)
    assert overlap_share(WIDE, EVEN) < bound(WIDE, EVEN) - 0.1
    assert overlap_share(near, EVEN) < bound(near, EVEN)
    shares = {}
    for vocabulary, word in ((2, "two"), (5, "five"), (50, "fifty")):
        pairs = random_pairs(vocabulary, 2000)
        failed = sum(overlap_share(p, q) < bound(p, q) for p, q in pairs)
        assert failed > len(pairs) / 2
        shares[word] = share_of(failed, len(pairs))
    kl = divergence(WIDE, EVEN)
    return shares | {
        "p": WIDE,
        "q": EVEN,
        "near_p": near,
        "alpha": overlap_share(WIDE, EVEN),
        "kl": kl,
        "bound": bound(WIDE, EVEN),
        "near": overlap_share(near, EVEN),
        "near_bound": bound(near, EVEN),
    }


@erratum(
    "TH",
    "2.5, last line of the proof",
    stated="The acceptance rate is at least (1 - KL)/gamma.",
    verdict=Verdict.FALSE,
    correct="Counterexample at gamma = 1: the pair {p}, {q} has alpha = {alpha:.3f} < {bound:.4f}. Of uniform pairs "
    "with V = 2, {share} violate the bound. True bounds are alpha >= 1 - sqrt(KL/2) (Pinsker, here {pinsker:.3f}) "
    "and alpha >= 1 - sqrt(1 - exp(-KL)) (Bretagnolle and Huber, here {huber:.3f}), with {violations} violations in "
    "{total} pairs.",
)
def test_true_bounds_of_the_acceptance_by_kl():
    def pinsker(kl):
        return 1 - math.sqrt(kl / 2)

    def huber(kl):
        return 1 - math.sqrt(1 - math.exp(-kl))

    kl, alpha = divergence(WIDE, EVEN), overlap_share(WIDE, EVEN)
    assert alpha < 1 - kl
    assert alpha > max(pinsker(kl), huber(kl))
    failed = sum(overlap_share(p, q) < 1 - divergence(p, q) for p, q in random_pairs(2, 4000))
    assert failed > 1000
    pairs = [pair for vocabulary in (2, 3, 6, 12) for pair in random_pairs(vocabulary, 5000, seed=1)]
    found = [(overlap_share(p, q), max(divergence(p, q), 0)) for p, q in pairs]
    violations = sum(share < max(pinsker(kl), huber(kl)) - 1e-12 for share, kl in found)
    assert violations == 0
    return {
        "p": WIDE,
        "q": EVEN,
        "alpha": alpha,
        "bound": 1 - kl,
        "share": share_of(failed, 4000),
        "pinsker": pinsker(kl),
        "huber": huber(kl),
        "violations": violations,
        "total": len(pairs),
    }


@erratum(
    "TH",
    "2.5, proof, the term A",
    stated="A = sum p log(p/min(p, q)) is at most 1 - sum min(p, q), because log(1 + x) <= x.",
    verdict=Verdict.FALSE,
    correct="With m = min(p, q) this inequality gives the bound p (p - m)/m, not p - m. For {p}, {q}: A = {a:.3f} > "
    "{rest:.3f}.",
)
def test_a_logarithm_is_bounded_by_a_ratio_not_a_difference():
    low = np.minimum(WIDE, EVEN)
    a = divergence(WIDE, low)
    assert a > 1 - low.sum() + 0.1
    assert a <= sum(p * (p - m) / m for p, m in zip(WIDE, low, strict=True))
    return {"p": WIDE, "q": EVEN, "a": a, "rest": 1 - low.sum()}


@erratum(
    "TH",
    "2.5, proof, the bound of KL",
    stated="KL(p || q) is at most 1 - sum min(p, q).",
    verdict=Verdict.FALSE,
    correct="The right side is at most 1, but KL is unbounded. {p} against {q} has KL = {kl:.3f} > {rest:.2f}, and "
    "(1, 0) against {far} has KL = {large:.2f}.",
)
def test_kl_is_not_at_most_one_minus_the_overlap():
    p, far = (0.99, 0.01), (0.01, 0.99)
    kl, rest = divergence(p, EVEN), 1 - overlap_share(p, EVEN)
    large = divergence((1.0, 0.0), far)
    assert kl > rest
    assert large > 1 >= 1 - overlap_share((1.0, 0.0), far)
    return {"p": p, "q": EVEN, "kl": kl, "rest": rest, "far": far, "large": large}


@erratum(
    "TH",
    "2.5, proof, the conclusion",
    stated="From KL <= 1 - gamma alpha it follows that alpha >= (1 - KL)/gamma; that is the theorem.",
    verdict=Verdict.FALSE,
    correct="It follows that alpha <= (1 - KL)/gamma. For gamma = 1, alpha = {alpha}, KL = {kl} the premise is true, "
    "but alpha is below (1 - KL)/gamma = {bound}. Also, (1 - KL)/gamma is not the bound of the theorem, which is "
    "{theorem:.3f} at KL = {kl}.",
)
def test_the_last_inequality_is_turned_round():
    alpha, kl = Fraction(1, 5), Fraction(3, 10)
    assert kl <= 1 - alpha
    assert alpha < 1 - kl != 1 / (1 + kl)
    return {"alpha": alpha, "kl": kl, "bound": 1 - kl, "theorem": 1 / (1 + kl)}
