"""Self-speculative masked diffusion: one network drafts masked positions and verifies them (2510.03929).

Campbell et al. A pass draws an order of the masked positions. The first part of the network reads all filled positions
and gives each masked position a row q; a draft is drawn from each row, independently of the others. The last part of
the network also reads, for each position, the drafts before it in the drawn order, and gives the verifying row p. A
draft is accepted with probability ``min(1, p/q)``. The first rejected one is replaced by a draw from ``norm((p -
q)+)``, and the pass ends. This is speculative sampling of a block in the drawn order, so it is exact for the verifying
rows.

Here a verifying row is a conditional of the joint law of p (``any_order.masked_model``), so the product of the rows is
this joint law in every order. A drafting row is the conditional given only the filled positions. So the first draft of
a pass is always accepted. The verifying rows of a trained network may depend on the order.

The rule follows the abstract and summaries of the paper; its text and a release were not found. A pass drafts at most
``window`` positions. Blocks follow each other from left to right; a round writes one block, in several passes.
"""

from __future__ import annotations

from ..any_order import Block, filled, masked_model, masked_places
from ..coupling import accept_probability, excess_law, flip
from ..pmf import checked_model, uniform
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Reduction, Round, State, Task, Tokens
from ..validation import check_integer


def build(task: Task, block: int = 4, window: int = 4) -> Decoder:
    """Return the decoder that fills blocks of ``block`` positions, at most ``window`` in a pass.

    Raises ``ValueError`` if one of the two is below 1.
    """
    check_integer(block, "block", least=1)
    check_integer(window, "window", least=1)
    target = checked_model(task.target, "target")
    model = masked_model(target)

    def one_pass(draws: Draws, prefix: Tokens, here: Block, number: int) -> tuple[Block, Tokens, int]:
        """Fill positions of the block ``here`` after ``prefix`` in one pass, the pass with this ``number``.

        Returns the new block, the tokens drafted in the pass, and how many of them were accepted.
        """
        places = drawn_order(draws, here, window, number)
        rows = [model(prefix, here, place) for place in places]
        drafts = tuple(draws.categorical(q, ("draft", number, i)) for i, q in enumerate(rows))
        for i, (place, token, q) in enumerate(zip(places, drafts, rows, strict=True)):
            p = model(prefix, here, place)
            if not flip(draws, accept_probability(p, q, token), ("accept", number, i)):
                return filled(here, place, draws.categorical(excess_law(p, q), ("residual", number, i))), drafts, i
            here = filled(here, place, token)
        return here, drafts, len(drafts)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        here: Block = (None,) * min(block, state.remaining)
        drafted: Tokens = ()
        accepted = reached = number = 0
        while masked_places(here):
            here, drafts, kept = one_pass(draws, state.tokens, here, number)
            drafted, number = drafted + drafts, number + 1
            accepted, reached = accepted + kept, reached + min(kept + 1, len(drafts))
        new, remaining = commit(tuple(token for token in here if token is not None), state.remaining, task.eos)
        done = Round(new, drafted, min(accepted, len(new)), min(reached, len(new)))
        return State(state.tokens + new, remaining), done

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


def drawn_order(draws: Draws, here: Block, window: int, number: int) -> list[int]:
    """Return at most ``window`` masked positions of the block ``here``, in a uniformly drawn order.

    ``number`` counts the passes; the names of the random decisions contain it.
    """
    left, places = masked_places(here), list[int]()
    while left and len(places) < window:
        places.append(left.pop(draws.categorical(uniform(len(left)), ("place", number, len(places)))))
    return places


ALGORITHM = Algorithm(
    name="self-speculative-diffusion",
    summary="draft all masked positions from rows that do not read each other; accept with min(1, p/q) in random order",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"block": 2, "window": 2}, {"block": 3, "window": 2}, {"block": 2, "window": 3}),
    paper="arXiv 2510.03929, as told by its abstract and summaries",
    systems=("self-speculative masked diffusion",),
    needs_training="how strongly the positions of a block depend on each other",
    reductions=(Reduction("autoregressive", "blocks of one position", {"block": 1}, rounds=False),),
)
