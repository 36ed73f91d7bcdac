"""REST's release with one draw a place for all its rows: lossless, and so not what is declared for it."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task, Tokens
from specverify.reference.drafters.retrieval import retrieval_drafter
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.candidate_set import candidate_set


def build(task: Task, datastore: tuple[Tokens, ...] = (), longest: int = 4, depth: int = 4, nodes: int = 16) -> Decoder:
    """Verify the rows as one tree."""
    return tree_decoder(task, retrieval_drafter(datastore, longest, depth, nodes), candidate_set)


MUTANT = planted(
    "rest-released",
    "released-rows-share-a-draw",
    "draws once for all rows",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_declared",
)
