"""The models of a task, with every returned pmf validated."""

from __future__ import annotations

from .pmf import checked_model
from .types import LanguageModel, Task


def draft_model(task: Task) -> LanguageModel:
    """Return q with every pmf validated. Raises ``ValueError`` if the task has no draft model."""
    if task.draft is None:
        raise ValueError("the task has no draft model, expected a callable from tokens to a pmf")
    return checked_model(task.draft, "draft")


def raw_draft_model(task: Task) -> LanguageModel:
    """Return the drafter at temperature 1 before truncation; if the task has none, return q."""
    return draft_model(task) if task.raw_draft is None else checked_model(task.raw_draft, "raw draft")
