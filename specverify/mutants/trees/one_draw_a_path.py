"""Each path of a candidate tree is sampled and matched by draws of its own, and the longest match is kept."""

from __future__ import annotations

from reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from reference.drafters.tree import most_likely, tree_drafter
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import leaves, path_tokens, regular_tree
from specverify.mutants.mutant import planted


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Draw z ~ p for every path anew, keep the first path with most matches and its last draw."""
    best = Verified((), -1)
    for leaf in leaves(draft.parents) or (-1,):
        path, emitted = path_tokens(draft, leaf), ()  # type: Tokens, Tokens
        while emitted == path[: len(emitted)] and len(emitted) <= len(path):
            emitted = (*emitted, draws.categorical(target(prefix + emitted), ("target", leaf, len(emitted))))
        best = max(best, Verified(emitted, len(emitted) - 1), key=lambda found: found.accepted)
    return best


def build(task: Task, branching: tuple[int, ...] = (3, 2, 1)) -> Decoder:
    """Candidate sets with one draw per path."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), most_likely), verify)


MUTANT = planted(
    "candidate-set",
    "one-draw-a-path",
    "draws from p once for every path",
    build,
    category="J",
    citation="REST and Medusa nucleus modes, as released",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
