"""The draft is not bounded by the horizon and the block is committed whole: the output is too long."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose last round may overshoot."""
    inner = correct("speculative-sampling").build(task._replace(horizon=task.horizon + gamma), gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        return (after._replace(remaining=0) if after.remaining <= gamma else after), done

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "one-token-too-many",
    "commits a whole block past the horizon",
    build,
    category="K",
    citation="vLLM issue #42533; exllamav2 commit 7019a1b",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
