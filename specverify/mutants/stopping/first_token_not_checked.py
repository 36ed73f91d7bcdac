"""The token of the prefill is not looked at: a text that ends at once goes on."""

from __future__ import annotations

from specverify.mutants.mutant import correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task


def build(task: Task, order: int = 3, gamma: int = 4, filler_top_k: int = 1, backoff: bool = True) -> Decoder:
    """NASD whose first token comes from a plain draw without a stop."""
    inner = correct("nasd").build(task, order, gamma, filler_top_k, backoff)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        if state.remaining < task.horizon:
            return inner.step(draws, state)
        token = draws.categorical(task.target(state.tokens), ("prefill",))
        after = state._replace(tokens=(*state.tokens, token), remaining=state.remaining - 1)
        return after, Round((token,), (), 0, 0)

    return inner._replace(step=step)


MUTANT = planted(
    "nasd",
    "first-token-not-checked",
    "does not look for EOS after the prefill",
    build,
    category="K",
    citation="romsto/Speculative-Decoding ngram_assisted.py:73-87 at db7db67",
    killed_by="eos_is_final",
    examples=({"order": 2, "gamma": 2},),
)
