"""Verifiers of trees in every layout: the right ones hold exactly, each wrong twin is refuted and its tree is drawn."""

from __future__ import annotations

import re

import pytest

from reference import Claim
from reference.tree_layouts import conditional_pmfs
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.scenarios import Scenario
from specverify.run.verify import Checklist, run_check, verify_subject
from specverify.subjects.forms import Form
from specverify.subjects.tree_verifier import tree_subject
from specverify.testing import check_verifier
from test_support.trees import tree_rules as rules
from test_support.verifiers.examined import verdict_of

LAW, JOINT, ACCEPTANCE = "law_is_target", "rows_are_independent", "acceptance_is_optimal"
WITH, WITHOUT, TOP_K = "with_replacement", "without_replacement", "top_k"

RIGHT = {
    "parents, independent": (rules.by_parents(), WITH),
    "parents, conditional": (rules.by_parents(own=conditional_pmfs), WITHOUT),
    "parents, NumPy": (rules.in_numpy, TOP_K),
    "paths, point masses": (rules.by_paths(), TOP_K),
    "paths, conditional": (rules.by_paths(own=conditional_pmfs), WITHOUT),
    "lists": (rules.by_lists(), WITHOUT),
    "lists, independent": (rules.by_lists(masks=False), WITH),
}


@pytest.mark.thorough
@pytest.mark.parametrize("check", [LAW, "tokens_are_supported", ACCEPTANCE])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_verifier_holds(name, check):
    verify, drafts = RIGHT[name]
    verdict = verdict_of(tree_subject(verify, name, Form(drafts=drafts)), check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["cases"] > 9
    assert verdict.figures.get("tv", 0) < 1e-12


WRONG = {
    "residual not updated": (rules.by_parents(rules.not_updated), WITH),
    "residual of one entry": (rules.by_parents(rules.one_entry, conditional_pmfs), WITHOUT),
    "q of the root": (rules.by_parents(own=rules.of_the_root), WITHOUT),
    "q of another parent": (rules.by_parents(own=rules.of_the_node_before), WITHOUT),
    "earlier siblings in q": (rules.by_parents(), WITHOUT),
    "earlier siblings not in q": (rules.by_parents(own=conditional_pmfs), WITH),
    "one uniform for all siblings": (rules.by_parents(coin=rules.used_again), WITH),
    "path by token": (rules.by_parents(below=rules.first_of_the_token), WITH),
    "paths by leaf": (rules.by_paths(rules.by_leaf, own=conditional_pmfs), WITHOUT),
    "residual behind the last level": (rules.by_paths(at_the_end=False), TOP_K),
    "drafter not masked": (rules.by_lists(masks=False), WITHOUT),
    "row off by one": (rules.by_lists(rows_of=lambda row: max(row - 1, 0)), WITHOUT),
    "soft q for top-k": (lambda p, q, parents, tokens: rules.by_parents()(p, p.flip(1), parents, tokens), TOP_K),
}


STORY = re.compile(
    r"tree #0=\d.* keeps (nothing|#\d( #\d)*), then \d"
    r"|tree #0=\d[^:]*: #0 (accepted|rejected)[ ,].*(bonus|replaced by|drew) \d"
)
"""The words of a path of a tree."""


@pytest.mark.thorough(keep=13)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_twin_is_refuted_and_its_tree_is_drawn(name):
    verify, drafts = WRONG[name]
    verdict = verdict_of(tree_subject(verify, name, Form(drafts=drafts)), LAW)
    assert verdict.status is Status.REFUTED, verdict.statement
    assert verdict.figures["tv"] > 1e-4
    assert re.search(r"parents \(-1, .*\) (with|without|top)", verdict.counterexample.let[0])
    stories = verdict.counterexample.because
    assert stories
    trees = [story for story in stories if "tree #" in story]
    assert trees
    assert all(STORY.search(story) for story in trees), stories


@pytest.mark.thorough
def test_a_node_that_two_paths_share_is_tried_once():
    """Tried again it is rejected again, and q subtracted again: wrong where what is owed has several tokens."""
    several = (Scenario("generic", 3, (0, 1, 0), 3, seed=8),)
    for seen_once, status in ((True, Status.HOLDS), (False, Status.REFUTED)):
        verify = rules.by_paths(seen_once=seen_once, own=conditional_pmfs)
        subject = tree_subject(verify, "shared", Form(drafts=WITHOUT), ((-1, -1, 0, 0),))._replace(scenarios=several)
        assert run_check(subject, check_named(LAW), Checklist(())).status is status


@pytest.mark.thorough
@pytest.mark.parametrize("drafts", [WITH, WITHOUT])
def test_a_draw_that_is_looked_up_is_right_for_drawn_trees_and_wastes_some(drafts):
    """It never reads q. What it gives away is named; held to its law alone it passes."""
    subject = tree_subject(rules.in_numpy, "looked up", Form(drafts=drafts))
    assert verdict_of(subject, LAW).status is Status.HOLDS
    wasted = verdict_of(subject, ACCEPTANCE)
    assert wasted.status is Status.REFUTED
    assert re.match(r"\S+ drafts are accepted in the mean, the best rule known for them accepts \S+", wasted.statement)
    modest = subject._replace(claims=frozenset({Claim.LOSSLESS}))
    (unasked,) = verify_subject(modest, Checklist((check_named(ACCEPTANCE),)))
    assert unasked.status is Status.NOT_APPLICABLE


def test_greedy_verifiers_follow_the_argmax():
    for padding, row, status in (
        (-1, lambda best: best, Status.HOLDS),
        (0, lambda best: best, Status.REFUTED),
        (-1, lambda best: 0, Status.REFUTED),
    ):
        subject = tree_subject(
            rules.greedy_by_paths(padding, row), "greedy", Form(drafts=TOP_K), ((-1, -1, 0, 1, 1, 3),)
        )
        check = check_named("greedy_is_argmax")
        found = run_check(subject._replace(claims=frozenset({Claim.GREEDY})), check, Checklist((check,)))
        assert found.status is status, (padding, found.statement)


# Batches

RIGHT_BATCHES = {
    "links, a batch": (rules.by_links(), TOP_K, False),
    "links, a batch of one shape": (rules.by_links(), TOP_K, True),
    "lists, a batch": (rules.in_batch(rules.by_lists()), WITHOUT, False),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["parents, independent", "parents, NumPy", "paths, conditional", "links, a batch"])
def test_a_right_verifier_holds_under_every_exact_check(name):
    verify, drafts, *same = (RIGHT | RIGHT_BATCHES)[name]
    form = {"form": "batched_tree", "same_tree": same[0]} if same else {"form": "tree"}
    verdicts = check_verifier(verify, drafts=drafts, timeout=1200, **form)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    assert len(verdicts) == 12 + len(same)
