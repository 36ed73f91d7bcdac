"""Sample and match: draw from the target at every row and continue while the draw equals the draft.

The draft never influences the emitted tokens, so the rule is lossless for every drafter and needs no q. A draft d is
accepted with probability p(d), which is optimal for a deterministic drafter. Assisted generation without draft logits
uses it, and prompt lookup. The draw that differs from the draft must be emitted: drawing again would give d the
probability 2 p(d) - p(d)^2.
"""

from __future__ import annotations

from ..types import Draft, Draws, LanguageModel, Tokens, Verified


def sample_and_match(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Emit draws from the target up to and including the first that differs from its draft.

    If all drafts match, one more draw is emitted.
    """
    emitted: Tokens = ()
    for i, token in enumerate(draft.tokens):
        drawn = draws.categorical(target(prefix + emitted), ("target", i))
        emitted = (*emitted, drawn)
        if drawn != token:
            return Verified(emitted, accepted=i)
    bonus = draws.categorical(target(prefix + emitted), ("target", len(emitted)))
    return Verified((*emitted, bonus), accepted=len(emitted))
