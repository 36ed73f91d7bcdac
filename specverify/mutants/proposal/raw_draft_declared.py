"""Tokens are drawn from a truncated q while the raw q is declared: the ratio is off by the truncated mass."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Task, top_k
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose drafter samples its top token set only and does not say so."""
    raw = draft_model(task)
    return declaring(task, gamma, lambda tokens: top_k(raw(tokens), 1), raw)


MUTANT = planted(
    "speculative-sampling",
    "raw-draft-declared",
    "samples a truncated q, declares the raw one",
    build,
    category="B",
    citation="transformers issue #47932, PR #47961",
    killed_by="draft_is_honest",
    examples=SHORT,
)
