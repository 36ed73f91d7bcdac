"""The acceptance of a tree verifier below the recursive rule."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize("fewer", [False, True])
def test_a_verifier_that_continues_below_one_of_equal_siblings_accepts_enough(fewer):
    """SpecInfer, Algorithm 2. With ``fewer`` it never descends to the second sibling, and accepts too few drafts."""
    rng = np.random.default_rng()

    def below_one(p, q, parents, tokens):
        node, emitted, left = -1, [], p[0]
        while True:
            children = [child for child, parent in enumerate(parents) if parent == node]
            for child in children[: 1 if fewer else None]:
                if rng.random() * q[child, tokens[child]] < left[tokens[child]]:
                    node, left = child, p[child + 1]
                    emitted.append(int(tokens[child]))
                    break
                rest = np.maximum(left - q[child], 0)
                left = rest / rest.sum() if rest.sum() > 0 else left
            else:
                return [*emitted, int(rng.choice(len(left), p=left))]

    (variant,) = tree_subject(below_one, "one", Form(drafts="with_replacement"), ((-1, -1, 0, 0, 1),)).variants
    generic = next(item for item in SMALL if item.shape == "generic")
    assert examine_tree(InScenario(variant, generic, rational=False), variant.best, 100_000).failed == fewer
