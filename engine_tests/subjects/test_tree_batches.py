"""Verifiers of batches of trees."""

from __future__ import annotations

import pytest

from specverify.base.verdict import Status
from specverify.subjects.forms import Form
from specverify.subjects.tree_verifier import tree_subject
from test_support.trees import tree_rules as rules
from test_support.verifiers.examined import verdict_of

LAW, JOINT, ACCEPTANCE = "law_is_target", "rows_are_independent", "acceptance_is_optimal"

WITH, WITHOUT, TOP_K = "with_replacement", "without_replacement", "top_k"

RIGHT_BATCHES = {
    "links, a batch": (rules.by_links(), TOP_K, False),
    "links, a batch of one shape": (rules.by_links(), TOP_K, True),
    "lists, a batch": (rules.in_batch(rules.by_lists()), WITHOUT, False),
}

WRONG_BATCHES = {
    "a candidate's own probability": (rules.by_links(rules.alone), LAW),
    "rejected candidates drawn again": (rules.by_links(rest=False), LAW),
    "rows begin too early": (rules.by_links(place=lambda tree, rows: tree * (rows - 1)), LAW),
    "all trees by the first one's coins": (rules.by_links(coins_of=lambda tree: 0), JOINT),
}


@pytest.mark.thorough
@pytest.mark.parametrize("check", [LAW, JOINT])
@pytest.mark.parametrize("name", RIGHT_BATCHES)
def test_a_right_verifier_of_batches_holds(name, check):
    verify, drafts, same = RIGHT_BATCHES[name]
    verdict = verdict_of(tree_subject(verify, name, Form(drafts=drafts, batched=True, same_tree=same)), check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["tv"] < 1e-12


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", WRONG_BATCHES)
def test_a_wrong_batch_is_refuted(name):
    verify, check = WRONG_BATCHES[name]
    verdict = verdict_of(tree_subject(verify, name, Form(drafts=TOP_K, batched=True)), check)
    assert verdict.status is Status.REFUTED, verdict.statement
    assert verdict.counterexample.because


@pytest.mark.thorough
def test_the_shape_of_the_first_tree_shows_where_shapes_differ_alone():
    def verify(p, q, parents, tokens):
        return rules.by_links()(p, q, parents[:1].expand_as(parents), tokens)

    assert (
        verdict_of(tree_subject(verify, "first shape", Form(drafts=TOP_K, batched=True)), LAW).status is Status.REFUTED
    )
    assert (
        verdict_of(tree_subject(verify, "first shape", Form(drafts=TOP_K, batched=True, same_tree=True)), LAW).status
        is Status.HOLDS
    )
