"""An end-of-sequence token is noticed only as the last token of a block: accepted drafts go on behind it."""

from __future__ import annotations

from reference import Decoder, Draws, Round, State, Task
from specverify.mutants.mutant import SHORT, correct, planted


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that tests the last committed token alone."""
    inner = correct("speculative-sampling").build(task._replace(eos=()), gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        return (after._replace(remaining=0) if done.tokens[-1] in task.eos else after), done

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "eos-ignored-in-block",
    "stops only if a block ends in EOS",
    build,
    category="K",
    citation="transformers PR #31301, issue #47912; koboldcpp issue #1276",
    killed_by="eos_is_final",
    examples=SHORT,
)
