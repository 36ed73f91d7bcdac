"""What is left of an accepting coin, u/r given u < r, is used as the next coin: it is as good as a fresh one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Control
from specverify.mutants.numpy_verifiers import drawn, owed
from specverify.subjects.verifier import verifier_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling from one uniform a round."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    coin = rng.random()
    for i, token in enumerate(drafts):
        ratio = min(1.0, float(p[i, token] / q[i, token]))
        if not coin < ratio:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
        coin = coin / ratio
    return [*drafts, drawn(rng, p[-1])]


CONTROL = Control(
    "what-is-left-of-a-coin",
    "recycles one uniform",
    "plausible",
    partial(verifier_subject, verify, "control:what-is-left-of-a-coin", (2,)),
)
