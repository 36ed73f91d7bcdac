"""Rows that draft several candidates against plain loops that draw no candidate before it is needed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from test_support.reference.plain_loops import (
    ROWS,
    coin,
    drawn,
    norm,
    point,
    rounds_of,
    rounds_of_loop,
    small_tasks,
    surplus,
)

F = Fraction
LOW = (*small_tasks(("generic", "zeros"), horizon=3), *small_tasks(("generic", "peaked"), vocabulary=3, horizon=2))


def by_levels(task, depth, level):
    """Go down while ``level(draws, p, q, text)`` accepts a token of its own; what it returns last is emitted."""

    def one_round(draws, text, room, kept):
        new = ()
        for _ in range(min(depth, room)):
            here = text + new
            token, accepted = level(draws, list(task.target(here)), list(task.draft(here)), here, len(new))
            new = (*new, token)
            if not accepted:
                return new, len(new) - 1, kept
        return (*new, drawn(draws, task.target(text + new), "bonus", len(text))), len(new), kept

    return one_round


def without_replacement(branching, evenly=False):
    """RSD: siblings one after the other from q less those before, r = norm(max(r - q_k, 0)) after each rejection."""

    def level(draws, p, q, text, depth):
        owed, tried = p, set()
        for k in range(branching[depth]):
            left = [F(0) if token in tried else mass for token, mass in enumerate(q)]
            if not sum(left):
                if not evenly:
                    break
                left = [F(token not in tried) for token in range(len(q))]
                if not sum(left):
                    break
            row = norm(left)
            x = drawn(draws, row, "child", text, k)
            if coin(draws, owed[x] / row[x], text, k):
                return x, True
            owed, tried = surplus(owed, row), {*tried, x}
        return drawn(draws, owed, "instead", text), False

    return level


def top_behind_one(branching):
    """One x from q off its top K - 1 tokens is tried first, then those tokens, as point masses."""

    def level(draws, p, q, text, depth):
        order = sorted(range(len(q)), key=lambda token: (-q[token], token))
        top = [token for token in order[: branching[depth] - 1] if q[token]]
        others = [F(0) if token in top else mass for token, mass in enumerate(q)]
        owed = p
        if sum(others):
            row = norm(others)
            x = drawn(draws, row, "child", text)
            if coin(draws, owed[x] / row[x], text, "x"):
                return x, True
            owed = surplus(owed, row)
        for token in top:
            if coin(draws, owed[token], text, token):
                return token, True
            owed = surplus(owed, point(token, len(owed)))
        return drawn(draws, owed, "instead", text), False

    return level


def among_top(branching):
    """A draw of the target, accepted if it is one of q's most probable tokens."""

    def level(draws, p, q, text, depth):
        z = drawn(draws, p, "z", text)
        return z, z in sorted(range(len(q)), key=lambda token: (-q[token], token))[: branching[depth]]

    return level


def k_sequences(task, count, depth, bits):
    """SpecTr: K sequences of q; at each place those that agree so far are tried with min(1, p/(rho q))."""

    def one_round(draws, text, room, kept):
        deep = min(depth, room)
        words = [written(draws, task.draft, text, deep, k) for k in range(count)]
        new = ()
        for place in range(deep):
            p, q = list(task.target(text + new)), list(task.draft(text + new))
            alive = [word for word in words if word[:place] == new]
            rho = smallest(p, q, len(alive), bits)
            for k, word in enumerate(alive):
                if coin(draws, p[word[place]] / (rho * q[word[place]]), text, place, k):
                    new = (*new, word[place])
                    break
            else:
                beta = sum(min(a / rho, b) for a, b in zip(p, q, strict=True))
                share = (1 - (1 - beta) ** len(alive)) / beta if beta else F(0)
                left = norm([a - min(a / rho, b) * share for a, b in zip(p, q, strict=True)])
                return (*new, drawn(draws, left, "instead", text)), place, kept
        return (*new, drawn(draws, task.target(text + new), "bonus", text)), deep, kept

    return one_round


def written(draws, q, text, depth, k):
    word = ()
    while len(word) < depth:
        word = (*word, drawn(draws, q(text + word), "word", text, k, len(word)))
    return word


def smallest(p, q, count, bits):
    """rho* from above and within 2^-bits of it, by halving [1, K]."""
    low, high = F(1), F(count)
    if accepts_no_more(p, q, count, low):
        return low
    for _ in range(bits + count.bit_length()):
        middle = (low + high) / 2
        low, high = (low, middle) if accepts_no_more(p, q, count, middle) else (middle, high)
    return high


def accepts_no_more(p, q, count, rho):
    beta = sum(min(a / rho, b) for a, b in zip(p, q, strict=True))
    return 1 - (1 - beta) ** count <= rho * beta


def from_the_leaves(task, branching):
    """Take leaves away one by one: the first is accepted with its own chance, else its parent is owed less.

    ``chance`` of a node is min(1, chance of its parent times p/q), p and q being what its parent has left of them.
    """

    def one_round(draws, text, room, kept):
        p, q, chance, below = {(): list(task.target(text))}, {(): list(task.draft(text))}, {(): F(1)}, {}
        grown = [()]
        for depth, count in enumerate(branching[:room]):
            grown = [child for node in grown for child in siblings(draws, task, text, node, count, depth, p, q, below)]
        weigh((), p, q, chance, below)
        while True:
            node = ()
            while below.get(node):
                node = below[node][0]
            if node == () or coin(draws, chance[node], text, node, len(below)):
                new = tuple(token for token, _ in node)
                return (*new, drawn(draws, p[node], "next", text, node)), len(new), kept
            above, (token, _) = node[:-1], node[-1]
            below[above] = below[above][1:]
            a = chance[above]
            left = [max(a * x - y, F(0)) for x, y in zip(p[above], q[above], strict=True)]
            chance[above] = sum(left) / (sum(left) + 1 - a) if sum(left) + 1 - a else F(0)
            p[above] = norm(left) if sum(left) else p[above]
            others = [F(0) if other == token else mass for other, mass in enumerate(q[above])]
            q[above] = norm(others) if sum(others) else others
            weigh(above, p, q, chance, below)

    return one_round


def siblings(draws, task, text, node, count, depth, p, q, below):
    """Children of a node, without replacement, each with the rows behind it."""
    left, made = list(task.draft(text + tuple(token for token, _ in node))), []
    for k in range(count):
        if not sum(left):
            break
        token = drawn(draws, norm(left), "child", text, node, k)
        left[token] = F(0)
        child = (*node, (token, k))
        here = text + tuple(token for token, _ in child)
        p[child], q[child] = list(task.target(here)), list(task.draft(here))
        made.append(child)
    below[node] = made
    return made


def weigh(node, p, q, chance, below):
    """The chances of what hangs below a node, from its own."""
    for child in below.get(node, []):
        token = child[-1][0]
        chance[child] = min(F(1), chance[node] * p[node][token] / q[node][token])
        weigh(child, p, q, chance, below)


AGAIN = {
    "rsd": ({"branching": (2, 2)}, lambda task: by_levels(task, 2, without_replacement((2, 2)))),
    "sequoia": (
        {"acceptance": (0.6, 0.3), "size": 3, "depth": 1},
        lambda task: by_levels(task, 1, without_replacement((2,), evenly=True)),
    ),
    "greedy-multi-draft": ({"branching": (2, 2)}, lambda task: by_levels(task, 2, top_behind_one((2, 2)))),
    "candidate-set": ({"branching": (2, 1)}, lambda task: by_levels(task, 2, among_top((2, 1)))),
    "traversal-verification": ({"branching": (2, 1)}, lambda task: from_the_leaves(task, (2, 1))),
    "k-seq": ({"sequences": 2, "depth": 2, "bits": 4}, lambda task: k_sequences(task, 2, 2, 4)),
}


@pytest.mark.parametrize("name", AGAIN)
def test_every_round_is_that_of_the_loop(name):
    options, loop = AGAIN[name]
    for task in LOW:
        assert rounds_of(ROWS[name].build(task, **options)) == rounds_of_loop(task, loop(task))
