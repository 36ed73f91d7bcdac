"""Drafts are drawn at the drafter's temperature, q is computed at the target's."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Pmf, Task, Tokens
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose drafts are drawn at temperature 1/2."""
    draft = draft_model(task)

    def sharper(tokens: Tokens) -> Pmf:
        squared = draft(tokens) ** 2
        return squared / squared.sum()

    return declaring(task, gamma, sharper, draft)


MUTANT = planted(
    "speculative-sampling",
    "declared-at-another-temperature",
    "draws from q^2, declares q",
    build,
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)
