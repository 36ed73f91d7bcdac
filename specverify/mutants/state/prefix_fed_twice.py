"""With a cache the whole text is fed again on top of it: from round 2 on the target reads everything twice."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Pmf, Round, State, Task, Tokens


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling over a cache that is not empty when the text is fed."""
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = () if state.remaining == task.horizon else state.tokens[:-1]

        def doubled(tokens: Tokens) -> Pmf:
            return task.target(held + tokens)

        return correct("speculative-sampling").build(task._replace(target=doubled), gamma=gamma).step(draws, state)

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "prefix-fed-twice",
    "feeds the whole text behind its own cache",
    build,
    category="H",
    citation="romsto/Speculative-Decoding base_decoding.py:52, speculative_decoding.py:113-133 at db7db67",
    killed_by="law_is_target",
    examples=SHORT,
)
