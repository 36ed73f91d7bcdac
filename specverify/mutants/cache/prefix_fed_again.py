"""With the cache on, every pass is fed the whole text again: tokens stand there twice, at shifted positions."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def all_of_it(tokens: Tokens, held: int) -> Tokens:
    """Return the whole text."""
    return tokens


MUTANT = in_situation(
    "one request",
    "prefix-fed-again",
    "the whole prefix is fed on top of the cache",
    category="H",
    citation="romsto/Speculative-Decoding base_decoding.py, speculative_decoding.py, ngram_assisted.py at db7db67",
    killed_by="cache_equals_prefill",
    fed_next=all_of_it,
)
