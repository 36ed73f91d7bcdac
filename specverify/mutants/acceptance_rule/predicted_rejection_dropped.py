"""SpecDec++ takes back a last token that its head would have rejected."""

from __future__ import annotations

from typing import Any

from reference import Draft, Parts, Task, chain, from_parts
from reference.algorithms import specdec_pp
from specverify.mutants.mutant import planted


@from_parts
def build(task: Task, threshold: Any = 0, gamma: int = 20) -> Parts:
    """Look at the last token too, and drop it."""
    parts = specdec_pp.build.parts(task, threshold, gamma)
    assert isinstance(parts, Parts)
    honest = parts.drafter.propose

    def propose(*args: Any) -> Draft:
        draft = honest(*args)
        last: Any = draft.pmfs[-1] if draft.tokens else None
        if draft.tokens and last[draft.tokens[-1]] < threshold:
            return chain(draft.tokens[:-1], draft.pmfs[:-1])
        return draft

    return parts._replace(drafter=parts.drafter._replace(propose=propose))


MUTANT = planted(
    "specdec-pp",
    "predicted-rejection-dropped",
    "drops the last draft for its predicted rejection",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
