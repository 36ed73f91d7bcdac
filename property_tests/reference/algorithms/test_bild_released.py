"""BiLD as released, against its loop stated again: turns, caches and rollbacks as the published code keeps them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from reference import Task, argmax, greedy_law
from reference.algorithms import bild, bild_released
from specverify.laws.enumeration import decoder_law
from specverify.laws.tables import table_pair
from test_support.laws.rational import always, pmf


def released_loop(task, prompt, fallback, rollback, gamma):
    """The loop of the release: whose turn it is, how many iterations are left of it, what the large cache holds."""
    text, turn, left = list(prompt), "large", 1
    cached = len(prompt) - 1
    finish = len(prompt) + task.horizon
    while True:
        model = task.target if turn == "large" else task.draft
        scores = model(tuple(text))
        if turn == "small" and scores.max() < fallback:
            turn, left = "large", 1
            continue
        fed, start = text[cached:], cached
        text.append(argmax(scores))
        if turn == "large" and len(fed) > 1:
            rows = [task.target(tuple(text[: start + 1 + i])) for i in range(len(fed) - 1)]
            above = [row[token] < math.exp(-rollback) for row, token in zip(rows, fed[1:], strict=True)]
            if any(above):
                first = above.index(True)
                if argmax(rows[first]) != fed[1 + first]:
                    text = [*text[: start + 1 + first], argmax(rows[first])]
                    if text[-1] in task.eos:
                        break  # the release goes on behind it
                    continue
        if turn == "large":
            cached = start + len(fed)
        if text[-1] in task.eos or len(text) >= finish:
            break
        left -= 1
        if left == 0:
            turn, left = ("small", gamma) if turn == "large" else ("large", 1)
    return tuple(text[len(prompt) :])


def paper_with_the_shortcut(task, prompt, fallback, rollback, gamma):
    """The rule that is not the release: small model first, the first unlikely draft decides, a block ends in large."""
    text = tuple(prompt)
    while (remaining := len(prompt) + task.horizon - len(text)) > 0:
        drafted = ()
        while len(drafted) < min(gamma, remaining - 1) and not task.draft(text + drafted).max() < fallback:
            drafted = (*drafted, argmax(task.draft(text + drafted)))
        rows = [task.target(text + drafted[:i]) for i in range(len(drafted) + 1)]
        first = next((i for i, d in enumerate(drafted) if rows[i][d] < math.exp(-rollback)), len(drafted))
        if first < len(drafted) and argmax(rows[first]) == drafted[first]:
            first = len(drafted)
        text += (*drafted[:first], argmax(rows[first]))
    return text[len(prompt) :]


def text_of(task, prompt, **options):
    ((text, mass),) = decoder_law(bild_released.build(task, **options), prompt).probabilities.items()
    assert mass == 1
    return text


OPTIONS = {"fallback": Fraction(1, 2), "rollback": 5.0, "gamma": 10}
SEEN = Task(always(pmf(".45", ".35", ".2")), always(pmf(".1", ".8", ".1")), horizon=3)
CERTAIN = Task(always(pmf(0, 0, 1)), always(pmf(0, 1, 0)), horizon=3)


def test_the_large_model_begins_and_the_text_may_end_unverified():
    assert paper_with_the_shortcut(SEEN, (0,), **OPTIONS) == (1, 1, 0)
    assert released_loop(SEEN, (0,), **OPTIONS) == text_of(SEEN, (0,), **OPTIONS) == (0, 1, 1)


def test_it_is_not_greedy_for_one_hot_targets():
    assert released_loop(CERTAIN, (0,), **OPTIONS) == text_of(CERTAIN, (0,), **OPTIONS) == (2, 1, 1)
    assert greedy_law(CERTAIN, (0,)) == {(2, 2, 2): 1}
    assert not bild_released.ALGORITHM.claims


def test_a_rollback_is_followed_by_one_more_large_token():
    longer = CERTAIN._replace(horizon=6)
    options = {**OPTIONS, "gamma": 2}
    assert released_loop(longer, (0,), **options) == text_of(longer, (0,), **options) == (2, 2, 2, 2, 2, 1)


def table_cases():
    for shape in ("generic", "peaked", "zeros", "ties"):
        for seed in range(10):
            yield Task(*table_pair(shape, 3, seed), horizon=6, eos=(2,) if seed % 3 == 0 else ())


@pytest.mark.parametrize(("rollback", "gamma"), [(0.0, 3), (1.0, 3), (2.0, 10)])
def test_every_text_is_that_of_the_loop_and_some_differ_from_the_paper_s_rounds(rollback, gamma):
    options = {"fallback": Fraction(2, 5), "rollback": rollback, "gamma": gamma}
    cases = list(table_cases())
    texts = [text_of(task, (0, 1), **options) for task in cases]
    assert texts == [released_loop(task, (0, 1), **options) for task in cases]
    assert texts == [text for task in cases for text in bild_released.declared_law(task, (0, 1), **options)]
    endless = [(task, text) for task, text in zip(cases, texts, strict=True) if not task.eos]
    others = sum(paper_with_the_shortcut(task, (0, 1), **options) != text for task, text in endless)
    assert others > 0


def test_the_release_writes_another_text_in_more_than_half_of_two_hundred_cases():
    """Vocabulary 3, 6 tokens, fallback 2/5, at most 10 drafts, 25 pairs of tables of each shape, no end of sequence."""
    pairs = [table_pair(shape, 3, seed) for shape in ("generic", "peaked", "zeros", "ties") for seed in range(25)]
    differ = {}
    for rollback in (1.0, 5.0):
        options = {"fallback": Fraction(2, 5), "rollback": rollback, "gamma": 10}
        tasks = [Task(*pair, horizon=6) for pair in pairs]
        of_both = (
            [loop(task, (0, 1), **options) for task in tasks] for loop in (paper_with_the_shortcut, released_loop)
        )
        differ[rollback] = sum(paper != release for paper, release in zip(*of_both, strict=True))
    assert differ == {1.0: 66, 5.0: 58}


def test_the_paper_s_rule_is_the_other_row():
    laws = [decoder_law(bild.build(task, **OPTIONS), (0,)).probabilities for task in (SEEN, CERTAIN)]
    assert laws == [{(1, 1, 0): 1}, {(2, 2, 2): 1}]
