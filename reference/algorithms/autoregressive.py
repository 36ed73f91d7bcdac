"""Decoding without speculation: one draw from the target per round. All lossless algorithms are compared with it."""

from __future__ import annotations

from ..pmf import checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Round, State, Task


def build(task: Task) -> Decoder:
    """Return the decoder that samples the target token by token."""
    target = checked_model(task.target, "target")

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        token = draws.categorical(target(state.tokens), ("target", 0))
        new, remaining = commit((token,), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, draft=(), accepted=0, reached=0)

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


ALGORITHM = Algorithm(
    name="autoregressive",
    summary="one draw from p per target call, without drafts",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({},),
    paper="the target model itself",
)
