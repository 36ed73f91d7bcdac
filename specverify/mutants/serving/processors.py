"""Sampling parameters on verify rows: each row as if the drafts before it were committed, and nothing behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from specverify.mutants.serving.request import ONE, ZERO, ExactPmf, Parameters, argmax, normalised, one_hot
from specverify.reference import Tokens


def row_prefix(history: Tokens, drafts: Tokens, row: int) -> Tokens:
    """Return the tokens that processors are shown at a row: the history and the drafts before the row."""
    return history + drafts[:row]


def row_parameters(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters of row ``row`` of ``drafts`` + 1: those of the request."""
    return parameters


def occurrences(prefix: Tokens, row: int) -> Mapping[int, int]:
    """Return how often each token occurred in the prefix of a row."""
    return Counter(prefix)


def blocked(words: tuple[Tokens, ...], prefix: Tokens, drafts: Tokens, row: int) -> frozenset[int]:
    """Return the tokens that would complete one of ``words`` behind ``prefix``, which ends with ``drafts[:row]``."""
    return frozenset(word[-1] for word in words if prefix[len(prefix) - len(word) + 1 :] == word[:-1])


def new_before(new: int, row: int, rounds: int) -> int:
    """Return how many new tokens stand before a row: ``new`` committed ones and a draft for each row before it."""
    return new + row


def permitted(parameters: Parameters, size: int) -> frozenset[int]:
    """Return the tokens that the parameters allow at all."""
    return frozenset(parameters.allowed or range(size))


def truncated(row: ExactPmf, parameters: Parameters) -> ExactPmf:
    """Return ``row`` cut by top-k, top-p and min-p, each decided on the whole row, and renormalised.

    top-p keeps the most probable tokens until their mass reaches it, ties going to lower ids; min-p keeps those of at
    least that share of the largest.
    """
    if (parameters.top_k, parameters.top_p, parameters.min_p) == (0, ONE, ZERO):
        return row
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    kept = set(ranked[: parameters.top_k or len(row)]) & set(nucleus(row, ranked, parameters.top_p))
    kept &= {token for token in ranked if row[token] >= parameters.min_p * max(row)}
    return normalised(tuple(mass if token in kept else ZERO for token, mass in enumerate(row))) or row


def nucleus(row: ExactPmf, ranked: list[int], share: Fraction) -> list[int]:
    """Return the shortest run of ``ranked`` tokens with at least ``share`` of the mass."""
    total = ZERO
    for count, token in enumerate(ranked):
        total += row[token]
        if total >= share:
            return ranked[: count + 1]
    return ranked


def penalised(row: ExactPmf, parameters: Parameters, counts: Mapping[int, int]) -> ExactPmf:
    """Return masses after bias and penalties, not normalised."""
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
    """Return masses raised to the temperature's power and normalised; None if nothing has mass."""
    if not any(masses):
        return None
    if parameters.temperature == 0:
        return one_hot(argmax(masses), len(masses))
    return normalised(masses if parameters.temperature == 1 else tuple(mass**parameters.temperature for mass in masses))


def without(masses: ExactPmf, banned: frozenset[int]) -> ExactPmf:
    """Return masses with some tokens impossible."""
    return tuple(ZERO if token in banned else mass for token, mass in enumerate(masses)) if banned else masses
