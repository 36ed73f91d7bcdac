"""Drafter-invariant speculative decoding: both models read the same noise (Daliri, Musco, Suresh 2408.07978).

Every position t of the text has its own noise. With this noise the drafter draws its token d from q, and the target its
token y from p. The target's token is emitted, and the round continues while y = d. Neither model needs the other's pmf.
y_t depends only on the noise at t and the text so far. So the text is the same, draw for draw, for every drafter and
every gamma, and for decoding without drafts.

Here no noise is drawn, only its consequences: y from p, in a draw with the name ``("noise", t)``, then d from its law
given y (``verifiers.gumbel_coupling``). So every draw is finite and exact. After the first disagreement of a round,
drafts are drawn from q alone. The real scheme would correlate them with later noise, but the emitted and accepted
tokens do not depend on them.

The acceptance ``sum_i 1/sum_v max(p_v/p_i, q_v/q_i)`` is below that of a maximal coupling, so no optimal coupling is
claimed.
"""

from __future__ import annotations

from typing import Any

from ..lengths.constant import check_gamma
from ..limits import greedy_draft, perfect_draft
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Reduction, Round, State, Task, Tokens, chain
from ..verifiers.gumbel_coupling import draft_given_target


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder that drafts ``gamma`` tokens a round, and fewer near the end of the text.

    Draft and target read the same noise at each position; a draft is accepted if the target emits the same token.
    """
    check_gamma(gamma, "gamma")
    target, draft = checked_model(task.target, "target"), draft_model(task)

    def race(draws: Draws, state: State) -> tuple[Tokens, Draft]:
        emitted: Tokens = ()
        drafted: Tokens = ()
        pmfs: tuple[Any, ...] = ()
        for position in range(len(state.tokens), len(state.tokens) + min(gamma, state.remaining - 1)):
            q = law = draft(state.tokens + drafted)
            if emitted == drafted:
                p = target(state.tokens + emitted)
                emitted = (*emitted, draws.categorical(p, ("noise", position)))
                law = draft_given_target(p, q, emitted[-1])
            drafted, pmfs = (*drafted, draws.categorical(law, ("draft", position))), (*pmfs, q)
        return emitted, chain(drafted, pmfs)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        emitted, proposed = race(draws, state)
        agreed = len(emitted)
        if emitted == proposed.tokens:
            last = draws.categorical(target(state.tokens + emitted), ("noise", len(state.tokens) + agreed))
            emitted = (*emitted, last)
        else:
            agreed -= 1
        new, remaining = commit(emitted, state.remaining, task.eos)
        reached = min(agreed + 1, len(proposed.tokens), len(new))
        return State(state.tokens + new, remaining), Round(new, proposed.tokens, min(agreed, len(new)), reached)

    return Decoder(
        init=lambda prompt: initial_state(prompt, task), step=step, propose=lambda draws, state: race(draws, state)[1]
    )


ALGORITHM = Algorithm(
    name="gumbel-coupling",
    summary="d wins a race of q, y a race of p over the same noise; emit y, and continue while y = d",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2408.07978, Section 4 (Gumbel sampling)",
    reductions=(
        Reduction("sample-and-match", "q one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_draft),
        Reduction("speculative-sampling", "q = p", {"gamma": 2}, {"gamma": 2}, limit=perfect_draft),
    ),
)
