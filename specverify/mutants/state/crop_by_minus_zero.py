"""The cache is cropped by ``[:-rejected]``: where nothing is rejected that empties it, and the text before is gone."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling over a cache; ``State.drafter`` holds the tokens that are really in it."""
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = state.drafter if isinstance(state.drafter, tuple) else state.tokens
        after, done = inner.step(draws, state._replace(tokens=held, drafter=None))
        fed = (*held, *done.draft)
        rejected = len(done.draft) - done.accepted
        last = done.tokens[-1:] if len(done.tokens) > done.accepted else ()
        return after._replace(tokens=state.tokens + done.tokens, drafter=fed[:-rejected] + last), done

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "crop-by-minus-zero",
    "empties the cache when nothing is rejected",
    build,
    category="H",
    citation="romsto/Speculative-Decoding utils/caching.py:51,73-74 at db7db67",
    killed_by="law_is_target",
    examples=SHORT,
)
