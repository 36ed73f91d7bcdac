"""CLLM: Jacobi decoding of a model that was fine-tuned to converge in few sweeps (Kou et al. 2403.00835).

The output is the greedy text of the fine-tuned model, not of the target, which is the model before fine-tuning. So the
algorithm declares this text as its law. Here q stands for the fine-tuned model. Not covered: that training saves
sweeps, which needs a trained model.
"""

from __future__ import annotations

from typing import Any

from ..laws import greedy_law
from ..limits import perfect_draft
from ..models import draft_model
from ..types import Algorithm, Decoder, Reduction, Task, Tokens
from . import jacobi


def build(task: Task, block: int = 8) -> Decoder:
    """Return the decoder that applies Jacobi iteration to ``block`` tokens of the fine-tuned model at a time."""
    return jacobi.build(task._replace(target=draft_model(task)), block)


def declared_law(task: Task, prompt: Tokens, **_: Any) -> dict[Tokens, Any]:
    """Return the law of the new tokens after ``prompt``: the point mass on the greedy text of the task's draft model.

    This model stands for the fine-tuned one.
    """
    return greedy_law(task._replace(target=draft_model(task)), prompt)


ALGORITHM = Algorithm(
    name="cllm",
    summary="Jacobi decoding of a fine-tuned model; its greedy text is not the original model's (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"block": 2}, {"block": 3}),
    paper="arXiv 2403.00835, Jacobi decoding with a consistency model",
    declared_law=declared_law,
    systems=("CLLM",),
    needs_training="by how many sweeps consistency training shortens decoding, and whether the text stays the same",
    reductions=(Reduction("jacobi", "the model is not fine-tuned", {"block": 2}, {"block": 2}, limit=perfect_draft),),
)
