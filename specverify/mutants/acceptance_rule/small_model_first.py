"""The released BiLD without its first token of the large model: the small one begins, as in the paper."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task
from specverify.reference.algorithms import bild_released


def build(task: Task, **options: Any) -> Decoder:
    """Give the first turn to the small model."""
    decoder = bild_released.build(task, **options)
    return decoder._replace(init=lambda prompt: decoder.init(prompt)._replace(drafter=False))


MUTANT = planted(
    "bild-released",
    "small-model-first",
    "lets the small model write the first token",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
