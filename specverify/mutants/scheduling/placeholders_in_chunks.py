"""Drafts are scheduled for a request whose prompt is still being fed, and their placeholders are fed with it."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.scheduler import chunk
from specverify.mutants.serving.verification import PLACEHOLDER
from specverify.reference import Tokens


def with_placeholder(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the chunk and a placeholder behind it."""
    own = chunk(tokens, held, size, pending)
    return (*own, PLACEHOLDER) if own else own


MUTANT = in_situation(
    "chunks",
    "placeholders-in-chunks",
    "a chunk of the prompt holds placeholders",
    category="M",
    citation="vLLM issue #42490, PR #42519",
    chunk=with_placeholder,
)
