"""The verification rule of the NASD theory document: accept iff the draft is the target's argmax, else draw from p.

Not lossless: if the draft is the argmax, the output is deterministic. With p = (.4, .3, .3) and draft 0 the law is (1,
0, 0), at total variation 3/5 from p. Exact on one-hot targets. ``sample_and_match`` is the lossless alternative.
"""

from __future__ import annotations

from ..pmf import argmax
from ..types import Draft, Draws, LanguageModel, Tokens, Verified


def match_argmax_then_sample(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Accept drafts while they are the argmax of their row, then emit one draw from the next row."""
    accepted = 0
    while accepted < len(draft.tokens) and draft.tokens[accepted] == argmax(target(prefix + draft.tokens[:accepted])):
        accepted += 1
    kept = draft.tokens[:accepted]
    return Verified((*kept, draws.categorical(target(prefix + kept), ("target", accepted))), accepted)
