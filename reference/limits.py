"""Limits of models: temperature 0, and drafters that equal the target, are deterministic, or ignore text."""

from __future__ import annotations

from .models import draft_model
from .pmf import checked_model, point_on_argmax
from .types import LanguageModel, Task


def greedy_target(task: Task) -> Task:
    """Return the task with every row of p made the point mass on its argmax."""
    return task._replace(target=_greedy(checked_model(task.target, "target")))


def greedy_draft(task: Task) -> Task:
    """Return the task with every row of q made the point mass on its argmax."""
    return task._replace(draft=_greedy(draft_model(task)), raw_draft=None)


def greedy_models(task: Task) -> Task:
    """Return the task with every row of p and of q made the point mass on its argmax."""
    return greedy_draft(greedy_target(task))


def perfect_draft(task: Task) -> Task:
    """Return the task with q = p."""
    return task._replace(draft=task.target, raw_draft=None)


def last_token_draft(task: Task) -> Task:
    """Return the task with a q that depends on the last token alone: q after a text of only this token."""
    draft = draft_model(task)
    return task._replace(draft=lambda tokens: draft(tokens[-1:]), raw_draft=None)


def constant_draft(task: Task) -> Task:
    """Return the task with a q that does not depend on the text: always the row of q after token 0."""
    draft = draft_model(task)
    return task._replace(draft=lambda tokens: draft((0,)), raw_draft=None)


def _greedy(model: LanguageModel) -> LanguageModel:
    return lambda tokens: point_on_argmax(model(tokens))
