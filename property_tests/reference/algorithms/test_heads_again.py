"""Rows whose drafter remembers, or is made of heads, against plain loops: the law of every round, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from test_support.reference.plain_loops import (
    ROWS,
    algorithm_1,
    best,
    drafts_of,
    drawn,
    greedily,
    point,
    rounds_of,
    rounds_of_loop,
    tasks_of,
)

F = Fraction


def ahead(q, text, places):
    """The row of a head so many places ahead: q behind its own argmaxes."""
    for _ in range(places):
        text = (*text, best(q(text)))
    return list(q(text))


def heads(task, rows):
    """Speculative sampling of one token from each head; ``rows[i](text, drafts)`` is the i-th."""

    def one_round(draws, text, room, kept):
        tokens, declared = (), []
        for i, row in enumerate(rows[:room]):
            declared.append(list(row(text, tokens)))
            tokens = (*tokens, drawn(draws, declared[-1], "head", text, i))
        return *algorithm_1(draws, task.target, text, tokens, declared), kept

    return one_round


def blind(task, count):
    """Medusa: the state that predicted the last token, which no head sees."""
    return heads(task, [lambda text, _, i=i: ahead(task.draft, text[:-1] or text, 1 + i) for i in range(count)])


def seeing(task, count):
    """Hydra: a head sees the text and the drafts before its own."""
    return heads(task, [lambda text, drafts: task.draft(text + drafts)] * count)


def modules(task, count):
    """DeepSeek's modules, each with a model of its own: q that does not see the first i tokens."""

    def row(text, drafts, i):
        whole = text + drafts
        return task.draft(whole[i:] or whole[-1:])

    return heads(task, [lambda text, drafts, i=i: row(text, drafts, i) for i in range(count)])


def looking_ahead(task, count):
    """PaSS: the first token is the target's own, the others come from look-ahead tokens behind the text."""
    more = [lambda text, _, i=i: ahead(task.draft, text, 1 + i) for i in range(count)]
    return heads(task, [lambda text, drafts: task.target(text + drafts), *more])


def masks(task, count):
    """SPACE: the argmaxes of masks behind the last candidate, verified greedily."""

    def one_round(draws, text, room, kept):
        tokens = tuple(best(ahead(task.draft, text[:-1] or text, 1 + i)) for i in range(min(count, room)))
        return *greedily(task.target, text, tokens), kept

    return one_round


def sweeps(task, block):
    """Jacobi: every place of a block anew, then the places that did not change are final, and one more."""

    def one_round(draws, text, room, guess):
        guess = guess or text[-1:] * block
        new, n = greedily(task.target, text, guess[:-1][:room])
        swept = tuple(best(task.target(text + guess[:i])) for i in range(len(guess)))
        return new, n, swept[len(new) :]

    return one_round


def learning(task, count, eta, interval, order):
    """OSD: rejections go into a buffer, which moves the rows of their last tokens every so many rounds."""

    def one_round(draws, text, room, kept):
        table, buffer, rounds = kept or ({}, (), 0)

        def q(here):
            return table.get(here[-order:]) or list(task.draft(here))

        tokens, rows = drafts_of(draws, q, text, min(count, room))
        new, n = algorithm_1(draws, task.target, text, tokens, rows)
        if n < len(tokens):
            context = text + tokens[:n]
            buffer = (*buffer, (context, list(task.target(context))))
        if rounds + 1 < interval:
            return new, n, (table, buffer, rounds + 1)
        table = dict(table)
        for context, p in buffer:
            row = table.get(context[-order:]) or list(task.draft(context))
            table[context[-order:]] = [(1 - eta) * b + eta * a for a, b in zip(p, row, strict=True)]
        return new, n, (table, (), 0)

    return one_round


def gated(task, count, nll, most):
    """Blocks of which at most so many tokens are hard are committed as they are; the first other one is verified."""

    def one_round(draws, text, room, kept):
        alone = ()
        while True:
            here = text + alone
            tokens, rows = drafts_of(draws, task.draft, here, min(count, room - len(alone)))
            hard = sum(-math.log(row[token]) > nll for row, token in zip(rows, tokens, strict=True))
            if not tokens or F(hard, len(tokens)) > most:
                new, n = algorithm_1(draws, task.target, here, tokens, rows)
                return alone + new, len(alone) + n, kept
            alone += tokens

    return one_round


def copied(text, longest, count):
    for length in range(min(longest, len(text) - 1), 0, -1):
        places = [at for at in range(len(text) - length) if text[at : at + length] == text[-length:]]
        if places:
            return text[places[0] + length :][:count]
    return ()


def two_stages(task, large, small, inner, longest):
    """CS Drafting: lookups verified against q for the first tokens, lookups alone behind them."""
    size = len(task.target((0,)))

    def one_round(draws, text, room, kept):
        tokens, rows = (), []
        while len(tokens) < min(large, room):
            here, left = text + tokens, min(large, room) - len(tokens)
            guess = copied(here, longest, min(inner, left))
            new, _ = algorithm_1(draws, task.draft, here, guess, [point(token, size) for token in guess])
            for token in new[:left]:
                rows.append(list(task.draft(text + tokens)))
                tokens = (*tokens, token)
        more = copied(text + tokens, longest, min(small, room - len(tokens)))
        rows += [point(token, size) for token in more]
        return *algorithm_1(draws, task.target, text, tokens + more, rows), kept

    return one_round


AGAIN = {
    "medusa-heads": ({"gamma": 2}, lambda task: blind(task, 2)),
    "hydra-heads": ({"gamma": 2}, lambda task: seeing(task, 2)),
    "mtp": ({"gamma": 2}, lambda task: modules(task, 2)),
    "pass": ({"look_ahead": 1}, lambda task: looking_ahead(task, 1)),
    "space": ({"gamma": 2}, lambda task: masks(task, 2)),
    "jacobi": ({"block": 3}, lambda task: sweeps(task, 3)),
    "online-speculative-decoding": (
        {"eta": F(1, 3), "interval": 2, "order": 1, "gamma": 2},
        lambda task: learning(task, 2, F(1, 3), 2, 1),
    ),
    "edge-cloud-gated": (
        {"gamma": 2, "nll": 0.9, "entropy": None, "margin": None, "most": F(1, 2)},
        lambda task: gated(task, 2, 0.9, F(1, 2)),
    ),
    "cascade-drafting": (
        {"large": 1, "small": 1, "inner": 1, "max_ngram": 2},
        lambda task: two_stages(task, 1, 1, 1, 2),
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_every_round_is_that_of_the_loop(name):
    options, loop = AGAIN[name]
    prompt = (0, 1, 0) if name == "cascade-drafting" else (0,)
    for task in tasks_of(name):
        found = rounds_of(ROWS[name].build(task, **options), prompt)
        assert found == rounds_of_loop(task, loop(task), prompt=prompt)
