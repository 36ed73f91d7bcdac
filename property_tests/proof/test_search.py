"""Proofs for all p and q: that they prove what is true and refute what is not, with a model that shows it."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify import proof

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


# What is proved


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize(
    ("name", "vocabulary", "gamma", "what"),
    [
        ("speculative-sampling", 3, 1, "law"),
        ("speculative-sampling", 2, 2, "law"),
        ("speculative-sampling", 2, 0, "law"),
        ("speculative-sampling", 3, 1, "acceptance"),
        ("speculative-sampling", 2, 2, "acceptance"),
        ("speculative-sampling", 2, 1, "stopping"),
        ("speculative-sampling", 2, 1, "greedy"),
        ("sample-and-match", 3, 2, "law"),
        ("nasd", 2, 2, "law"),
        ("nasd", 2, 1, "greedy"),
        ("nasd-seed-rule", 2, 1, "greedy"),
        ("bild", 2, 1, "declared"),
        ("greedy-speculation", 2, 2, "greedy"),
        ("greedy-speculation", 2, 1, "declared"),
        ("egag", 3, 1, "law"),
        ("egag", 2, 1, "acceptance"),
        ("confidence-stopping", 2, 2, "law"),
        ("confidence-dropping", 2, 1, "law"),
        ("candidate-set", 3, 1, "law"),
        ("rsd", 2, 1, "law"),
        ("specinfer", 2, 1, "law"),
        ("k-seq", 2, 1, "law"),
        ("transport-optimum", 2, 1, "law"),
        ("block-verification", 2, 2, "law"),
        ("block-verification", 2, 2, "longer"),
        ("lenience", 2, 1, "declared"),
        ("coupling", 3, 0, "residual"),
    ],
)
def test_proved(name, vocabulary, gamma, what):
    found = proof.prove(name, vocabulary, gamma, what)
    assert (found.status, found.model) == (PROVED, None), found.statement
    assert found.queries > 0
    assert found.figures["worlds"] > 0
    assert name in found.statement


def test_a_length_rule_of_floats_is_replaced_and_the_statement_says_so():
    assert "any length rule" in proof.prove("egag", 2, 1).statement
    assert "any length rule" not in proof.prove("confidence-stopping", 2, 1).statement


def test_a_drafter_that_reads_the_text_is_shown_every_text():
    found = proof.prove("nasd", 2, 1)
    assert "every text of up to 3 tokens" in found.statement
    assert found.figures["texts"] == 1 + 2 + 4 + 8


# What is refuted


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("name", "vocabulary", "gamma", "what"),
    [
        ("mutant:accepts-after-rejection", 2, 2, "greedy"),
        ("mutant:always-reject", 2, 1, "acceptance"),
        ("mutant:seed-rule-top-two", 2, 1, "declared"),
        ("mutant:state-forgets-its-round", 2, 1, "joint"),
        ("mutant:crop-by-minus-zero", 2, 1, "joint"),
        ("sample-and-match", 2, 1, "acceptance"),
        ("speculative-sampling", 2, 1, "dropping"),
        ("mutant:inverted-ratio", 2, 1, "stopping"),
        ("mutant:match-then-fresh-sample", 2, 1, "stopping"),
    ],
)
def test_other_statements_are_refuted_where_they_are_false(name, vocabulary, gamma, what):
    found = proof.prove(name, vocabulary, gamma, what)
    assert found.status is REFUTED, found.statement
    assert found.figures["mass"] != found.figures["expected"]


@pytest.mark.parametrize("name", ["mutant:state-forgets-its-round", "mutant:crop-by-minus-zero"])
def test_one_round_from_a_fresh_state_does_not_see_what_rounds_remember(name):
    """Why "law" says one round, and "joint" is asked too."""
    assert proof.prove(name, 2, 1, "law").status is PROVED
