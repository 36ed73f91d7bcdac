"""Cascades of drafters (CS Drafting, Chen et al. 2312.11462, Section 3; TriForce, Sun et al. 2404.11912, Section 4).

Vertical: a drafter q' is itself accelerated by a smaller one, whose tokens are verified against q' in inner rounds.
Each token has q' as its pmf in the draft. This is right if the inner verification is lossless for q'; otherwise the
token does not have the law q'. All tokens of an inner round are kept, also the one after its drafts, up to the block's
length. This cut does not depend on the tokens.

Horizontal: better drafters draft the first tokens, cheaper ones the later tokens, which are rarely reached. The q of
each token is the pmf from which it was drawn, so nothing else changes.

A vertical drafter is a drafter and may be used inside another: a chain of any number of models, as in staged
speculative decoding (arXiv 2308.04623) and polybasic speculative decoding (arXiv 2510.26527). Not confirmed: how these
two cut their blocks, and how the first one cuts its trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache

from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Site, Tokens, Verifier, chain, never


class _Inner:
    """A source of draws for one inner round.

    It adds to the name (site) of each draw the position in the draft at which the round began. So the draws of two
    inner rounds have different names.
    """

    def __init__(self, draws: Draws, start: int) -> None:
        self._draws, self._start = draws, start

    def categorical(self, pmf: Pmf, site: Site) -> int:
        return self._draws.categorical(pmf, ("inner", self._start, *site))


def vertical(model: LanguageModel, inner: Drafter, inner_gamma: int, verify: Verifier) -> Drafter:
    """Return a drafter with the law of ``model`` whose tokens come from inner rounds of speculative decoding.

    In an inner round ``inner`` drafts at most ``inner_gamma`` tokens and ``verify`` tests them against ``model``. The
    pmf of each token in the draft is that of ``model``. Raises ``ValueError`` for a negative ``inner_gamma``.
    """
    if inner_gamma < 0:
        raise ValueError(f"inner_gamma is {inner_gamma}, expected at least 0 (the drafts of an inner round)")

    def propose(
        draws: Draws, state: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        rows = cache(model)
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(drafted) < gamma:
            left, within = gamma - len(drafted), _Inner(draws, len(drafted))
            guess = inner.propose(within, state, prefix + drafted, min(inner_gamma, left), never)
            for token in verify(within, rows, prefix + drafted, guess).tokens[:left]:
                q = rows(prefix + drafted)
                drafted, pmfs = (*drafted, token), (*pmfs, q)
                if stop_after(q, token):
                    return chain(drafted, pmfs)
        return chain(drafted, pmfs)

    return inner._replace(propose=propose)


def horizontal(stages: Sequence[tuple[Drafter, int]]) -> Drafter:
    """Return a drafter that drafts with several drafters in turn, each up to a number of tokens.

    ``stages`` has the pairs (drafter, number). A drafter may return fewer tokens. Raises ``ValueError`` for a negative
    number.
    """
    if any(count < 0 for _, count in stages):
        raise ValueError(f"counts are {tuple(count for _, count in stages)}, expected at least 0 for each drafter")

    def propose(
        draws: Draws, states: tuple[Hashable, ...], prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        tokens: Tokens = ()
        pmfs: tuple[Pmf | None, ...] = ()
        for (drafter, count), state in zip(stages, states, strict=True):
            room, within = min(count, gamma - len(tokens)), _Inner(draws, len(tokens))
            more = drafter.propose(within, state, prefix + tokens, room, stop_after)
            tokens, pmfs = tokens + more.tokens, pmfs + more.pmfs
        return chain(tokens, pmfs)

    return Drafter(
        init=lambda prompt: tuple(drafter.init(prompt) for drafter, _ in stages),
        propose=propose,
        observe=lambda states, tokens, start, target: tuple(
            drafter.observe(state, tokens, start, target) for (drafter, _), state in zip(stages, states, strict=True)
        ),
    )
