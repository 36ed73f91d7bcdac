"""Where the target's token is not in the list, the first draft comes out for it."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draws, Round, State, Task
from specverify.reference.algorithms import gumbel_list


def build(task: Task, **options: Any) -> Decoder:
    """Gumbel list sampling that trusts its first list."""
    decoder = gumbel_list.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        if not done.draft or done.accepted:
            return after, done
        tokens = state.tokens + done.draft[:1]
        ended = done.draft[0] in task.eos
        return State(tokens, 0 if ended else state.remaining - 1), done._replace(tokens=done.draft[:1], accepted=1)

    return decoder._replace(step=step)


MUTANT = planted(
    "gumbel-list",
    "list-believed",
    "emits the first draft where none matches",
    build,
    category="D",
    citation="plausible",
    killed_by="law_is_target",
)
