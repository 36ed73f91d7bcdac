"""Trees without replacement: faults that need three uncertain siblings, or a second sibling with one child."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_verifier


def verifier(*, shared_coin=False, kept_row=False):
    """Return a verifier of trees.

    ``shared_coin`` tests the second and the third sibling with one number, and ``kept_row`` tests an only child with
    what was left of the row of its parent.
    """

    def verify(p, q, parents, tokens):
        node, out, left = -1, [], None
        while True:
            children = [child for child, parent in enumerate(parents) if parent == node]
            target, coin = p[node + 1], np.random.random()
            if children and not (kept_row and len(children) == 1 and left is not None):
                left = q[children[0]]
            for place, child in enumerate(children):
                token = tokens[child]
                coin = coin if shared_coin and place == 2 else np.random.random()
                if coin * left[token] < target[token]:
                    node = child
                    out.append(int(token))
                    break
                target, left = np.maximum(target - left, 0), left * (np.arange(len(left)) != token)
                target, left = target / target.sum(), left / (left.sum() or 1)
            else:
                return [*out, int(np.random.choice(len(target), p=target))]

    return verify


@pytest.mark.usefixtures("unexplained", "named_checks_alone")
@pytest.mark.parametrize(
    ("wrong", "status"),
    [({}, Status.HOLDS), ({"shared_coin": True}, Status.REFUTED), ({"kept_row": True}, Status.REFUTED)],
    ids=["right", "one number for two siblings", "the row of the parent"],
)
def test_each_sibling_has_its_own_number_and_each_level_its_own_row(wrong, status):
    how = {"form": "tree", "drafts": "without_replacement", "checks": ["law_is_target"], "on_fail": None}
    (verdict,) = check_verifier(verifier(**wrong), **how, quick=True)
    assert verdict.status is status
