"""The grammar is switched on between rounds: if its trigger is drafted, the rows behind it are not constrained."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, advance
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ExactPmf, Grammar


def in_old_mode(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher of the next row in the mode of this one."""
    after = advance(grammar, matcher, draft)
    return after._replace(active=after.active[:-1] + matcher.active[-1:])


MUTANT = in_situation(
    "grammar after a trigger",
    "switched-on-between-rounds",
    "a trigger inside drafts is not seen",
    category="G",
    citation="vLLM PR #36138; issues #31858, #34650",
    forked=in_old_mode,
)
