"""A draft is scheduled behind a chunk of the prompt: a recurrent state takes it in for good."""

from __future__ import annotations

from specverify.mutants.serving.drafting import lookup
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.scheduler import chunk
from specverify.reference import Tokens


def with_draft(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the chunk and a guess behind it, if another chunk follows."""
    more = held + size < len(tokens) - 1
    return chunk(tokens, held, size, pending) + (lookup(tokens, tokens, 1) if more else ())


MUTANT = in_situation(
    "recurrent in chunks",
    "drafts-in-prefill-chunk",
    "a prompt's chunk holds a draft",
    category="I",
    citation="vLLM PR #30618",
    chunk=with_draft,
)
