"""The drafter decodes greedily, its soft probabilities go into the ratio: likely tokens come out too often."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Task
from specverify.reference.models import draft_model
from specverify.reference.pmf import point_on_argmax


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling of greedy drafts."""
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: point_on_argmax(draft(tokens)), draft)


MUTANT = planted(
    "speculative-sampling",
    "argmax-draft-soft-ratio",
    "drafts the argmax, divides by q(argmax)",
    build,
    category="B",
    citation="jaymody/speculative-sampling issue #3, PR #4; transformers issue #32867, PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
