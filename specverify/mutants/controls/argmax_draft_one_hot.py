"""The drafter's argmax is declared as a point mass: accepted with p(d), replaced from p without d."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Task
from specverify.reference.models import draft_model
from specverify.reference.pmf import point_on_argmax
from specverify.subjects.algorithm import algorithm_subject


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling of greedy drafts, honestly declared."""
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: point_on_argmax(draft(tokens)), lambda tokens: None)


ROW = correct("speculative-sampling")._replace(name="argmax-draft-one-hot", build=build, examples=SHORT)

CONTROL = Control(
    "argmax-draft-one-hot",
    "declares no q for greedy drafts",
    "vLLM PR #40651; EAGLE issues #183, #283",
    partial(algorithm_subject, ROW, "control"),
)
