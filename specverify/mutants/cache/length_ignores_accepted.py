"""The length of the cache is advanced by what was fed, not by the drafts that were accepted as well."""

from __future__ import annotations

from specverify.mutants.serving.cache import fed_last
from specverify.mutants.serving.planted import in_situation


def one_a_round(known: int, accepted: int, written: int, batch: int) -> int:
    """Return the entries of the committed tokens before the round."""
    return known


MUTANT = in_situation(
    "one request",
    "length-ignores-accepted",
    "the length counts one token a round",
    category="H",
    citation="text-generation-inference commit b4ebfa52",
    killed_by="cache_equals_prefill",
    kept=one_a_round,
    fed_next=fed_last,
)
