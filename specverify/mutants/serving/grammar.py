"""A matcher of a small regular language: advance, rollback, mask, a state beyond the end, a trigger to switch it on."""

from __future__ import annotations

from typing import NamedTuple

from specverify.mutants.serving.request import Aborted, ExactPmf, Grammar
from specverify.reference import Tokens

DEAD = -2
"""The state after a token that the grammar forbids: such a draft is never accepted."""


class Matcher(NamedTuple):
    """Where a text stands in its grammar, and where it stood after each token before, so that it can go back."""

    states: tuple[int, ...] = (0,)
    active: tuple[bool, ...] = (True,)


def started(grammar: Grammar | None) -> Matcher | None:
    """Return the matcher of an empty text."""
    return None if grammar is None else Matcher((0,), (grammar.trigger is None,))


def advance(grammar: Grammar, matcher: Matcher, token: int) -> Matcher:
    """Return the matcher after one more token."""
    state, active = matcher.states[-1], matcher.active[-1]
    if active and not finished(grammar, matcher):
        state = next((after for before, label, after in grammar.edges if (before, label) == (state, token)), DEAD)
    return Matcher((*matcher.states, state), (*matcher.active, active or token == grammar.trigger))


def rollback(matcher: Matcher, count: int) -> Matcher:
    """Return the matcher as it was ``count`` tokens ago."""
    size = len(matcher.states) - count
    return Matcher(matcher.states[:size], matcher.active[:size])


def finished(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether nothing is prescribed any more: the text is complete, or can no longer become so."""
    return matcher.active[-1] and matcher.states[-1] in {grammar.last, DEAD}


def mask(grammar: Grammar, matcher: Matcher) -> frozenset[int]:
    """Return the tokens that may follow. Raises ``Aborted`` for a matcher that has finished: it has no answer."""
    if finished(grammar, matcher):
        raise Aborted("a mask was asked of a matcher that has finished")
    return frozenset(label for before, label, _ in grammar.edges if before == matcher.states[-1])


def needs_mask(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether there is a mask to ask for."""
    return matcher.active[-1] and not finished(grammar, matcher)


def forked(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher of the next verify row: advanced by the draft, whatever the ``row`` before it favours."""
    return advance(grammar, matcher, draft)


def draft_matcher(grammar: Grammar, matcher: Matcher, drafted: Tokens) -> Matcher:
    """Return the drafter's matcher after what it drafted so far."""
    for token in drafted:
        matcher = advance(grammar, matcher, token)
    return matcher


def committed(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher after the new tokens of a round; ``first`` if the round was the first."""
    for token in new:
        matcher = advance(grammar, matcher, token)
    return matcher
