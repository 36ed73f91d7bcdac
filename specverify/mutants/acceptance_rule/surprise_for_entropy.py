"""SVIP with the surprise of the drafted token for the entropy, and the token taken back."""

from __future__ import annotations

import math
from typing import Any

from reference import Draft, Parts, Task, chain, from_parts
from reference.algorithms import svip
from specverify.mutants.mutant import planted


@from_parts
def build(task: Task, threshold: float = 0.3, scale: float = 0.15, gamma: int = 40) -> Parts:
    """Drop the last token where its own surprise is high."""
    parts = svip.build.parts(task, threshold, scale, gamma)
    assert isinstance(parts, Parts)
    honest = parts.drafter.propose

    def propose(*args: Any) -> Draft:
        draft = honest(*args)
        last: Any = draft.pmfs[-1] if draft.tokens else None
        if draft.tokens and math.sqrt(scale * -math.log(last[draft.tokens[-1]])) > threshold:
            return chain(draft.tokens[:-1], draft.pmfs[:-1])
        return draft

    return parts._replace(drafter=parts.drafter._replace(propose=propose))


MUTANT = planted(
    "svip",
    "surprise-for-entropy",
    "drops the last draft for its own surprise",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
