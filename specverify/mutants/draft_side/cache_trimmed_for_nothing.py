"""The drafter's cache is trimmed after a rejection though nothing had been written: a committed token is missing."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Leave out the token before the last committed one, from round 2 on."""
    n = len(known)
    return tokens if first or n < 3 else tokens[: n - 2] + tokens[n - 1 :]


MUTANT = planted(
    "speculative-sampling",
    "cache-trimmed-for-nothing",
    "drafts without a committed token",
    drafting_from(see),
    category="Q",
    citation="mlx-lm commit e6ae82d3 (branch)",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
