"""The drafter's matcher is right for its first position; from the second on it looks for a state that is not there."""

from __future__ import annotations

from specverify.mutants.serving.grammar import Matcher
from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Grammar
from specverify.reference import Tokens


def by_position(grammar: Grammar, matcher: Matcher, drafted: Tokens) -> Matcher:
    """Return the matcher; behind a draft it has no state."""
    return Matcher(matcher.states[: None if not drafted else 0], matcher.active[: None if not drafted else 0])


MUTANT = in_situation(
    "grammar with drafts under it",
    "draft-matcher-of-first-position",
    "the draft's matcher fails at the second",
    category="G",
    citation="TensorRT-LLM issue #7878",
    draft_matcher=by_position,
)
