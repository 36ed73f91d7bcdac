"""Of several end-of-sequence ids the one that is looked for first is found first, wherever it stands in the block."""

from __future__ import annotations

from reference import Decoder, Draws, Round, State, Task
from specverify.mutants.mutant import SHORT, correct, planted


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that cuts at the first id that occurs, not at the first occurrence."""
    inner = correct("speculative-sampling").build(task._replace(eos=()), gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        found = next((token for token in task.eos if token in done.tokens), None)
        if found is None:
            return after, done
        kept = done.tokens[: done.tokens.index(found) + 1]
        return after._replace(tokens=state.tokens + kept, remaining=0), done._replace(tokens=kept)

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "eos-by-id-order",
    "cuts at the first EOS id, not the first EOS",
    build,
    category="K",
    citation="romsto/Speculative-Decoding speculative_decoding.py:150-152 at db7db67",
    killed_by="eos_is_final",
    examples=SHORT,
)
