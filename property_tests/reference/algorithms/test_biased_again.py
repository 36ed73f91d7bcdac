"""Rows with a declared bias, and n-gram rows, against plain loops: the law of every round, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from test_support.reference.plain_loops import (
    ROWS,
    TASKS,
    algorithm_1,
    best,
    coin,
    drafts_of,
    drawn,
    each_in_turn,
    greedily,
    matched,
    norm,
    point,
    rounds_of,
    rounds_of_loop,
    surplus,
    tasks_of,
)

F = Fraction


def chain(task, count, keeps, replaced, bonus=list):
    """Drafts of q, each kept by a chance of its own."""

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        return *each_in_turn(draws, task.target, text, tokens, rows, keeps, replaced, bonus), kept

    return one_round


def ratio(p, q, token, text):
    return min(F(1), p[token] / q[token])


def without(p, q, token):
    """P less the scalar q(d), at d alone."""
    return norm([mass if other != token else max(mass - q[token], F(0)) for other, mass in enumerate(p)])


def the_argmax(p, *_):
    return point(best(p), len(p))


def of_mixed(task, count, pi_of):
    """Exact speculative sampling of a third pmf; the bonus is its own."""

    def pi(here):
        return pi_of(list(task.target(here)), list(task.draft(here)))

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        return *algorithm_1(draws, pi, text, tokens, rows), kept

    return one_round


def mixed_by(good):
    """Q on the tokens that are good enough, p for the mass of the others."""

    def pi(p, q):
        kept = [mass if good(p, q, token) else F(0) for token, mass in enumerate(q)]
        return [a + (1 - sum(kept)) * b for a, b in zip(kept, p, strict=True)]

    return pi


def distance(p, q):
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def clipped(clip):
    """Of all sets of tokens at the floor a p the one for which a in [0, 1] makes pi sum to 1 and agrees with itself."""

    def pi(p, q):
        for low in product((False, True), repeat=len(p)):
            below = sum(mass for mass, at_floor in zip(p, low, strict=True) if at_floor)
            others = sum(min(b, clip * a) for a, b, at_floor in zip(p, q, low, strict=True) if not at_floor)
            a = (1 - others) / below if below else F(0)
            made = [min(max(proposed, a * mass), clip * mass) for mass, proposed in zip(p, q, strict=True)]
            if 0 <= a <= 1 and sum(made) == 1:
                return made
        raise AssertionError

    return pi


def typical(p, token, epsilon, delta, at=False):
    bound = delta * math.exp(math.fsum(float(mass) * math.log(mass) for mass in p if mass > 0))
    threshold = min(F(str(epsilon)), F(bound))
    return F(p[token] > threshold or (at and p[token] == threshold))


def of_typical(task, count, epsilon, delta):
    """Medusa's other mode: a draft stays while a draw from the typical part of p is the draft; then another draw."""

    def part(p):
        p = list(p)
        return norm([mass if typical(p, token, epsilon, delta, at=True) else F(0) for token, mass in enumerate(p)])

    def one_round(draws, text, room, kept):
        tokens, _ = drafts_of(draws, task.draft, text, min(count, room))
        n = 0
        while n < len(tokens) and drawn(draws, part(task.target(text + tokens[:n])), "z", text, n) == tokens[n]:
            n += 1
        return (*tokens[:n], drawn(draws, part(task.target(text + tokens[:n])), "then", text)), n, kept

    return one_round


def of_argmaxes(task, count, passes, unsure=0):
    """SpecDec and BiLD: greedy drafts, none where q is unsure; the first that does not pass is the target's argmax."""

    def one_round(draws, text, room, kept):
        tokens = ()
        while len(tokens) < min(count, room) and max(task.draft(text + tokens)) >= unsure:
            tokens = (*tokens, best(task.draft(text + tokens)))
        for i, token in enumerate(tokens):
            p = list(task.target(text + tokens[:i]))
            if not passes(p, token):
                return (*tokens[:i], best(p)), i, kept
        return (*tokens, best(task.target(text + tokens))), len(tokens), kept

    return one_round


def in_top(p, token, beta, tau):
    order = sorted(range(len(p)), key=lambda other: (-p[other], other))
    return token in order[:beta] and p[token] > 0 and math.log(max(p) / p[token]) <= tau


def silent(task, count, late):
    """A round with drafts is lost with probability ``late``; then its first draft stands as it is."""

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        if tokens and coin(draws, late, len(text), "late"):
            return tokens[:1], 1, kept
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def counted(task, order, count, judge, newest=False):
    def one_round(draws, text, room, kept):
        tokens = ()
        while len(tokens) < min(count, room):
            guess = learned(text, tokens, order, newest)
            if guess is None:
                break
            tokens = (*tokens, guess)
        return *judge(draws, task.target, text, tokens), kept

    return one_round


def learned(text, tokens, order, newest):
    """The guess behind text and drafts; what is counted is the text."""
    ahead = text + tokens
    for length in range(min(order - 1, len(ahead)), 0, -1):
        context, counts, first = ahead[len(ahead) - length :], {}, None
        for place in range(length, len(text)):
            if text[place - length : place] == context:
                token = text[place]
                counts[token] = counts.get(token, 0) + 1
                first = token if first is None or counts[token] > counts[first] else first
        if counts:
            return max(reversed(counts), key=counts.get) if newest else first
    return None


def looked_up(task, longest, count):
    """Copy what followed the leftmost earlier place of the longest suffix that has one."""

    def one_round(draws, text, room, kept):
        tokens = ()
        for length in range(min(longest, len(text) - 1), 0, -1):
            places = [at for at in range(len(text) - length) if text[at : at + length] == text[-length:]]
            if places:
                tokens = text[places[0] + length :][: min(count, room)]
                break
        return *matched(draws, task.target, text, tokens), kept

    return one_round


def argmax_then_sample(draws, p, text, tokens):
    """The theory document: a guess that is the argmax stays, for any other p is drawn from."""
    i = 0
    while i < len(tokens) and best(p(text + tokens[:i])) == tokens[i]:
        i += 1
    return (*tokens[:i], drawn(draws, p(text + tokens[:i]), "z", len(text))), i


def greedy_of(draws, p, text, tokens):
    return greedily(p, text, tokens)


LENIENT, ALPHA, JUDGED = F(4, 5), F(1, 4), ((0, 1), (1, 1), (2, 0))
AGAIN = {
    "lenience": (
        {"lenience": LENIENT, "gamma": 2},
        lambda task: chain(
            task, 2, lambda p, q, d, _: min(F(1), p[d] / (LENIENT * q[d])), lambda p, q, d: surplus(p, q)
        ),
    ),
    "resample-from-target": ({"gamma": 2}, lambda task: chain(task, 2, ratio, lambda p, q, d: p)),
    "edge-cloud-shortcut": ({"gamma": 2}, lambda task: chain(task, 2, ratio, lambda p, q, d: p)),
    "clamped-scalar-residual": ({"gamma": 2}, lambda task: chain(task, 2, ratio, without)),
    "edge-cloud-scalar-q": ({"gamma": 2}, lambda task: chain(task, 2, ratio, without)),
    "accept-if-likelier": (
        {"gamma": 2},
        lambda task: chain(task, 2, lambda p, q, d, _: F(p[d] >= q[d]), lambda p, q, d: p),
    ),
    "edge-cloud-guide-code": (
        {"gamma": 2},
        lambda task: chain(task, 2, lambda p, q, d, _: F(p[d] >= q[d]), lambda p, q, d: p),
    ),
    "judge-decoding": (
        {"gamma": 2, "correct": JUDGED},
        lambda task: chain(
            task,
            2,
            lambda p, q, d, text: F(1) if (text[-1], d) in JUDGED else ratio(p, q, d, text),
            lambda p, q, d: surplus(p, q),
        ),
    ),
    "typical-acceptance": (
        {"epsilon": 0.4, "delta": 0.8, "gamma": 2},
        lambda task: chain(task, 2, lambda p, q, d, _: typical(p, d, 0.4, 0.8), the_argmax, the_argmax),
    ),
    "typical-sampling-released": (
        {"epsilon": 0.4, "delta": 0.8, "gamma": 2},
        lambda task: of_typical(task, 2, 0.4, 0.8),
    ),
    "token-cascade": (
        {"alpha": ALPHA, "gamma": 2},
        lambda task: of_mixed(task, 2, mixed_by(lambda p, q, v: p[v] >= (1 - ALPHA) * max(p))),
    ),
    "speculative-cascade": (
        {"rule": "opt", "alpha": ALPHA, "gamma": 2},
        lambda task: of_mixed(task, 2, lambda p, q: q if max(q) >= max(p) - ALPHA * distance(p, q) else p),
    ),
    "mentored-decoding": ({"clip": F(3, 2), "gamma": 2}, lambda task: of_mixed(task, 2, clipped(F(3, 2)))),
    "specdec": (
        {"beta": 2, "tau": 0.7, "gamma": 2},
        lambda task: of_argmaxes(task, 2, lambda p, token: in_top(p, token, 2, 0.7)),
    ),
    "bild": (
        {"fallback": F(1, 2), "rollback": 1.0, "gamma": 2},
        lambda task: of_argmaxes(
            task, 2, lambda p, token: p[token] >= math.exp(-1) or token == best(p), unsure=F(1, 2)
        ),
    ),
    "edge-cloud-timeout": ({"late": F(1, 4), "gamma": 2}, lambda task: silent(task, 2, F(1, 4))),
    "nasd": ({"order": 3, "gamma": 2}, lambda task: counted(task, 3, 2, matched)),
    "nasd-seed-rule": ({"order": 3, "gamma": 2}, lambda task: counted(task, 3, 2, argmax_then_sample)),
    "napd": ({"order": 3, "gamma": 2}, lambda task: counted(task, 3, 2, greedy_of, newest=True)),
    "prompt-lookup": ({"max_ngram": 2, "gamma": 2}, lambda task: looked_up(task, 2, 2)),
}
CASCADES = {
    "chow": lambda p, q: q if max(q) >= 1 - ALPHA else p,
    "diff": lambda p, q: q if max(q) >= max(p) - ALPHA else p,
    "token-v1": mixed_by(lambda p, q, v: q[v] >= max(p) - ALPHA),
    "token-v2": mixed_by(lambda p, q, v: p[v] >= max(p) - ALPHA),
}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", AGAIN)
def test_every_round_is_that_of_the_loop(name):
    options, loop = AGAIN[name]
    prompt = (0, 1, 0) if name in {"nasd", "nasd-seed-rule", "napd", "prompt-lookup"} else (0,)
    for task in tasks_of(name):
        found = rounds_of(ROWS[name].build(task, **options), prompt)
        assert found == rounds_of_loop(task, loop(task), prompt=prompt)


@pytest.mark.parametrize("rule", CASCADES)
def test_every_cascade_has_its_mixed_pmf(rule):
    for task in TASKS:
        found = rounds_of(ROWS["speculative-cascade"].build(task, rule=rule, alpha=ALPHA, gamma=1))
        assert found == rounds_of_loop(task, of_mixed(task, 1, CASCADES[rule]))
