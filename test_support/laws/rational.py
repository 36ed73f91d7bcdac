"""Helpers of several property tests: pmfs of fractions, models without context, laws of one token."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import settings

from reference import chain
from specverify.laws.enumeration import program_law
from test_support.shares import is_thorough


def pmf(*values):
    """Return a pmf as an object array of ``Fraction``; values are such as "1/5", ".2" or 1."""
    return np.array([Fraction(value) for value in values], dtype=object)


P, Q = pmf("1/5", "3/10", "1/2"), pmf("3/5", "3/10", "1/10")
"""The pair whose numbers are known: TV 2/5."""


def always(row):
    """Return the language model with the pmf ``row`` in every context."""
    return lambda tokens: row


def law_of(program):
    """Return the exact probability of each outcome of a program of draws."""
    law = program_law(program)
    assert law.missing == 0
    return dict(law.probabilities)


def flips(draws, chance, name):
    """Return whether a coin with the rational probability ``chance`` is heads."""
    return draws.categorical(np.array([chance, 1 - chance], dtype=object), name) == 0


def as_law(row):
    """Return the probability of each token of a pmf, without tokens of probability 0."""
    return {token: mass for token, mass in enumerate(row.tolist()) if mass > 0}


def vector(law, vocabulary):
    """Return the law of a token as a list over the vocabulary."""
    return [law.get(token, 0) for token in range(vocabulary)]


def first_token(verify, p, q):
    """Return a program that drafts one token from q, verifies it, and returns the first emitted token."""

    def program(draws):
        drafted = draws.categorical(q, ("draft", 0))
        return verify(draws, always(p), (), chain((drafted,), (q,))).tokens[0]

    return program


def distance(one, other):
    """Return the total variation of two laws, half of the sum of absolute differences."""
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one.keys() | other.keys()) / 2


def project(law, function):
    """Return the law of ``function(outcome)``, given the law of the outcome."""
    image = {}
    for outcome, mass in law.items():
        key = function(outcome)
        image[key] = image.get(key, 0) + mass
    return image


def examples(count):
    """Return Hypothesis settings for tests that enumerate: ``count`` examples, five times as many when thorough."""
    return settings(max_examples=5 * count if is_thorough() else count)
