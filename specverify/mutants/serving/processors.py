"""Processors of a model's row: the grammar's mask, penalties, bans, temperature and truncation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from specverify.mutants.serving.request import (
    ONE,
    ZERO,
    Aborted,
    ExactPmf,
    Grammar,
    Parameters,
    argmax,
    normalised,
    one_hot,
)
from specverify.reference import Tokens

# A matcher of a small regular language: advance, rollback, mask, a state beyond the end, a trigger to switch it o

DEAD = -2
"""State after a token that the grammar forbids; such a draft is never accepted."""


class Matcher(NamedTuple):
    """The states of the grammar before the first token and after each token of a text.

    ``active`` states at each of these places whether the grammar is switched on.
    """

    states: tuple[int, ...] = (0,)
    active: tuple[bool, ...] = (True,)


def started(grammar: Grammar | None) -> Matcher | None:
    """Return the matcher (the states of ``grammar``) of an empty text; None without a grammar."""
    return None if grammar is None else Matcher((0,), (grammar.trigger is None,))


def advance(grammar: Grammar, matcher: Matcher, token: int) -> Matcher:
    """Return ``matcher``, the states of ``grammar`` along a text, after one more token of the text, ``token``."""
    state, active = matcher.states[-1], matcher.active[-1]
    if active and not finished(grammar, matcher):
        state = next((after for before, label, after in grammar.edges if (before, label) == (state, token)), DEAD)
    return Matcher((*matcher.states, state), (*matcher.active, active or token == grammar.trigger))


def rollback(matcher: Matcher, count: int) -> Matcher:
    """Return ``matcher``, the states of the grammar along a text, without those after the last ``count`` tokens."""
    size = len(matcher.states) - count
    return Matcher(matcher.states[:size], matcher.active[:size])


def finished(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether the grammar has ended: the text is complete, or can no longer become complete.

    ``matcher`` is the state of the grammar after the text.
    """
    return matcher.active[-1] and matcher.states[-1] in {grammar.last, DEAD}


def mask(grammar: Grammar, matcher: Matcher) -> frozenset[int]:
    """Return the tokens that ``grammar`` allows next in the state ``matcher``. Raises ``Aborted`` if it has ended."""
    if finished(grammar, matcher):
        raise Aborted("a mask was asked of a matcher that has finished")
    return frozenset(label for before, label, _ in grammar.edges if before == matcher.states[-1])


def needs_mask(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether the grammar constrains the next token: it is switched on and has not ended.

    ``matcher`` has the states of the grammar along the text so far.
    """
    return matcher.active[-1] and not finished(grammar, matcher)


def forked(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher for the next row of the target: ``matcher`` advanced by the drafted token ``draft``.

    ``row``, the pmf of the present row, is not used.
    """
    return advance(grammar, matcher, draft)


def draft_matcher(grammar: Grammar, matcher: Matcher, drafted: Tokens) -> Matcher:
    """Return the grammar's matcher after the drafts ``drafted`` of this round, for the next row of the drafter."""
    for token in drafted:
        matcher = advance(grammar, matcher, token)
    return matcher


def committed(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return ``matcher``, the states of the grammar along the text, after the ``new`` tokens of a round.

    ``first`` states whether it was the first round of the request; it is not used here.
    """
    for token in new:
        matcher = advance(grammar, matcher, token)
    return matcher


# Sampling parameters on verify rows: each row as if the drafts before it were committed, and nothing behind them


def row_prefix(history: Tokens, drafts: Tokens, row: int) -> Tokens:
    """Return the tokens passed to the processors of a row: the history and the drafts before the row."""
    return history + drafts[:row]


def row_parameters(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the sampling parameters of row ``row`` of a request that has ``drafts`` + 1 rows.

    For every row these are ``parameters``, the parameters of the request.
    """
    return parameters


def occurrences(prefix: Tokens, row: int) -> Mapping[int, int]:
    """Return how often each token occurs in ``prefix``, the tokens before a row; ``row`` is not used here."""
    return Counter(prefix)


def blocked(words: tuple[Tokens, ...], prefix: Tokens, drafts: Tokens, row: int) -> frozenset[int]:
    """Return the tokens that would complete one of ``words`` as the next token after ``prefix``.

    ``prefix`` is the whole text before row ``row``, so it ends with ``drafts[:row]``.
    """
    return frozenset(word[-1] for word in words if prefix[len(prefix) - len(word) + 1 :] == word[:-1])


def new_before(new: int, row: int, rounds: int) -> int:
    """Return the number of new tokens before a row: ``new`` committed ones and one draft per earlier row of the round.

    ``rounds`` is the number of earlier rounds, for planted bugs that count it.
    """
    return new + row


def permitted(parameters: Parameters, size: int) -> frozenset[int]:
    """Return the tokens in ``parameters.allowed``, or all tokens of a vocabulary of ``size`` if it is empty."""
    return frozenset(parameters.allowed or range(size))


def truncated(row: ExactPmf, parameters: Parameters) -> ExactPmf:
    """Return ``row`` cut by top-k, top-p and min-p, each applied to the whole row, and renormalised.

    Of tied tokens those with lower ids are kept. min-p keeps tokens with at least ``min_p`` times the largest
    probability. ``parameters`` has the three numbers.
    """
    if (parameters.top_k, parameters.top_p, parameters.min_p) == (0, ONE, ZERO):
        return row
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    kept = set(ranked[: parameters.top_k or len(row)]) & set(nucleus(row, ranked, parameters.top_p))
    kept &= {token for token in ranked if row[token] >= parameters.min_p * max(row)}
    return normalised(tuple(mass if token in kept else ZERO for token, mass in enumerate(row))) or row


def nucleus(row: ExactPmf, ranked: list[int], share: Fraction) -> list[int]:
    """Return the shortest prefix of ``ranked`` whose total probability in ``row`` is at least ``share``.

    ``ranked`` has all tokens by decreasing probability.
    """
    total = ZERO
    for count, token in enumerate(ranked):
        total += row[token]
        if total >= share:
            return ranked[: count + 1]
    return ranked


def penalised(row: ExactPmf, parameters: Parameters, counts: Mapping[int, int]) -> ExactPmf:
    """Return the weights of the tokens: ``row`` after the logit bias and penalties of ``parameters``, not normalised.

    ``counts`` has how often each token occurred.
    """
    if not parameters.bias and parameters.repetition is ONE and parameters.frequency is ONE:
        return row
    masses = list(row)
    for token, factor in parameters.bias:
        masses[token] *= factor
    for token, count in counts.items():
        if 0 <= token < len(masses) and count > 0:
            masses[token] *= parameters.repetition * parameters.frequency**count
    return tuple(masses)


def warped(masses: ExactPmf, parameters: Parameters) -> ExactPmf | None:
    """Return the pmf of the weights ``masses`` at the temperature of ``parameters``; None if all weights are 0."""
    if not any(masses):
        return None
    if parameters.temperature == 0:
        return one_hot(argmax(masses), len(masses))
    return normalised(masses if parameters.temperature == 1 else tuple(mass**parameters.temperature for mass in masses))


def without(masses: ExactPmf, banned: frozenset[int]) -> ExactPmf:
    """Return the weights ``masses`` with those of the ``banned`` tokens set to 0."""
    return tuple(ZERO if token in banned else mass for token, mass in enumerate(masses)) if banned else masses
