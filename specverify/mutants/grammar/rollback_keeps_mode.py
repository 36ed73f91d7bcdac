"""The matcher is advanced through the drafts and rolled back, but a grammar that a draft switched on stays on."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher, rollback
from specverify.mutants.serving.planted import in_situation


def states_only(matcher: Matcher, count: int) -> Matcher:
    """Return the earlier matcher in the mode of the later one."""
    earlier = rollback(matcher, count)
    return earlier._replace(active=earlier.active[:-1] + matcher.active[-1:])


MUTANT = in_situation(
    "grammar after a trigger",
    "rollback-keeps-mode",
    "a rollback does not restore the mode",
    category="G",
    citation="vLLM PR #46272, issue #44006",
    rollback=states_only,
)
