"""Each path of a candidate tree is sampled and matched by draws of its own, and the longest match is kept."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_tree
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified
from specverify.reference.drafters.tree import most_likely
from specverify.reference.trees import leaves, path_tokens


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Draw z ~ p for every path anew, keep the first path with most matches and its last draw."""
    best = Verified((), -1)
    for leaf in leaves(draft.parents) or (-1,):
        path, emitted = path_tokens(draft, leaf), ()  # type: Tokens, Tokens
        while emitted == path[: len(emitted)] and len(emitted) <= len(path):
            emitted = (*emitted, draws.categorical(target(prefix + emitted), ("target", leaf, len(emitted))))
        best = max(best, Verified(emitted, len(emitted) - 1), key=lambda found: found.accepted)
    return best


MUTANT = planted(
    "candidate-set",
    "one-draw-a-path",
    "draws from p once for every path",
    with_tree(verify, most_likely),
    category="J",
    citation="REST and Medusa nucleus modes, as released",
    killed_by="law_is_target",
    examples=PAIR,
)
