"""The evaluation of the newest token is queued once for each accepted token instead of once for the round."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, committed
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Grammar
from specverify.reference import Tokens


def last_repeated(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher after the last new token, as often as there are new tokens."""
    return committed(grammar, matcher, new[-1:] * len(new), first)


MUTANT = in_situation(
    "grammar",
    "last-token-matched-repeatedly",
    "the last token is matched once a token",
    category="G",
    citation="exllamav2 commit f4119ae",
    committed=last_repeated,
)
