"""Cactus keeps a draft by its raised p and replaces it from what p, not raised, has more of than q."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Parts, Task, from_parts, residual
from specverify.reference.algorithms import cactus
from specverify.reference.algorithms.cactus import kept_probability
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, delta: Any = 1, gamma: int = 10) -> Parts:
    """Replace as speculative sampling of p does."""
    parts = cactus.build.parts(task, delta, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        verifier=accept_or_replace(
            lambda prefix, p, q, token: kept_probability(p, q, token, delta),
            lambda p, q, token: residual(p, q),
        )
    )


MUTANT = planted(
    "cactus",
    "cactus-residual-of-target",
    "accepts by h, replaces from (p - q)+",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
