"""The matcher is advanced by the first token of a round and not by the others that were accepted with it."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, committed
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Grammar
from specverify.reference import Tokens


def first_of_round(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher after the first new token."""
    return committed(grammar, matcher, new[:1], first)


MUTANT = in_situation(
    "grammar",
    "second-token-not-accepted",
    "later tokens of a round are not matched",
    category="G",
    citation="exllamav3 commit fd5b65b",
    committed=first_of_round,
)
