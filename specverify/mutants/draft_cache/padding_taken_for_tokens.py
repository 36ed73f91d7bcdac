"""The drafter is fed rows padded to two tokens, and neither slots nor lengths leave the padding out."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache, draft_write
from specverify.mutants.serving.planted import in_drafting
from specverify.reference import Tokens


def with_padding(cache: DraftCache, fed: Tokens) -> DraftCache:
    """Return the cache with an entry for the padding of a row of one token; the length is right."""
    after = draft_write(cache, fed)
    padding = draft_write(after, (0,)).entries[-1:] if len(fed) == 1 else ()
    return after._replace(entries=after.entries + padding)


MUTANT = in_drafting(
    "padding-taken-for-tokens",
    "the drafter's padding is not masked",
    citation="vLLM PR #26498 (issue #26191)",
    draft_write=with_padding,
)
