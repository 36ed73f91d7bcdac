"""A step whose reward is too low is written anew, but never the same again."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task, one_hot, residual
from specverify.reference.algorithms import reward_guided
from specverify.reference.models import draft_model
from specverify.reference.rounds import check_unfinished, commit
from specverify.reference.types import Draws, Round, State


def build(task: Task, rewarded: Any = ()) -> Decoder:
    """Reward-guided steps; the target's own step excludes the draft's."""
    decoder = reward_guided.build(task, rewarded)
    draft = draft_model(task)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafted, p = draws.categorical(draft(state.tokens), ("draft", 0)), task.target(state.tokens)
        stays = (state.tokens[-1], drafted) in rewarded
        token = drafted if stays else draws.categorical(residual(p, one_hot(drafted, p)), ("target", 0))
        new, remaining = commit((token,), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, (drafted,), int(stays), 1)

    return decoder._replace(step=step)


MUTANT = planted(
    "reward-guided",
    "step-rewritten-without-the-draft",
    "never writes the step again that was drafted",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
