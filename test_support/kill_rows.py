"""Rows of the kill matrix that several modules of tests read: each is computed once in a process."""

from __future__ import annotations

from functools import cache

from specverify.checks import CHECKS, Conditions
from specverify.trust.kills import MutantRow, mutant_row

EVERY = tuple(check.name for check in CHECKS)
FEW = ("residual-from-target", "always-reject", "only-last-token-stops")


@cache
def few_rows() -> tuple[MutantRow, ...]:
    """Return the rows of the planted bugs ``FEW``, under every check."""
    return tuple(mutant_row(name, EVERY, Conditions()) for name in FEW)
