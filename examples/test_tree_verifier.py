"""A verifier of trees of top-k drafts: row 0 of p is the target after the text, row j + 1 after node j."""

from functools import partial

import numpy as np
import pytest

from specverify.testing import SpeculationRefuted, check_verifier, parametrize_with_checks

rng = np.random.default_rng()


def verify(p: np.ndarray, q: None, parents: np.ndarray, tokens: np.ndarray, *, rows_after: bool = True) -> list[int]:
    """Draw from the target, and go on in the child that is the token, as long as there is one."""
    node, emitted = -1, []
    while True:
        row = p[node + 1] if rows_after else p[0]
        emitted.append(int(rng.choice(len(row), p=row)))
        children = np.flatnonzero((parents == node) & (tokens == emitted[-1]))
        if not len(children):
            return emitted
        node = int(children[0])


TREE = dict(form="tree", drafts="top_k", trees=[(-1, -1), (-1, 0, 0)])


@parametrize_with_checks([partial(check_verifier, verify, **TREE)], quick=True)
def test_the_verifier(check) -> None:
    """Run one check."""
    check()


def test_the_bug_is_refuted() -> None:
    """Every node is decided by the row of the root."""
    with pytest.raises(SpeculationRefuted, match="refuted"):
        check_verifier(partial(verify, rows_after=False), **TREE, checks=["law_is_target"])
