"""What a row of the table is: one setting of one way to speculate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from specverify.engines.huggingface.generation import Build
from specverify.engines.huggingface.tiny_models import EngineSetting
from specverify.reference import Tokens
from specverify.subjects.subject import EVERYTHING

OBJECTS = frozenset({"changed"})
LawOf = Callable[[EngineSetting], Mapping[Tokens, float]]


class TableRow(NamedTuple):
    """One setting of one way to speculate."""

    build: Build
    setting: EngineSetting
    refusal: str = ""
    """What the library says if it does not take the setting; anything else that it raises is a fault."""
    documented: tuple[str, ...] = ()
    """What the library's documentation says a call changes."""
    declared: LawOf | None = None
    """The law of a documented lossy mode."""
    tells: frozenset[str] = EVERYTHING
    """What is told of a run: ``OBJECTS`` alone unless the prompt is token ids, only the loop runs the target, and
    float64 is possible."""


BASE = EngineSetting("", "llama", horizon=3, vocabulary=4, prompt=(0, 1, 2, 0, 1))
SMALL = BASE._replace(vocabulary=3)
"""The same with a third of the runs."""
