"""Rounds written again as plain loops over lists of rationals, and the law of all rounds of a text, for comparison."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference import ALGORITHMS, Task
from specverify.laws.tables import table_pair
from test_support.laws.rational import law_of

ROWS = {algorithm.name: algorithm for algorithm in ALGORITHMS}
PROMPT = (0,)


def small_tasks(shapes, vocabulary=2, horizon=4):
    return [Task(*table_pair(shape, vocabulary, seed), horizon=horizon) for seed, shape in enumerate(shapes)]


TASKS = (*small_tasks(("generic", "zeros")), *small_tasks(("generic",), vocabulary=3, horizon=3))
SHORT = small_tasks(("generic", "zeros"), horizon=3)
"""For what draws at two levels, or writes every message down."""


def tasks_of(name):
    return SHORT if name.startswith(("edge-cloud", "triforce", "cascade")) else TASKS


def rounds_of(decoder, prompt=PROMPT):
    """Return the law of the rounds of a text: the tokens that each commits, and how many of them were drafts."""

    def program(draws):
        state, told = decoder.init(prompt), ()
        while state.remaining:
            state, done = decoder.step(draws, state)
            told = (*told, (done.tokens, done.accepted))
        return told

    return law_of(program)


def rounds_of_loop(task, one_round, start=None, prompt=PROMPT):
    """Return the law of the rounds of a plain loop: tokens that each commits, and how many of them were drafts.

    ``one_round(draws, text, room, kept)`` returns the new tokens, the number of accepted drafts, and what it passes on.
    """

    def program(draws):
        text, told, kept = prompt, (), start
        while (left := len(prompt) + task.horizon - len(text)) > 0:
            new, accepted, kept = one_round(draws, text, left - 1, kept)
            told, text = (*told, (tuple(new), accepted)), text + tuple(new)
        return told

    return law_of(program)


def drawn(draws, row, *site):
    return draws.categorical(np.array([Fraction(mass) for mass in row], dtype=object), site)


def coin(draws, chance, *site):
    chance = min(Fraction(1), Fraction(chance))
    return drawn(draws, [chance, 1 - chance], "coin", *site) == 0


def norm(masses):
    return [Fraction(mass) / sum(masses) for mass in masses]


def surplus(p, q):
    """Return norm(max(0, p - q)); p if that is zero, because then no rejection can occur."""
    left = [max(Fraction(a) - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    return norm(left) if sum(left) else list(p)


def best(row):
    """Return the first index of the largest entry."""
    row = list(row)
    return row.index(max(row))


def point(token, size):
    return [Fraction(other == token) for other in range(size)]


def drafts_of(draws, q, text, count, stop=lambda row, token: False):
    """Return ``count`` successive drafts from q and their rows of q.

    None follow a token for which ``stop`` returns True.
    """
    tokens, rows = (), []
    while len(tokens) < count:
        rows.append(list(q(text + tokens)))
        tokens = (*tokens, drawn(draws, rows[-1], "draft", len(text), len(tokens)))
        if stop(rows[-1], tokens[-1]):
            break
    return tokens, rows


def algorithm_1(draws, p, text, tokens, rows):
    """Return the tokens of Leviathan et al., Algorithm 1: all coins, n drafts before the first failure, then t ~ p'."""
    ahead = [list(p(text + tokens[:i])) for i in range(len(tokens) + 1)]
    failed = [
        i
        for i, token in enumerate(tokens)
        if not coin(draws, min(Fraction(1), ahead[i][token] / rows[i][token]), len(text), i)
    ]
    n = min(failed, default=len(tokens))
    adjusted = surplus(ahead[n], rows[n]) if n < len(tokens) else ahead[n]
    return (*tokens[:n], drawn(draws, adjusted, "t", len(text))), n


def matched(draws, p, text, tokens):
    """Return draws from p at successive positions, up to the first that differs from the draft."""
    new = ()
    for i in range(len(tokens) + 1):
        new = (*new, drawn(draws, p(text + tokens[:i]), "z", len(text), i))
        if i == len(tokens) or new[-1] != tokens[i]:
            return new, i
    raise AssertionError


def greedily(p, text, tokens):
    """Return argmaxes of p at successive positions, up to the first that differs from the draft."""
    new = ()
    for i in range(len(tokens) + 1):
        new = (*new, best(p(text + tokens[:i])))
        if i == len(tokens) or new[-1] != tokens[i]:
            return new, i
    raise AssertionError


def each_in_turn(draws, p, text, tokens, rows, keeps, replaced, bonus=list):
    """Return drafts kept with probability ``keeps(p, q, d, text)``; the first that is not kept is replaced."""
    for i, token in enumerate(tokens):
        row = list(p(text + tokens[:i]))
        if not coin(draws, keeps(row, rows[i], token, text + tokens[:i]), len(text), i):
            return (*tokens[:i], drawn(draws, replaced(row, rows[i], token), "instead", len(text))), i
    return (*tokens, drawn(draws, bonus(p(text + tokens)), "bonus", len(text))), len(tokens)
