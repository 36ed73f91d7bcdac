"""Medusa's sampled typical mode matches drafts with draws from all of p; only what follows is truncated."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Decoder, Task
from specverify.reference.algorithms.typical_sampling_released import typical_part
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def build(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Decoder:
    """Keep a draft with probability p(d)."""
    verify = accept_or_replace(
        lambda prefix, p, q, token: p[token],
        lambda p, q, token: typical_part(p, epsilon, delta),
        lambda p: typical_part(p, epsilon, delta),
    )
    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "typical-sampling-released",
    "typical-against-p",
    "matches drafts with draws from p, not from its typical part",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
