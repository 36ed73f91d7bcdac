"""The drafter knows fewer tokens, and the residual is taken over those: the others are never recovered."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Parts, Pmf, Task, constant, from_parts, model_drafter, one_hot, residual
from specverify.reference.coupling import accept_probability
from specverify.reference.drafters.tree import excluding
from specverify.reference.models import draft_model
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def known(pmf: Pmf) -> Pmf:
    """Return the pmf on the drafter's vocabulary, which lacks the last token; token 0 if nothing is left."""
    rest = excluding(pmf, (len(pmf) - 1,))
    return one_hot(0, pmf) if rest is None else rest


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Speculative sampling of a drafter without the last token."""
    draft = draft_model(task)
    verify = accept_or_replace(
        lambda prefix, p, q, token: accept_probability(p, q, token), lambda p, q, token: known(residual(p, q))
    )
    return Parts(model_drafter(lambda tokens: known(draft(tokens))), constant(gamma), verify)


MUTANT = planted(
    "speculative-sampling",
    "residual-within-the-subset",
    "recovers tokens of the drafter alone",
    build,
    category="N",
    citation="xLLM PR #2175 (d2t part)",
    killed_by="law_is_target",
    examples=SHORT,
)
