"""Deterministic candidates at each position: draw z from the target, continue after it if it is a candidate.

Only draws from the target are emitted, so the rule is lossless for every tree, also for one with drawn tokens. At a
position with candidates S it accepts with probability p(S), the most that any lossless rule can with fixed S; neither
order nor duplicates matter. The draw that is no candidate must be emitted, and there is one draw per position, not one
per path. With a single path it is sample and match.

It is the right way to verify top-k lists (EAGLE-2, arXiv 2406.16858; Medusa, arXiv 2401.10774, without its typical
acceptance), retrieved continuations (REST, arXiv 2311.08252, its paper) and n-gram pools. Their tokens were not drawn
from q, so acceptance by p/q would be biased.
"""

from __future__ import annotations

from ..tree_rounds import Step, descend
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified


def candidate_set(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Emit draws from the target up to and including the first draw that is not a candidate.

    If a leaf is accepted, one more draw is emitted after it.
    """
    return descend(draws, target, prefix, draft, sample_and_look_up)


def sample_and_look_up(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Return a draw from p, accepted if it is one of ``tokens``, the candidates at this ``depth``; ignore ``pmfs``."""
    drawn = draws.categorical(p, ("target", depth))
    return Step(drawn, accepted=drawn in tokens)
