"""The token the drafter was unsure of is dropped instead of kept: the draft is conditioned on what was drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reference import Draft, Draws, Parts, Pmf, Task, Tokens, chain, confidence, from_parts, model_drafter
from reference.models import draft_model
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.mutants.mutant import planted


@from_parts
def build(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Confidence stopping that takes the last token back."""
    drafter = model_drafter(draft_model(task))

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        draft = drafter.propose(draws, state, prefix, count, stop_after)
        unsure = bool(draft.tokens) and stop_after(draft.pmfs[-1], draft.tokens[-1])
        return chain(draft.tokens[:-1], draft.pmfs[:-1]) if unsure else draft

    return Parts(drafter._replace(propose=propose), confidence(threshold, gamma), speculative_sampling)


MUTANT = planted(
    "confidence-stopping",
    "dropped-confidence-token",
    "drops the token it was unsure of",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
