"""A proved subject: a refutation is replayed, and an improper ratio is refuted."""

from __future__ import annotations

import pytest

from reference import ALGORITHMS, Claim, Verified, chain_decoder, constant, flip, model_drafter, residual
from specverify import proof
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law, total_variation
from specverify.proof.proved_subject import ProofSubject, find_rule
from specverify.proof.search import ProofSearch
from specverify.proof.statements import STATEMENTS

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

PROVED, REFUTED, UNKNOWN = proof.ProofStatus

BIASED = [row.name for row in ALGORITHMS if Claim.LOSSLESS not in row.claims]

WIDER = {"clamped-scalar-residual", "edge-cloud-scalar-q"}
"""What is right for two tokens, where one mass says the whole pmf."""

LATER = {"fly-vllm", "hierarchical-released", "spectr-gbv-released"}
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


@pytest.mark.thorough(keep=15)
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
