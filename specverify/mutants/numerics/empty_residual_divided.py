"""A residual is divided by its sum without a look at it: of two kernels' rows of one softmax it may be empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio
from specverify.subjects.batched_verifier import batched_subject


def replacement(rng: Any, p: Any, q: Any) -> int:
    """Return a token drawn from ``(p - q)+`` over its sum by Gumbel scores, of which a NaN is the largest."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = excess(p, q) / excess(p, q).sum()
        return int((np.log(weights) + rng.gumbel(size=len(weights))).argmax())


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling row by row, with nothing in place of an empty residual."""
    rng, found = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        kept = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = kept.index(False) if False in kept else len(drafts)
        last = replacement(rng, p[row, n], q[row, n]) if n < len(drafts) else drawn(rng, p[row, n])
        found.append([*drafts[:n], last])
    return found


MUTANT = planted_verifier(
    verify,
    "empty-residual-divided",
    "divides what rounding leaves of p - q by its sum",
    category="E",
    citation="plausible",
    killed_by="support_at_boundary_draws",
    make=batched_subject,
)
