"""FLy excuses a missed draft wherever matches follow, also where the target was sure of another token."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Parts, Task, from_parts
from specverify.reference.algorithms import fly
from specverify.reference.algorithms.fly import loosely


@from_parts
def build(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 15) -> Parts:
    """FLy without its gate of entropies."""
    parts = fly.build.parts(task, window, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(verifier=loosely(window, -1))


MUTANT = planted(
    "fly",
    "sure-misses-excused",
    "excuses misses at every entropy",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
    examples=({"window": 1, "threshold": 0.9, "gamma": 2},),
)
