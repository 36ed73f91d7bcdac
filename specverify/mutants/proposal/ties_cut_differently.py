"""Ties at the boundary of top-k are cut one way where drafts are drawn and another way where q is computed."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Pmf, Task, Tokens, argmax, one_hot
from specverify.reference.models import draft_model
from specverify.reference.pmf import point_on_argmax


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling of top-1 drafts; ties go to the last token, and to the first."""
    draft = draft_model(task)

    def first(tokens: Tokens) -> Pmf:
        return point_on_argmax(draft(tokens))

    def last(tokens: Tokens) -> Pmf:
        q = draft(tokens)
        return one_hot(len(q) - 1 - argmax(q[::-1]), q)

    return declaring(task, gamma, last, first)


MUTANT = planted(
    "speculative-sampling",
    "ties-cut-differently",
    "breaks ties of top-k in two ways",
    build,
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)
