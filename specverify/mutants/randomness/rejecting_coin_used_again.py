"""The uniform that rejected a draft looks up the replacement: it is known to be large."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that saves a random number after a rejection."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        coin = rng.random()
        if not coin < ratio(p[i], q[i], token):
            cumulative = excess(p[i], q[i]).cumsum()
            found = int(np.searchsorted(cumulative / cumulative[-1], coin, side="right"))
            return [*drafts[:i], min(found, p.shape[1] - 1)]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "rejecting-coin-used-again",
    "looks the replacement up with the coin",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
)
