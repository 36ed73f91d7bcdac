"""The generator is seeded again before every coin, so all accept tests of a block see one uniform."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio

SEED = 7


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with the seed set inside the loop."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not np.random.default_rng(SEED).random() < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "seeded-before-every-coin",
    "sets the seed inside the accept loop",
    category="D",
    citation="feifeibear/LLMSpeculativeSampling commit ec08458, sampling/speculative_sampling.py line 60",
    killed_by="draws_are_independent",
)
