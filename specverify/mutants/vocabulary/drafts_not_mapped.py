"""The drafter reads the target's ids as its own, its vocabulary having been compared with itself."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show every token as its neighbour."""
    return tuple((token + 1) % 2 if token < 2 else token for token in tokens)


MUTANT = planted(
    "speculative-sampling",
    "drafts-not-mapped",
    "drops the map of ids on the way in",
    drafting_from(see),
    category="N",
    citation="vllm-ascend PR #15863 (review)",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
