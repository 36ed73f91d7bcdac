"""The released BiLD with its turn handed over after a rollback: the large model writes no second token."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draws, Round, State, Task
from specverify.reference.algorithms import bild_released


def build(task: Task, **options: Any) -> Decoder:
    """Take the large model's turn away after every round."""
    decoder = bild_released.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        return after._replace(drafter=False), done

    return decoder._replace(step=step)


MUTANT = planted(
    "bild-released",
    "turn-ends-with-rollback",
    "goes back to the small model right after a rollback",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
