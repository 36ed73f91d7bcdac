"""A drafter's vocabulary of equal size is another order of the same tokens; drafted ids are mapped, q is not."""

from __future__ import annotations

import numpy as np

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Task
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose drafter counts tokens from 1: q is rolled against p."""
    draft = draft_model(task)
    return declaring(task, gamma, draft, lambda tokens: np.roll(draft(tokens), 1))


MUTANT = planted(
    "speculative-sampling",
    "q-in-draft-order",
    "leaves q in the drafter's order of tokens",
    build,
    category="N",
    citation="rtp-llm commit 607ec2c23 (second defect)",
    killed_by="law_is_target",
    examples=SHORT,
)
