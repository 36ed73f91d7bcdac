"""GBV verifies the selected path as if it had been drawn from q: selection makes likely what p/q likes."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from specverify.reference.algorithms.greedy_multi_path import selection
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.block_verification import block_verification


def build(task: Task, paths: int = 3, depth: int = 8) -> Decoder:
    """Block verification of the selected path, with the rows that every path was drawn from."""
    model = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        path = selection(target, prefix, draft)
        rows = tuple(model(prefix + path.tokens[:place]) for place in range(len(path.tokens)))
        return block_verification(draws, target, prefix, path._replace(pmfs=rows))

    return tree_decoder(task, sequences_drafter((model,) * paths, depth), verify)


MUTANT = planted(
    "greedy-multi-path",
    "selected-path-declared-as-drawn",
    "verifies the selected path with q, not with the law of what is selected",
    build,
    category="B",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"paths": 2, "depth": 1},),
)
