"""The released shortcut of BiLD's rollback (2302.07863, published T5 code): look at the first unlikely draft only.

If the large argmax there equals the draft, no later position is looked at, and all drafts stay, even those that the
large model gives probability 0. With small tokens (a, b) and large argmaxes (a, c), b survives at any threshold at
which a is unlikely; so threshold "everything is unlikely" is no longer greedy decoding.
"""

from __future__ import annotations

from collections.abc import Callable

from reference.pmf import argmax
from reference.types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified, Verifier


def first_unlikely_only(is_unlikely: Callable[[Pmf, int], bool]) -> Verifier:
    """Return the verifier that replaces the first draft with ``is_unlikely(p, d)``, if another token is the argmax."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
        first = next((i for i, token in enumerate(draft.tokens) if is_unlikely(rows[i], token)), len(draft.tokens))
        if first < len(draft.tokens) and argmax(rows[first]) == draft.tokens[first]:
            first = len(draft.tokens)
        return Verified((*draft.tokens[:first], argmax(rows[first])), accepted=first)

    return verify
