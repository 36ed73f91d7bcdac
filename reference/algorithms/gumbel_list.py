"""Gumbel list sampling: K drafts and the target race over shared noise (Rowan et al. 2506.05632, Algorithm 1).

The K drafts are candidates for one position. The token y of the target is emitted whatever is drafted, and the round
continues if y is one of the drafts. So the output is exact, and the text is the same for every drafter, draw for draw.
As in ``gumbel-coupling`` no noise is drawn: y is drawn from p, then the drafts from their joint law given y
(``verifiers.gumbel_list``).

The paper's list matching lemma (Theorem 1) is a lower bound of the acceptance; the acceptance here is exact. Not
covered: Algorithm 2, which repeats this for later positions with the drafts that still agree (Section 4.2). The paper
calls the draft's pmf p and the target's q.
"""

from __future__ import annotations

import numpy as np

from ..coupling import positive_part
from ..limits import perfect_draft
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Reduction, Round, State, Task, Tokens
from ..verifiers.gumbel_list import list_given_target


def build(task: Task, lists: int = 2) -> Decoder:
    """Return the decoder that drafts ``lists`` tokens in a round, all for the next position.

    The target's draw is emitted. If it is one of the drafts, a second token is drawn from p and emitted too. Nothing is
    drafted if only one token may follow. Raises ``ValueError`` unless ``lists`` is at least 1.
    """
    if lists < 1:
        raise ValueError(f"lists is {lists}, expected at least 1")
    target, draft = checked_model(task.target, "target"), draft_model(task)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        place = len(state.tokens)
        p = target(state.tokens)
        emitted: Tokens = (draws.categorical(p, ("noise", place)),)
        drafted: Tokens = ()
        if state.remaining > 1:
            law = positive_part(list_given_target(p, draft(state.tokens), lists, emitted[0]))
            chosen = draws.categorical(law.reshape(-1) / law.sum(), ("list", place))
            drafted = tuple(int(index) for index in np.unravel_index(chosen, law.shape))
        matched = emitted[0] in drafted
        if matched:
            place_of = drafted.index(emitted[0])
            drafted = (emitted[0], *drafted[:place_of], *drafted[place_of + 1 :])
            emitted = (*emitted, draws.categorical(target(state.tokens + emitted), ("noise", place + 1)))
        new, remaining = commit(emitted, state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, drafted, int(matched), int(bool(drafted)))

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


ALGORITHM = Algorithm(
    name="gumbel-list",
    summary="K drafts and y win races over shared noise; emit y, and continue while y is in the list",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"lists": 2},),
    paper="arXiv 2506.05632, Section 3, Algorithm 1",
    systems=("GLS",),
    reductions=(
        Reduction("gumbel-coupling", "one list", {"lists": 1}, {"gamma": 1}),
        Reduction("speculative-sampling", "q = p, one list", {"lists": 1}, {"gamma": 1}, limit=perfect_draft),
    ),
)
