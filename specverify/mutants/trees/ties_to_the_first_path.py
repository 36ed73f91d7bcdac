"""GBV caps p/q at 1, takes the first drafted of equal paths, and declares an order in which the id decides."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, accept_probability, chain
from specverify.reference.algorithms.greedy_multi_path import selected_pmf
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.block_verification import block_verification


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Select one of several tokens."""
    if not draft.tokens:
        return block_verification(draws, target, prefix, draft)
    p, q = target(prefix), draft.pmfs[0]
    assert q is not None
    capped = [accept_probability(p, q, token) if q[token] > 0 else 0 for token in range(len(p))]
    chosen = max(draft.tokens, key=capped.__getitem__)
    order = sorted(range(len(p)), key=lambda token: (capped[token], token))
    declared = selected_pmf(q, order, 0, 1, len(draft.tokens))
    return block_verification(draws, target, prefix, chain((chosen,), (declared,)))


def build(task: Task, paths: int = 3, depth: int = 1) -> Decoder:
    """GBV of one level, whatever depth is asked for."""
    return tree_decoder(task, sequences_drafter((draft_model(task),) * paths, min(depth, 1)), verify)


MUTANT = planted(
    "greedy-multi-path",
    "ties-to-the-first-path",
    "selects the first of equal paths, ranks them by id",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"paths": 2, "depth": 1},),
)
