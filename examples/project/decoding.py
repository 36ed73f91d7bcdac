"""A small project: two verifiers and a decoder of its own."""

import numpy as np

rng = np.random.default_rng()


def draw(weights: np.ndarray) -> int:
    """Draw a token in proportion to its weight."""
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def verify(p: np.ndarray, q: np.ndarray, draft_tokens: np.ndarray, *, relaxed: float = 1.0) -> list[int]:
    """Accept with probability min(1, p/q), else draw from what p has more of."""
    for i, token in enumerate(draft_tokens):
        if rng.random() * q[i, token] >= relaxed * p[i, token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], draw(rest if rest.any() else p[i])]
    return [*draft_tokens, draw(p[-1])]


def verify_fast(p: np.ndarray, q: np.ndarray, draft_tokens: np.ndarray) -> list[int]:
    """Accept more than that, for speed: known to be lossy."""
    return verify(p, q, draft_tokens, relaxed=1.5)


def verify_new(p: np.ndarray, q: np.ndarray, draft_tokens: np.ndarray) -> list[int]:
    """Accept as ``verify`` does; a bug is in its last line."""
    for i, token in enumerate(draft_tokens):
        if rng.random() * q[i, token] >= p[i, token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], draw(rest if rest.any() else p[i])]
    return [*draft_tokens, draw(p[0])]
