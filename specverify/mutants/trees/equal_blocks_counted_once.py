"""SpecTr-GBV counts blocks that are equal once, where its chances are those of K draws."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.trees import leaves, merged, path_tokens
from specverify.reference.verifiers.joint_blocks import joint_blocks


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify the prefix tree of the blocks."""
    rows = {path_tokens(draft, node): pmf for node, pmf in enumerate(draft.pmfs)}
    tree = merged(path_tokens(draft, leaf) for leaf in leaves(draft.parents))
    nodes = Draft(*tree, (None,) * len(tree.tokens))
    pmfs = tuple(rows[path_tokens(nodes, node)] for node in range(len(tree.tokens)))
    return joint_blocks(draws, target, prefix, nodes._replace(pmfs=pmfs))


def build(task: Task, candidates: int = 4, gamma: int = 8) -> Decoder:
    """SpecTr-GBV of merged blocks."""
    return tree_decoder(task, sequences_drafter((draft_model(task),) * candidates, gamma), verify)


MUTANT = planted(
    "spectr-gbv-released",
    "equal-blocks-counted-once",
    "tries the distinct blocks with the chances of as many draws",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_declared",
    examples=({"candidates": 2, "gamma": 1},),
)
