"""The implementation note: from logits to probabilities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reference import check_pmf, softmax, top_k, top_p
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import entropy
from test_support.laws.rational import pmf

F = Fraction


@erratum(
    "IM",
    "1.2 and 4.2",
    stated="The default processor is created without arguments.",
    verdict=Verdict.DEFECT,
    correct="As printed, the base class takes a temperature without a default, and the greedy class adds no "
    "constructor. So the call raises {error}. A default temperature is missing.",
)
def test_the_default_processor_cannot_be_created_as_printed():
    class Processor:
        def __init__(self, temperature):
            self.temperature = temperature

    class Greedy(Processor):
        pass

    with pytest.raises(TypeError) as caught:
        Greedy()
    assert Greedy(1.0).temperature == 1.0
    return {"error": type(caught.value).__name__}


@erratum(
    "IM",
    "4.1",
    stated="The processor divides logits by the temperature.",
    verdict=Verdict.CONDITION,
    correct="False at temperature 0, which usually means greedy: {nans} of {size} probabilities are NaN. Temperature "
    "0 has to mean the point mass on the argmax, {greedy:.0f}.",
)
def test_temperature_zero_divides_by_zero():
    logits = np.array([2.0, 1.0, 0.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = logits / 0.0
        weights = np.exp(scaled - scaled.max())
        row = weights / weights.sum()
    assert np.isnan(row).any()
    return {"nans": int(np.isnan(row).sum()), "size": len(row), "greedy": softmax(logits, 0)}


@erratum(
    "IM",
    "4.3, masking",
    stated="Top-k masks logits below the k-th largest.",
    verdict=Verdict.DEFECT,
    correct="The mask is written into the caller's array. For q = {q} and k = 2, an entropy that is read afterwards "
    "(as in EGAG) is {after:.4f} instead of {before:.4f}.",
)
def test_masking_in_place_changes_what_is_read_later():
    q = np.array([0.4, 0.3, 0.2, 0.1])
    shared, copied = np.log(q), np.log(q)

    def masked(logits):
        logits[logits < np.sort(logits)[-2]] = -1e20
        return logits

    masked(shared)
    masked(copied.copy())
    before, after = entropy(softmax(copied)), entropy(softmax(shared))
    assert after < before == pytest.approx(entropy(q))
    return {"q": q, "before": before, "after": after}


@erratum(
    "IM",
    "4.3, ties",
    stated="Top-k keeps the k most probable tokens.",
    verdict=Verdict.CONDITION,
    correct="A threshold keeps every token that is tied with the k-th: the logits (2, 1, 1, 0) with k = 2 keep "
    "{kept}. Each convention is allowed, but p and the declared q must use the same.",
)
def test_top_k_by_threshold_keeps_ties():
    logits = np.array([2.0, 1.0, 1.0, 0.0])
    kept = int((logits >= np.sort(logits)[-2]).sum())
    assert kept == int((top_k(softmax(logits), 2) > 0).sum()) == 3
    return {"kept": kept}


@erratum(
    "IM",
    "4.4, equality",
    stated="Nucleus sampling keeps tokens up to the first that exceeds the mass top_p.",
    verdict=Verdict.CONDITION,
    correct="If a set of tokens has exactly the mass top_p, this rule keeps one token more than the smallest "
    "sufficient set: {row} with top_p = {mass} keeps {strict}, not {smallest}.",
)
def test_the_nucleus_keeps_one_more_at_equality():
    row, mass = pmf(".5", ".25", ".25"), F(1, 2)
    cumulative = np.cumsum(row)
    removed = np.concatenate([[False], (cumulative > mass)[:-1]])
    strict, smallest = int((~removed).sum()), int((top_p(row, mass) > 0).sum())
    assert strict == smallest + 1 == 2
    return {"row": row, "mass": mass, "strict": strict, "smallest": smallest}


@erratum(
    "IM",
    "4.1 and 4.4, the order",
    stated="The nucleus is cut first and the temperature applied to what is left.",
    verdict=Verdict.CONDITION,
    correct="Usually the temperature is applied first, and the targets differ: {row} with top_p = {mass}, T = 2 "
    "gives {first:.4f} here and {usual:.4f} in the usual order. Both orders are allowed, but p, q and plain decoding "
    "must use the same.",
)
def test_nucleus_and_temperature_do_not_commute():
    row, mass = np.array([0.5, 0.3, 0.2]), 0.75
    kept = top_p(row, mass)
    first = np.sqrt(kept) / np.sqrt(kept).sum()
    usual = top_p(softmax(np.log(row), 2.0), mass)
    assert abs(first - usual).max() > 0.1
    check_pmf(first, "the first order")
    return {"row": row, "mass": mass, "first": first, "usual": usual}
