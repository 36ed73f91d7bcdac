"""One round of speculative sampling in NumPy, with the row of a replacement as an argument: right, or with a fault."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(5)


def drawn(row, rng=RNG):
    """Return a token drawn from ``row``, which need not have sum 1."""
    return int(rng.choice(len(row), p=row / row.sum()))


def decided(p, q, draft_tokens, replace, rng=RNG):
    """Return the accepted drafts and the token after them; ``replace(p, q)`` is the row of a replacement."""
    for i, token in enumerate(draft_tokens):
        if rng.random() >= p[i, token] / q[i, token]:
            row = replace(p[i], q[i])
            return [int(kept) for kept in draft_tokens[:i]], drawn(row if row.sum() > 0 else p[i], rng)
    return [int(kept) for kept in draft_tokens], drawn(p[-1], rng)


def residual(p, q):
    """Return the right row of a replacement, without normalisation."""
    return np.maximum(p - q, 0)


def unchanged_p(p, q):
    """Return p, a wrong row of a replacement."""
    return p
