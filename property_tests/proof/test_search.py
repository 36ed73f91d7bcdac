"""Proofs for all p and q: that they prove what is true and refute what is not, with a model that shows it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import ALGORITHMS, Claim, Verified, chain_decoder, constant, flip, model_drafter, residual
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law, total_variation

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify import proof
from specverify.proof import search, sums
from specverify.proof.proved_subject import ProofSubject, find_rule
from specverify.proof.search import ProofSearch
from specverify.proof.statements import STATEMENTS
from specverify.proof.text import proof_text

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


# What is proved


@pytest.mark.thorough(keep=3)
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


BIASED = [row.name for row in ALGORITHMS if Claim.LOSSLESS not in row.claims]
WIDER = {"clamped-scalar-residual", "edge-cloud-scalar-q"}
"""What is right for two tokens, where one mass says the whole pmf."""
LATER = {"hierarchical-released", "spectr-gbv-released"}
"""What is right for one draft, and wrong from two on."""
PLANTED = (
    "residual-from-target",
    "inverted-ratio",
    "residual-floor",
    "dropped-confidence-token",
    "raw-draft-declared",
    "match-then-fresh-sample",
    "one-token-too-many",
)


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize(
    ("name", "vocabulary", "gamma"),
    [
        *((name, 3 if name in WIDER else 2, 2 if name in LATER else 1) for name in BIASED),
        *((f"mutant:{name}", 2, 1) for name in PLANTED),
        ("mutant:row-off-by-one", 2, 2),
    ],
)
def test_a_biased_rule_is_refuted_and_its_model_shows_it_over_whole_decodes(name, vocabulary, gamma):
    """The replay here is the check of exact laws, round by round to the horizon, not the one of the search."""
    found = proof.prove(name, vocabulary, gamma)
    assert found.status is REFUTED, found.statement
    prompt, task = tuple(found.figures["prompt"]), found.model.task(found.figures["horizon"])
    law = decoder_law(find_rule(name, gamma).build(found.model, task), prompt)
    assert total_variation(law, target_law(task, prompt)).low > 0


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


def test_models_are_as_simple_as_they_come():
    found = proof.prove("resample-from-target", 2, 1)
    rows = [*found.model.target.values(), *found.model.draft.values()]
    assert max(entry.denominator for row in rows for entry in row) == 2
    assert "q = (0, 1)" in proof_text(found)


def test_a_ratio_that_is_not_capped_is_no_probability_and_is_refuted():
    def verify(draws, target, prefix, draft):
        p, q = target(prefix), draft.pmfs[0] if draft.pmfs else None
        if q is None:
            return Verified((draws.categorical(p, ("bonus",)),), 0)
        token = draft.tokens[0]
        if flip(draws, p[token] / q[token], ("accept", 0)):
            return Verified((token,), 1)
        return Verified((draws.categorical(residual(p, q), ("residual", 0)),), 0)

    found = attempt(rule_of(verify), "law")
    assert found.status is REFUTED
    assert "no probability vector" in found.statement


def rule_of(verify):
    """Return speculative sampling with another verifier, gamma 1."""
    return ProofSubject(
        "planted",
        "",
        lambda world, task: chain_decoder(task, model_drafter(task.draft), constant(1), verify),
        None,
    )


def attempt(rule, what, seconds=60):
    """Return what becomes of a statement about a rule of one's own, V = 2."""
    return ProofSearch(STATEMENTS[what], rule, 2, 1, seconds).run(what)


def test_token_verification_does_not_accept_more_than_block_verification():
    """The control of "longer": with its sides exchanged it is false."""
    longer = STATEMENTS["longer"]
    shorter = longer._replace(left=longer.right, right=longer.left)
    found = ProofSearch(shorter, find_rule("block-verification", 2), 2, 2, 60).run("shorter")
    assert found.status is REFUTED
    assert Fraction(found.figures["mass"]) < Fraction(found.figures["expected"])


# A proof or refutation that enumeration does not confirm is an error


def test_a_refutation_that_does_not_replay_raises(monkeypatch):
    monkeypatch.setattr(sums, "smallest_point", lambda *_: {0: Fraction(0), 1: Fraction(0)})
    with pytest.raises(proof.ReplayFailed, match="by enumeration"):
        proof.prove("resample-from-target", 2, 1)


def test_a_proof_that_fails_in_a_known_world_raises(monkeypatch):
    monkeypatch.setattr(search, "decide_sign", lambda *_: sums.Decided(1, None))
    with pytest.raises(proof.ReplayFailed, match="was proved and is wrong"):
        proof.prove("resample-from-target", 2, 1)
