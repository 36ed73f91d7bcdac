"""Output laws in closed form, for the rows that are not lossless. Nothing here runs the decoder it describes."""

from __future__ import annotations

from typing import Any

from reference.pmf import argmax
from reference.types import Task, Tokens


def greedy_law(task: Task, prompt: Tokens, **_: Any) -> dict[Tokens, Any]:
    """Return the point mass on the target's greedy continuation of ``prompt`` (new tokens only)."""
    new: Tokens = ()
    while len(new) < task.horizon and not (new and new[-1] in task.eos):
        new = (*new, argmax(task.target(prompt + new)))
    return {new: 1}
