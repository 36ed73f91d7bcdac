"""The draft is sampled in low precision and the ratio computed in high precision, from the same logits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Pmf, Task
from specverify.reference.models import draft_model

STEPS = 256
"""Eight bits of significand, as in bfloat16."""


def rounded(pmf: Pmf) -> Pmf:
    """Return the pmf in steps of 1/256, normalised again."""
    steps = [round(mass * STEPS) for mass in pmf.tolist()]
    return np.array([Fraction(step, sum(steps)) for step in steps], dtype=object)


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling of drafts drawn from a rounded q."""
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: rounded(draft(tokens)), draft)


MUTANT = planted(
    "speculative-sampling",
    "low-precision-draft",
    "samples q in 8 bits, declares it in full",
    build,
    category="B",
    citation="DeepSpec issue #31 (commit 379f222)",
    killed_by="draft_is_honest",
    examples=SHORT,
)
