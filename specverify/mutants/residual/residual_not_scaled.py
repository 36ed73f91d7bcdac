"""The residual is looked up with a uniform in [0, 1) although it sums to less: the last token takes what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by inverse CDF of an unnormalised residual."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            found = int(np.searchsorted(excess(p[i], q[i]).cumsum(), rng.random(), side="right"))
            return [*drafts[:i], min(found, p.shape[1] - 1)]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "residual-not-scaled",
    "looks up an unnormalised residual",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
)
