"""The acceptance of a tree verifier below the recursive rule."""

from __future__ import annotations

from specverify.checks.tree_acceptance import examine_tree
from specverify.laws.scenarios import SCENARIOS
from specverify.subjects.forms import Form
from specverify.subjects.subject import InScenario
from specverify.subjects.tree_verifier import tree_subject
from test_support.trees import tree_rules as rules

SMALL = [item for item in SCENARIOS if item.vocabulary == 3 and item.horizon == 3 and not item.greedy and not item.eos]


def test_a_verifier_below_the_yardstick_is_refuted_with_both_numbers():
    def first_child_alone(p, q, parents, tokens):
        return rules.in_numpy(p, q, parents[:1], tokens[:1])

    (variant,) = tree_subject(first_child_alone, "first", Form(drafts="top_k"), ((-1, -1),)).variants
    found = examine_tree(InScenario(variant, SMALL[0], rational=False), variant.best, 100_000)
    assert found.failed
    assert "drafts are accepted in the mean, the best rule known for them accepts" in found.statement
    (right,) = tree_subject(rules.in_numpy, "right", Form(drafts="top_k"), ((-1, -1),)).variants
    assert not examine_tree(InScenario(right, SMALL[0], rational=False), right.best, 100_000).failed
