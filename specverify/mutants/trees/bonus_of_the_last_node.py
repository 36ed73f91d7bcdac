"""The token behind the accepted path is drawn from the last row: -1, which pads paths, is an index too."""

from __future__ import annotations

from reference import Decoder, Draft, Draws, LanguageModel, Pmf, Task, Tokens, Verified
from reference.drafters.tree import most_likely, tree_drafter
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import leaves, path_tokens, regular_tree
from reference.verifiers.candidate_set import candidate_set
from specverify.mutants.mutant import planted


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Candidate sets whose leaves all have the last leaf's row."""
    ends = [prefix + path_tokens(draft, leaf) for leaf in leaves(draft.parents)]

    def row(tokens: Tokens) -> Pmf:
        return target(ends[-1] if tokens in ends else tokens)

    return candidate_set(draws, row, prefix, draft)


def build(task: Task, branching: tuple[int, ...] = (3, 2, 1)) -> Decoder:
    """A candidate tree with the wrong bonus row."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), most_likely), verify)


MUTANT = planted(
    "candidate-set",
    "bonus-of-the-last-node",
    "draws the bonus from the last leaf's row",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
