"""Spiffy: blocks of a masked diffusion model, whose rows predict its next states (Agrawal et al. 2509.18085).

A masked diffusion model fills one position of a block in a step, and a step costs one pass. Spiffy evaluates the
current state together with a few predicted next states, taken from the rows of the step before. The step is drawn from
the rows of the current state, as without prediction. If the resulting state is a predicted one, its rows are known, and
the next step needs no pass. Only the draws decide which states occur, so prediction does not change the law of a block.

The model here is ``any_order.masked_model``, whose blocks have the law of p, so the algorithm is lossless for p. A step
fills the position whose row has the largest entry, the first one in a tie: a function of the filled positions. Not
covered: steps that fill several positions, which change the law of the model itself.

The rule follows the abstract and an account of the paper's Algorithm 1; the text of the paper and a release were not
found. The predicted states (the paper's directed draft graph) are those in which the ``depth`` most confident positions
are filled one after another, each with one of its ``width`` most probable tokens. Calibration and pruning only choose
among such graphs, and are left out. Blocks follow each other from left to right; a round writes one block, in several
passes.
"""

from __future__ import annotations

from itertools import product

from ..any_order import Block, filled, masked_model, masked_places
from ..pmf import checked_model, top_tokens
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Pmf, Reduction, Round, State, Task, Tokens
from ..validation import check_integer


def build(task: Task, block: int = 4, depth: int = 2, width: int = 1) -> Decoder:
    """Return the decoder that fills blocks of ``block`` positions and predicts ``depth`` steps, ``width`` tokens each.

    Raises ``ValueError`` for a ``block`` below 1, or a negative ``depth`` or ``width``.
    """
    check_integer(block, "block", least=1)
    check_integer(depth, "depth", least=0)
    check_integer(width, "width", least=0)
    model = masked_model(checked_model(task.target, "target"))

    def rows_of(prefix: Tokens, state: Block) -> dict[int, Pmf]:
        return {place: model(prefix, state, place) for place in masked_places(state)}

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        here: Block = (None,) * min(block, state.remaining)
        graph: list[Block] = []
        guessed: Tokens = ()
        reached = matched = 0
        while masked_places(here):
            before, rows = here, rows_of(state.tokens, here)
            place = most_confident(rows)[0]
            here = filled(before, place, draws.categorical(rows[place], ("fill", len(before) - len(rows))))
            guesses = next_states(graph, before) if len(rows) > 1 else []
            if guesses:
                reached, guessed = reached + 1, (*guessed, added_token(before, guesses[0]))
            if here in guesses:
                matched += 1
            else:
                graph = draft_states(here, rows, depth, width)
        new, remaining = commit(tuple(token for token in here if token is not None), state.remaining, task.eos)
        done = Round(new, guessed, min(matched, len(new)), min(reached, len(new)))
        return State(state.tokens + new, remaining), done

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


def most_confident(rows: dict[int, Pmf]) -> list[int]:
    """Return the positions in decreasing order of the largest entry of their row; ties keep their order.

    ``rows`` maps each masked position to its row.
    """
    return sorted(rows, key=lambda place: (-rows[place].max(), place))


def draft_states(here: Block, rows: dict[int, Pmf], depth: int, width: int) -> list[Block]:
    """Return the block states to evaluate together with ``here``, predicted from the ``rows`` of the previous state.

    ``rows`` are pmfs by position. A predicted state is ``here`` with the 1, 2, ... or ``depth`` most confident masked
    positions filled, each with one of its ``width`` most probable tokens. All combinations are returned.
    """
    places = [place for place in most_confident(rows) if here[place] is None][:depth]
    states: list[Block] = []
    for count in range(1, len(places) + 1):
        for tokens in product(*(top_tokens(rows[place], width) for place in places[:count])):
            state = here
            for place, token in zip(places, tokens, strict=False):
                state = filled(state, place, token)
            states.append(state)
    return states


def next_states(graph: list[Block], before: Block) -> list[Block]:
    """Return the states of ``graph`` that may follow the state ``before`` in one step.

    Such a state has one more filled position than ``before``, and the same tokens at the positions filled in
    ``before``.
    """
    masked = masked_places(before)
    return [
        state
        for state in graph
        if len(masked_places(state)) == len(masked) - 1
        and all(place in masked or state[place] == before[place] for place in range(len(before)))
    ]


def added_token(before: Block, after: Block) -> int:
    """Return the token that ``after`` has at the position where ``before`` is still masked."""
    return next(token for here, token in zip(before, after, strict=True) if here is None and token is not None)


ALGORITHM = Algorithm(
    name="spiffy",
    summary="a masked model fills one position per step; drafts are guesses of the next states, which save "
    "passes if right",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"block": 2}, {"block": 3, "depth": 2, "width": 1}),
    paper="arXiv 2509.18085, as told by its abstract and by an account of its Algorithm 1",
    systems=("Spiffy",),
    needs_training="the pmfs of a diffusion model at the positions of a block, and the best graph of guesses",
    reductions=(Reduction("autoregressive", "blocks of one position", {"block": 1}),),
)
