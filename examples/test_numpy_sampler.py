"""A rejection sampler in NumPy: verify(p, q, draft_tokens) -> emitted tokens."""

import numpy as np
import pytest

from specverify.testing import SpeculationRefuted, check_verifier, parametrize_with_checks

rng = np.random.default_rng()


def draw(weights: np.ndarray) -> int:
    """Draw a token in proportion to its weight."""
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def verify(p: np.ndarray, q: np.ndarray, draft_tokens: np.ndarray) -> list[int]:
    """Accept with probability min(1, p/q), else draw from what p has more of."""
    for i, token in enumerate(draft_tokens):
        if rng.random() * q[i, token] >= p[i, token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], draw(rest if rest.any() else p[i])]
    return [*draft_tokens, draw(p[-1])]


def verify_from_target(p: np.ndarray, q: np.ndarray, draft_tokens: np.ndarray) -> list[int]:
    """Do the same with a bug: a rejected draft is replaced from p."""
    for i, token in enumerate(draft_tokens):
        if rng.random() * q[i, token] >= p[i, token]:
            return [*draft_tokens[:i], draw(p[i])]
    return [*draft_tokens, draw(p[-1])]


@parametrize_with_checks([verify], quick=True)
def test_the_sampler(check) -> None:
    """Run one check."""
    check()


def test_the_bug_is_refuted() -> None:
    """The law is not the target's."""
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_verifier(verify_from_target, checks=["law_is_target"])
