"""The token behind the accepted path is drawn from the last row: -1, which pads paths, is an index too."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_tree
from specverify.reference import Draft, Draws, LanguageModel, Pmf, Tokens, Verified
from specverify.reference.drafters.tree import most_likely
from specverify.reference.trees import leaves, path_tokens
from specverify.reference.verifiers.candidate_set import candidate_set


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Candidate sets whose leaves all have the last leaf's row."""
    ends = [prefix + path_tokens(draft, leaf) for leaf in leaves(draft.parents)]

    def row(tokens: Tokens) -> Pmf:
        return target(ends[-1] if tokens in ends else tokens)

    return candidate_set(draws, row, prefix, draft)


MUTANT = planted(
    "candidate-set",
    "bonus-of-the-last-node",
    "draws the bonus from the last leaf's row",
    with_tree(verify, most_likely),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
