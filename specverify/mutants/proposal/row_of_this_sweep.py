"""Speculative Jacobi decoding declares the row that this sweep would have drawn a draft from."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draws, Round, State, Task
from specverify.reference.algorithms import speculative_jacobi


def build(task: Task, **options: Any) -> Decoder:
    """Forget the text that each draft was drawn after."""
    decoder = speculative_jacobi.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        assert isinstance(after.drafter, tuple)
        tokens = tuple(token for token, _ in after.drafter)
        window = tuple((token, after.tokens + tokens[:i]) for i, token in enumerate(tokens))
        return after._replace(drafter=window), done

    return decoder._replace(step=step)


MUTANT = planted(
    "speculative-jacobi",
    "row-of-this-sweep",
    "judges a draft by the new row at its place",
    build,
    category="B",
    citation="plausible",
    killed_by="law_is_target",
)
