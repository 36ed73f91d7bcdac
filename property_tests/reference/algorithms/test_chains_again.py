"""Rows that draft a chain against plain loops, written from the papers' algorithms: the law of every round, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import pytest

from test_support.reference.plain_loops import (
    ROWS,
    TASKS,
    algorithm_1,
    best,
    coin,
    drafts_of,
    drawn,
    greedily,
    matched,
    rounds_of,
    rounds_of_loop,
    surplus,
    tasks_of,
)

F = Fraction


def entropy(row):
    return -math.fsum(float(mass) * math.log(mass) for mass in row if mass > 0)


def mixed(task, share):
    """Q' = share p + (1 - share) q, what stands for a model that is partly the target."""
    return lambda text: [share * a + (1 - share) * b for a, b in zip(task.target(text), task.draft(text), strict=True)]


def speculative(task, count, q=None, stop=lambda row, token: False):
    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, q or task.draft, text, min(count, room), stop)
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def unlikely(threshold):
    return lambda row, token: row[token] < threshold


def greedy(task, count):
    def one_round(draws, text, room, kept):
        tokens, _ = drafts_of(draws, task.draft, text, min(count, room))
        return *greedily(task.target, text, tokens), kept

    return one_round


def sampled_and_matched(task, count):
    def one_round(draws, text, room, kept):
        tokens, _ = drafts_of(draws, task.draft, text, min(count, room))
        return *matched(draws, task.target, text, tokens), kept

    return one_round


def argmaxes_matched(task, block):
    """DFlash: every place of a block is an argmax that saw no draw."""

    def one_round(draws, text, room, kept):
        tokens = ()
        while len(tokens) < min(block, room):
            tokens = (*tokens, best(task.draft(text + tokens)))
        return *matched(draws, task.target, text, tokens), kept

    return one_round


def dropping(task, threshold, count):
    """A draft that q finds unlikely is dropped like a rejected one; what follows is owed what was kept."""

    def one_round(draws, text, room, kept):
        new = ()
        for i in range(min(count, room)):
            p, q = list(task.target(text + new)), list(task.draft(text + new))
            offered = [mass if mass >= threshold else F(0) for mass in q]
            token = drawn(draws, q, "draft", len(text), i)
            chance = min(F(1), p[token] / q[token]) if offered[token] else 0
            if not coin(draws, chance, len(text), i):
                return (*new, drawn(draws, surplus(p, offered), "instead", len(text))), i, kept
            new = (*new, token)
        return (*new, drawn(draws, task.target(text + new), "bonus", len(text))), len(new), kept

    return one_round


def block(task, count):
    """Sun et al., Algorithm 2: p_i is carried on, every prefix has its coin, the last that comes up is kept."""

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        tau, carried, left = 0, F(1), None
        for i in range(len(tokens) + 1):
            if i:
                carried = min(
                    F(1), carried * task.target(text + tokens[: i - 1])[tokens[i - 1]] / rows[i - 1][tokens[i - 1]]
                )
            p = list(task.target(text + tokens[:i]))
            if i == len(tokens):
                h, after = carried, p
            else:
                above = sum(max(carried * a - b, F(0)) for a, b in zip(p, rows[i], strict=True))
                h = above / (above + 1 - carried) if above + 1 - carried else F(1)
                after = surplus([carried * a for a in p], rows[i])
            if i == 0 or coin(draws, h, len(text), i):
                tau, left = i, after
        return (*tokens[:tau], drawn(draws, left, "y", len(text))), tau, kept

    return one_round


def ratio_of_the_last(task, minimum, maximum):
    """K + 1 after a share of .8, k - 1 after one of .4."""

    def one_round(draws, text, room, k):
        tokens, rows = drafts_of(draws, task.draft, text, min(k, room))
        new, n = algorithm_1(draws, task.target, text, tokens, rows)
        if tokens and F(n, len(tokens)) >= F(4, 5):
            k = min(k + 1, maximum)
        elif tokens and F(n, len(tokens)) <= F(2, 5):
            k = max(k - 1, minimum)
        return new, n, k

    return one_round


def by_entropy(task, least, most, beta):
    """EGAG: a straight line from the most at no entropy to the least at ln V, smoothed, rounded half up."""

    def one_round(draws, text, room, smooth):
        row = task.draft(text)
        raw = least + (most - least) * (1 - entropy(row) / math.log(len(row)))
        smooth = raw if smooth is None else beta * smooth + (1 - beta) * raw
        count = min(max(math.floor(smooth + 0.5), least), most)
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        return *algorithm_1(draws, task.target, text, tokens, rows), smooth

    return one_round


def by_threshold(task, count, layers, skipped, start=(0.5, 0)):
    """Draft & Verify: the threshold rises below a rate of .9 and falls above it where the draft was cut."""

    def one_round(draws, text, room, kept):
        threshold, rate = kept
        q = mixed(task, F(layers - skipped, layers))
        tokens, rows = drafts_of(draws, q, text, min(count, room), unlikely(threshold))
        new, n = algorithm_1(draws, task.target, text, tokens, rows)
        if tokens:
            rate = 0.5 * rate + 0.5 * n / len(tokens)
            moved = threshold + 0.01 if rate < 0.9 else threshold - 0.01 if len(tokens) < count else threshold
            threshold = 0.9 * threshold + (1 - 0.9) * moved
        return new, n, (threshold, rate)

    return partial(rounds_of_loop, task, one_round, start)


def two_levels(task, count, inner, forget):
    """TriForce: the small model drafts for the middle one, rounds of that for the target."""

    def middle(text):
        return task.target(text[forget:] or text[-1:])

    def one_round(draws, text, room, kept):
        tokens, rows = (), []
        while len(tokens) < min(count, room):
            here = text + tokens
            guesses, of_small = drafts_of(draws, task.draft, here, min(inner, min(count, room) - len(tokens)))
            new, _ = algorithm_1(draws, middle, here, guesses, of_small)
            for token in new[: min(count, room) - len(tokens)]:
                rows.append(list(middle(text + tokens)))
                tokens = (*tokens, token)
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


AGAIN = {
    "autoregressive": [({}, lambda task: speculative(task, 0))],
    "speculative-sampling": [({"gamma": 2}, lambda task: speculative(task, 2))],
    "edge-cloud-sparse-q": [({"gamma": 2}, lambda task: speculative(task, 2))],
    "edge-cloud-two-phase": [({"gamma": 2}, lambda task: speculative(task, 2))],
    "greedy-speculation": [({"gamma": 2}, lambda task: greedy(task, 2))],
    "edge-cloud-greedy": [({"gamma": 2}, lambda task: greedy(task, 2))],
    "sample-and-match": [({"gamma": 2}, lambda task: sampled_and_matched(task, 2))],
    "edge-cloud-match": [({"gamma": 2}, lambda task: sampled_and_matched(task, 2))],
    "dflash": [({"block": 2}, lambda task: argmaxes_matched(task, 2))],
    "confidence-stopping": [
        ({"threshold": F(2, 5), "gamma": 3}, lambda task: speculative(task, 3, stop=unlikely(F(2, 5))))
    ],
    "gated-drafting": [
        (
            {"gamma": 3, "nll": 0.9, "entropy": 0.6, "margin": F(1, 10)},
            lambda task: speculative(
                task,
                3,
                stop=lambda row, token: (
                    -math.log(row[token]) > 0.9 or entropy(row) > 0.6 or max(row) - sorted(row)[-2] < F(1, 10)
                ),
            ),
        )
    ],
    "adaedl": [
        (
            {"threshold": 0.65, "scale": 0.2, "gamma": 3},
            lambda task: speculative(task, 3, stop=lambda row, _: 1 - math.sqrt(0.2 * entropy(row)) < 0.65),
        )
    ],
    "svip": [
        (
            {"threshold": 0.3, "scale": 0.15, "gamma": 3},
            lambda task: speculative(task, 3, stop=lambda row, _: math.sqrt(0.15 * entropy(row)) > 0.3),
        )
    ],
    "confidence-dropping": [({"threshold": F(2, 5), "gamma": 2}, lambda task: dropping(task, F(2, 5), 2))],
    "block-verification": [({"gamma": 2}, lambda task: block(task, 2)), ({"gamma": 3}, lambda task: block(task, 3))],
    "layerskip": [
        ({"gamma": 2, "exit_layer": 1, "layers": 3}, lambda task: speculative(task, 2, mixed(task, F(1, 3))))
    ],
    "distillspec": [
        ({"eta": F(1, 3), "steps": 2, "gamma": 2}, lambda task: speculative(task, 2, mixed(task, F(5, 9))))
    ],
    "triforce": [({"gamma": 2, "inner": 1, "forget": 1}, lambda task: two_levels(task, 2, 1, 1))],
    "dynamic-k": [
        ({"start": 1, "minimum": 0, "maximum": 2}, lambda task: (ratio_of_the_last(task, 0, 2), 1)),
    ],
    "egag": [
        ({"gamma_min": 0, "gamma_max": 3, "beta": 0.5}, lambda task: by_entropy(task, 0, 3, 0.5)),
    ],
}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", AGAIN)
def test_every_round_is_that_of_the_loop(name):
    for options, loop in AGAIN[name]:
        for task in tasks_of(name):
            found = loop(task)
            one_round, start = found if isinstance(found, tuple) else (found, None)
            assert rounds_of(ROWS[name].build(task, **options)) == rounds_of_loop(task, one_round, start), options


def test_the_threshold_of_draft_and_verify_moves_as_in_the_loop():
    for task in TASKS:
        for count in (2, 3):
            found = rounds_of(ROWS["draft-and-verify"].build(task, gamma=count, threshold=0.5, skipped=2, layers=4))
            assert found == by_threshold(task, count, 4, 2)()


@pytest.mark.parametrize("other", ["resample-from-target", "sample-and-match", "block-verification", "lenience"])
def test_a_row_with_another_rule_has_other_rounds(other):
    """The control: the loop of speculative sampling is no other row's."""
    laws = [(rounds_of(ROWS[other].build(task, gamma=2)), rounds_of_loop(task, speculative(task, 2))) for task in TASKS]
    assert any(found != stated for found, stated in laws)
