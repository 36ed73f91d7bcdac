"""Speculative sampling that knows no end-of-sequence tokens, and is cut by another rule."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.mutant import correct
from specverify.reference import Decoder, Draws, Round, State, Task, Tokens


def stopping_at(last: Callable[[Tokens, Round], int | None]) -> Callable[..., Decoder]:
    """Return the build function of the decoder that ends with the token of a round at place ``last(eos, round)``."""

    def build(task: Task, gamma: int = 4) -> Decoder:
        inner = correct("speculative-sampling").build(task._replace(eos=()), gamma=gamma)

        def step(draws: Draws, state: State) -> tuple[State, Round]:
            after, done = inner.step(draws, state)
            place = last(task.eos, done)
            if place is None:
                return after, done
            kept = done.tokens[: place + 1]
            return after._replace(tokens=state.tokens + kept, remaining=0), done._replace(tokens=kept)

        return inner._replace(step=step)

    return build
