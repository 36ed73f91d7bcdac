"""SVIP with the surprise of the drafted token for the entropy, and the token taken back."""

from __future__ import annotations

import math

from specverify.mutants.mutant import dropping_last, planted
from specverify.reference import Parts, Task, from_parts
from specverify.reference.algorithms import svip


@from_parts
def build(task: Task, threshold: float = 0.3, scale: float = 0.15, gamma: int = 40) -> Parts:
    """Drop the last token where its own surprise is high."""
    parts = svip.build.parts(task, threshold, scale, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        drafter=dropping_last(parts.drafter, lambda q, token: math.sqrt(scale * -math.log(q[token])) > threshold)
    )


MUTANT = planted(
    "svip",
    "surprise-for-entropy",
    "drops the last draft for its own surprise",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
