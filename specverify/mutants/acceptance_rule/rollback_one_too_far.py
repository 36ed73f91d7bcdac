"""BiLD takes back the token before the unlikely one as well: the large model then replaces a token it agreed with."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import (
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Task,
    Tokens,
    Verified,
    argmax,
    constant,
    from_parts,
)
from specverify.reference.algorithms.bild import confident_drafter, rolls_back
from specverify.reference.models import draft_model


@from_parts
def build(task: Task, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10) -> Parts:
    """BiLD whose rollback begins one token early."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
        found = [i for i, token in enumerate(draft.tokens) if rolls_back(rows[i], token, rollback)]
        kept = max(found[0] - 1, 0) if found else len(draft.tokens)
        return Verified((*draft.tokens[:kept], argmax(rows[kept])), accepted=kept)

    return Parts(confident_drafter(draft_model(task), fallback), constant(gamma), verify)


MUTANT = planted(
    "bild",
    "rollback-one-too-far",
    "rolls back one token too many",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
