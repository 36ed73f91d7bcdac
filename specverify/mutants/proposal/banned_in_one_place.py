"""A banned token is removed from the declared q, which is normalised again, but the drafter may still draw it."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Pmf, Task, Tokens
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling with token 1 banned after drafting."""
    draft = draft_model(task)

    def without_banned(tokens: Tokens) -> Pmf:
        q = draft(tokens).copy()
        q[1] = q[1] * (q[1] == 1)
        return q / q.sum()

    return declaring(task, gamma, draft, without_banned)


MUTANT = planted(
    "speculative-sampling",
    "banned-in-one-place",
    "normalises q without a token it drafts",
    build,
    category="B",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
