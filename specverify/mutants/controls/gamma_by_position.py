"""Another number of drafts gives another text from the same seed, and the same law."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct
from specverify.reference import Parts, Plan, Task, constant, from_parts, model_drafter
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.algorithm import algorithm_subject


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Draft gamma tokens after texts of odd length and none after others."""
    length = constant(gamma)._replace(plan=lambda state, prefix: Plan(gamma * (len(prefix) % 2), state))
    return Parts(model_drafter(draft_model(task)), length, speculative_sampling)


ROW = correct("speculative-sampling")._replace(name="gamma-by-position", build=build, examples=SHORT)

CONTROL = Control(
    "gamma-by-position",
    "drafts more here than there",
    "TensorRT-LLM issue #2208",
    partial(algorithm_subject, ROW, "control"),
)
