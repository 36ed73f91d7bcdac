"""An unbiased watermark with speculation: random keys reweight p and q, and average out (Hu and Huang 2410.20418).

A watermark draws each token from a pmf that is reweighted by a key; the keys allow to detect the text. The average of
the reweighted pmf over the keys is the pmf itself. Here there are two keys (the gamma reweighting of 2310.10669): they
order the tokens up or down, and the second half of the mass is doubled, the first half removed.

* ``strength``: drafts are drawn from the reweighted q and verified against p reweighted by the same key. Given the
  keys the text has the law of the watermarked target; fewer drafts are accepted.
* ``efficiency``: drafts are drawn from the reweighted q and accepted with ``min(1, p/q)``, as without a watermark; the
  replacement of a draft, and the token after the last draft, are drawn by separate keys. Drafts are accepted as often
  as without a watermark, but given the keys the law is not that of the watermarked target.

Averaged over keys both have the law p. No scheme has both properties (the no-go theorem of the paper); 2602.01428
derives the acceptance from the key as well. Every drawn token has a fresh key. In a scheme whose key is a function of
the position, a position that is drawn again after a rejection would have its old key; this is not covered.
"""

from __future__ import annotations

from ..coupling import accept_probability, excess_law, flip
from ..lengths.constant import check_gamma
from ..models import draft_model
from ..pmf import checked_model, uniform
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Pmf, Round, Site, State, Task, Tokens, chain

KEYS = 2
"""Number of watermark keys: key 0 orders the tokens ascending, key 1 descending."""
MODES = ("strength", "efficiency")


def reweighted(pmf: Pmf, key: int) -> Pmf:
    """Return the pmf with the second half of its mass doubled and the first half removed.

    The halves follow the token order of ``key``: increasing for key 0, decreasing for key 1.
    """
    size, changed = len(pmf), pmf * 0
    total = pmf.sum() * 0
    for token in range(size) if key == 0 else range(size - 1, -1, -1):
        before, total = total, total + pmf[token]
        changed[token] = max(2 * total - 1, 0) - max(2 * before - 1, 0)
    return changed / changed.sum()


def drawn_by_key(draws: Draws, pmf: Pmf, site: Site) -> int:
    """Return a token drawn at ``site`` from ``pmf`` reweighted by a key, which is drawn for this token alone."""
    key = draws.categorical(uniform(KEYS, pmf), ("key", *site))
    return draws.categorical(reweighted(pmf, key), site)


def build(task: Task, keep: str = "strength", gamma: int = 4) -> Decoder:
    """Return the decoder that draws ``gamma`` drafts from q, each reweighted by a random key.

    ``keep`` is the property that is kept: with "strength" the text has the watermark of the target alone, with
    "efficiency" as many drafts are accepted as without a watermark.
    """
    check_gamma(gamma, "gamma")
    if keep not in MODES:
        raise ValueError(f"keep is {keep!r}, expected one of {', '.join(MODES)}")
    target, model = checked_model(task.target, "target"), draft_model(task)

    def drafted(draws: Draws, state: State) -> tuple[Draft, Tokens]:
        tokens: Tokens = ()
        keys: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(tokens) < min(gamma, state.remaining - 1):
            q = model(state.tokens + tokens)
            keys = (*keys, draws.categorical(uniform(KEYS, q), ("key", "draft", len(tokens))))
            seen = reweighted(q, keys[-1])
            pmfs = (*pmfs, seen if keep == "strength" else q)
            tokens = (*tokens, draws.categorical(seen, ("draft", len(tokens))))
        return chain(tokens, pmfs), keys

    def verify(draws: Draws, prefix: Tokens, draft: Draft, keys: Tokens) -> tuple[Tokens, int]:
        for i, (token, q) in enumerate(zip(draft.tokens, draft.pmfs, strict=True)):
            p = target(prefix + draft.tokens[:i])
            judged = reweighted(p, keys[i]) if keep == "strength" else p
            if not flip(draws, accept_probability(judged, q, token), ("accept", i)):
                left, site = excess_law(judged, q), ("residual", i)
                again = draws.categorical(left, site) if keep == "strength" else drawn_by_key(draws, left, site)
                return (*draft.tokens[:i], again), i
        return (*draft.tokens, drawn_by_key(draws, target(prefix + draft.tokens), ("bonus",))), len(draft.tokens)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        draft, keys = drafted(draws, state)
        result, accepted = verify(draws, state.tokens, draft, keys)
        new, remaining = commit(result, state.remaining, task.eos)
        reached = min(accepted + 1, len(draft.tokens), len(new))
        return State(state.tokens + new, remaining), Round(new, draft.tokens, min(accepted, len(new)), reached)

    return Decoder(lambda prompt: initial_state(prompt, task), step, lambda draws, state: drafted(draws, state)[0])


ALGORITHM = Algorithm(
    name="watermarked",
    summary="d ~ q reweighted by a key; accepted against p reweighted by the key, or with min(1, p/q); p on "
    "average over keys",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"keep": "strength", "gamma": 2}, {"keep": "efficiency", "gamma": 1}),
    paper="arXiv 2410.20418; arXiv 2602.01428; the reweighting: arXiv 2310.10669",
    systems=("watermarked speculative sampling",),
    needs_training="how well the watermark is detected",
)
