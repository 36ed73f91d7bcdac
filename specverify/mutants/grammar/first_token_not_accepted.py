"""The speculative prefill path samples the first token and does not tell the matcher."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, committed
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Grammar
from specverify.reference import Tokens


def but_for_the_first(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher after every round but the first."""
    return matcher if first else committed(grammar, matcher, new, first)


MUTANT = in_situation(
    "grammar from the first token",
    "first-token-not-accepted",
    "the matcher never sees the first token",
    category="G",
    citation="LMDeploy commit aece784ee (during PR #4559)",
    committed=but_for_the_first,
)
