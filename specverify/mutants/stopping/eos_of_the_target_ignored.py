"""Accepted drafts alone are searched for the end: one that the target draws itself is passed over."""

from __future__ import annotations

from reference import Decoder, Draws, Round, State, Task
from specverify.mutants.mutant import SHORT, correct, planted


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that looks for the end in ``accepted``."""
    inner = correct("speculative-sampling").build(task._replace(eos=()), gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        ends = [place for place, token in enumerate(done.tokens[: done.accepted]) if token in task.eos]
        if not ends:
            return after, done
        kept = done.tokens[: ends[0] + 1]
        return after._replace(tokens=state.tokens + kept, remaining=0), done._replace(tokens=kept)

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "eos-of-the-target-ignored",
    "looks for EOS among accepted drafts alone",
    build,
    category="K",
    citation="romsto/Speculative-Decoding commits 97b82fb, 9b64b44",
    killed_by="eos_is_final",
    examples=SHORT,
)
