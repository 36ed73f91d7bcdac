"""The matchers of later rows are advanced with the most probable token of the row before, not with what was drafted."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, advance
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ExactPmf, Grammar, argmax


def by_argmax(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher after the token the row favours."""
    return advance(grammar, matcher, argmax(row))


MUTANT = in_situation(
    "grammar",
    "forks-follow-argmax",
    "forks follow the argmax, not the draft",
    category="G",
    citation="LMDeploy commit 616d56cfa (during PR #4559)",
    forked=by_argmax,
)
