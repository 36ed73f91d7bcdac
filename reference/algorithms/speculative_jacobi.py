"""Speculative Jacobi decoding: the draws of the last sweep are the drafts of this sweep (Teng et al. 2410.01699).

The target is its own drafter. A sweep feeds the text and a window of drafts. Draft i was drawn one sweep earlier from
the row q_i, after the drafts that stood before it then. It is accepted with probability ``min(1, p_i(d_i)/q_i(d_i))``.
The first rejected draft is replaced by a draw from ``norm((p_i - q_i)+)``, and all later ones are drawn anew from this
sweep's rows: they are the next sweep's drafts. Positions that were not drawn yet are filled with uniform draws, which
the released code verifies as point masses (tyshiwo1/Accelerating-T2I-AR-with-SJD at b389cfb,
``scheduler/jacobi_iteration_lumina_mgpt.py``, ``SpeculativeSampler`` and ``get_multi_token_for_preparation``).

The law is p, for every p. When draft i is verified, its row q_i is a function of earlier draws, d_i is a fresh draw
from that row, and no decision since then depends on d_i. This is sufficient, whatever the drafts after a rejection were
conditioned on. A point mass on a token that was chosen independently of p is sufficient too.
"""

from __future__ import annotations

from ..coupling import accept_probability, flip, residual
from ..pmf import checked_model, one_hot, uniform
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Pmf, Reduction, Round, State, Task, Tokens

Window = tuple[tuple[int, Tokens | None], ...]
"""Pairs (draft token, text after which it was drawn); a text of None means that it was drawn uniformly."""


def build(task: Task, window: int = 16) -> Decoder:
    """Return the decoder with a window of ``window`` drafts in each sweep.

    Raises ``ValueError`` for a negative ``window``.
    """
    if window < 0:
        raise ValueError(f"window is {window}, expected a number of drafts >= 0")
    target = checked_model(task.target, "target")

    def drafted(draws: Draws, state: State) -> Window:
        assert isinstance(state.drafter, tuple)
        most = min(window, state.remaining - 1)
        kept: Window = state.drafter[:most]
        even = uniform(len(target(state.tokens)))
        fresh = [(draws.categorical(even, ("fill", place)), None) for place in range(len(kept), most)]
        return (*kept, *fresh)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafts = drafted(draws, state)
        tokens = tuple(token for token, _ in drafts)
        rows = [target(state.tokens + tokens[:i]) for i in range(len(tokens) + 1)]
        kept, last = len(tokens), rows[-1]
        for i, (token, after) in enumerate(drafts):
            q: Pmf = one_hot(token, rows[i]) if after is None else target(after)
            if not flip(draws, accept_probability(rows[i], q, token), ("accept", i)):
                kept, last = i, residual(rows[i], q)
                break
        block = (*tokens[:kept], draws.categorical(last, ("next",)))
        new, remaining = commit(block, state.remaining, task.eos)
        again = range(kept + 1, len(tokens)) if remaining else ()
        swept = tuple((draws.categorical(rows[i], ("sweep", i)), state.tokens + tokens[:i]) for i in again)
        reached = min(kept + 1, len(tokens), len(new))
        return State(state.tokens + new, remaining, swept), Round(new, tokens, min(kept, len(new)), reached)

    return Decoder(init=lambda prompt: initial_state(prompt, task)._replace(drafter=()), step=step)


ALGORITHM = Algorithm(
    name="speculative-jacobi",
    summary="drafts are draws of the last sweep, d ~ q_i; accepted with min(1, p_i/q_i), the others drawn again",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"window": 2},),
    paper="arXiv 2410.01699; code: tyshiwo1/Accelerating-T2I-AR-with-SJD b389cfb, scheduler/",
    systems=("speculative Jacobi decoding",),
    reductions=(Reduction("autoregressive", "a window of no tokens", {"window": 0}),),
)
