"""Drafts run past the end of the grammar, and a mask is asked of the matcher that has finished."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Grammar


def whenever_on(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether the grammar is on."""
    return matcher.active[-1]


MUTANT = in_situation(
    "grammar that ends",
    "mask-of-finished",
    "a finished matcher is asked for a mask",
    category="G",
    citation="SGLang issue #15050, PR #15373",
    needs_mask=whenever_on,
)
