"""The last sampled token is in the base counts and again in the counts of the drafts, from the second row on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def twice(prefix: Tokens, row: int) -> Mapping[int, int]:
    """Return the counts with the last committed token once more behind a draft."""
    return Counter(prefix + (prefix[-1 - row : len(prefix) - row] if row else ()))


MUTANT = in_situation(
    "penalties",
    "last-token-penalised-twice",
    "the last token is counted twice",
    category="F",
    citation="vLLM PR #33251 (review)",
    occurrences=twice,
)
