"""SpecDec++ takes back a last token that its head would have rejected."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import dropping_last, planted
from specverify.reference import Parts, Task, from_parts
from specverify.reference.algorithms import specdec_pp


@from_parts
def build(task: Task, threshold: Any = 0, gamma: int = 20) -> Parts:
    """Look at the last token too, and drop it."""
    parts = specdec_pp.build.parts(task, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(drafter=dropping_last(parts.drafter, lambda q, token: q[token] < threshold))


MUTANT = planted(
    "specdec-pp",
    "predicted-rejection-dropped",
    "drops the last draft for its predicted rejection",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
