"""SJD-PAC: speculative Jacobi decoding that continues to verify after a rejection (Kang et al. 2603.18599).

A sweep of ``speculative-jacobi`` verifies drafts up to the first rejected one, and draws all later positions anew. Here
a sweep verifies every position of the window (adaptive continuation). The draft at position i is kept with ``min(1,
p_i/q_i)`` or replaced by a draw from ``norm((p_i - q_i)+)``, where p_i is this sweep's row given the old drafts before
position i. The text is committed up to the first replaced position, as in ``speculative-jacobi``. The tokens after it,
kept or replaced, are the drafts of the next sweep, and p_i becomes their q. Since drafts are kept, more of them agree
with the next sweep.

A rule that commits a token after a rejection cannot be lossless; this rule commits none. Why the law is p: position i
of a sweep depends on its own draft, its acceptance, and the positions before it, never on later positions. Suppose that
all sweeps of the positions before i are given. Then the draft at i has the law q_i when a sweep begins, and by
speculative sampling the law p_i when it ends. Whether the sweep reached position i depends only on the positions before
it.

The rule is that of Algorithm 1 of the paper and of the release (KangJialiang/SJD-PAC at 4fbc099,
``scheduler/sjd_pac_iteration_lumina_mgpt.py``, ``SJDPACSpeculativeSampler``). Positions without a draft are filled with
uniform draws, whose q is uniform. The token after a window of accepted drafts is drawn from p. Not covered: proactive
drafting, which puts a tree of siblings at the first positions after a rejection.
"""

from __future__ import annotations

from ..coupling import accept_probability, flip, residual
from ..pmf import checked_model, uniform
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draws, Pmf, Reduction, Round, State, Task, Tokens

Window = tuple[tuple[int, Tokens | None], ...]
"""Pairs (draft token, text whose row of p is the draft's declared pmf); a text of None means the uniform pmf."""


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

    def judged(draws: Draws, place: int, p: Pmf, draft: tuple[int, Tokens | None]) -> tuple[int, bool]:
        """Return the token at ``place``, an index in the window, after its verification by the target's row ``p``.

        The second result is True if the drafted token was kept. ``draft`` is a pair: the drafted token, and the text
        after which it was drawn (None for a uniform draw).
        """
        token, after = draft
        q: Pmf = uniform(len(p), like=p) if after is None else target(after)
        if flip(draws, accept_probability(p, q, token), ("accept", place)):
            return token, True
        return draws.categorical(residual(p, q), ("residual", place)), False

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafts = drafted(draws, state)
        tokens = tuple(token for token, _ in drafts)
        texts = [state.tokens + tokens[:i] for i in range(len(tokens) + 1)]
        first, swept = len(tokens), list[tuple[int, Tokens]]()
        for i, draft in enumerate(drafts):
            token, stayed = judged(draws, i, target(texts[i]), draft)
            swept.append((token, texts[i]))
            first = first if stayed else min(first, i)
        last = swept[first][0] if first < len(tokens) else draws.categorical(target(texts[-1]), ("bonus",))
        new, remaining = commit((*tokens[:first], last), state.remaining, task.eos)
        reached = min(first + 1, len(tokens), len(new))
        behind = tuple(swept[first + 1 :]) if remaining else ()
        return State(state.tokens + new, remaining, behind), Round(new, tokens, min(first, len(new)), reached)

    return Decoder(init=lambda prompt: initial_state(prompt, task)._replace(drafter=()), step=step)


ALGORITHM = Algorithm(
    name="sjd-pac",
    summary="speculative Jacobi that verifies every position: d_i with min(1, p_i/q_i), else from norm((p_i - q_i)+)",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"window": 2},),
    paper="arXiv 2603.18599, Algorithm 1; code: KangJialiang/SJD-PAC 4fbc099, scheduler/",
    systems=("SJD-PAC",),
    reductions=(Reduction("autoregressive", "a window of no tokens", {"window": 0}),),
)
