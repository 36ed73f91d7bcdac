"""Predictive pipelined decoding: passes for the next token start before this one is finished (Yang et al. 2307.05908).

The model has d layers. After layer e an early exit gives the k most probable values of the current token. For each of
these values a pass for the following token is started. When the current token is finished, drawn from p, the pass of
the value that equals it continues; the others are discarded. The text is the target's own; only the time changes: after
a guessed token, d - e layers of the next pass are already computed. If a token is guessed with probability h, it takes
``d - (d - e) h`` layers on average, with up to k additional passes.

A round emits one token; its trace has the number of layers it took and whether it was guessed. The state between rounds
(``State.drafter``) is whether the last token was guessed.
"""

from __future__ import annotations

from ..drafters.self_draft import partial_model
from ..models import draft_model
from ..pmf import checked_model, top_tokens
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Reduction, Round, State, Task


def build(task: Task, exit_layer: int = 2, layers: int = 4, k: int = 3) -> Decoder:
    """Return the decoder that starts ``k`` passes for the next token before the current token is known.

    The passes start when ``exit_layer`` of the ``layers`` layers of the current pass are computed. Raises
    ``ValueError`` for k < 0.
    """
    if k < 0:
        raise ValueError(f"k is {k}, expected at least 0 (the passes begun ahead)")
    target = checked_model(task.target, "target")
    early = partial_model(target, draft_model(task), exit_layer, layers)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        took = exit_layer if state.drafter else layers
        candidates = top_tokens(early(state.tokens), k)
        token = draws.categorical(target(state.tokens), ("target", 0))
        new, remaining = commit((token,), state.remaining, task.eos)
        guessed = token in candidates
        trace = (("layers", took), ("guessed", int(guessed)))
        return State(state.tokens + new, remaining, guessed), Round(new, (), 0, 0, trace)

    return Decoder(init=lambda prompt: initial_state(prompt, task)._replace(drafter=False), step=step)


ALGORITHM = Algorithm(
    name="ppd",
    summary="target passes for the k most probable next tokens begin at an early exit; the pass of the drawn "
    "token continues",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"exit_layer": 1, "layers": 2, "k": 1}, {"exit_layer": 2, "layers": 3, "k": 2}),
    paper="arXiv 2307.05908",
    systems=("PPD",),
    needs_training="how often an early exit is right",
    reductions=(Reduction("autoregressive", "always", {"exit_layer": 1, "layers": 2, "k": 1}),),
)
