"""A drafter is itself drafted for, by rounds that replace a rejected token from q: the declared law is not drawn."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Parts, Task, accept_probability, constant, from_parts, prompt_lookup_drafter
from specverify.reference.drafters.cascade import vertical
from specverify.reference.models import draft_model
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, large: int = 4, small: int = 3, inner: int = 3, max_ngram: int = 3) -> Parts:
    """Cascade drafting without its lookups behind, its inner verification without a residual."""
    shortcut = accept_or_replace(lambda _, p, q, token: accept_probability(p, q, token), lambda p, q, token: p)
    drafter = vertical(draft_model(task), prompt_lookup_drafter(max_ngram, task.eos), inner, shortcut)
    return Parts(drafter, constant(large), speculative_sampling)


MUTANT = planted(
    "cascade-drafting",
    "inner-rounds-biased",
    "drafts by inner rounds that are not exact",
    build,
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=({"large": 2, "small": 0, "inner": 2, "max_ngram": 2},),
)
