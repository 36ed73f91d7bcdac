"""Drafters and length rules as papers' code has them, against the same stated again with other data structures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from reference import Sampled, Task, generate
from reference.algorithms import adaedl, kangaroo, specdec_pp, svip
from reference.algorithms.redrafter import beam_search
from reference.algorithms.specexec import best_paths
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, law_of, project

# SpecExec and ReDrafter: every path at once


def chances(draft, prefix, depth):
    found = {(): Fraction(1)}
    for length in range(depth):
        for path in [path for path in found if len(path) == length]:
            for token, mass in enumerate(draft(prefix + path).tolist()):
                found[*path, token] = found[path] * mass
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_budget_buys_the_most_probable_paths(seed):
    draft = table_pair("generic", 3, seed)[1]
    every = chances(draft, (0,), 3)
    for budget in (1, 3, 6):
        bought = best_paths(draft, (0,), budget, 3)
        dearest = sorted((every[path] for path in every if path), reverse=True)[:budget]
        assert sorted((every[path] for path in bought), reverse=True) == dearest
        assert all(path[:-1] in [(), *bought] for path in bought)


@pytest.mark.parametrize("seed", range(4))
def test_beams_are_the_best_extensions_of_the_beams_before(seed):
    draft = table_pair("generic", 3, seed)[1]
    every = chances(draft, (0,), 3)
    kept = [()]
    for length in range(1, 4):
        grown = [path for path in every if len(path) == length and path[:-1] in kept]
        kept = sorted(grown, key=lambda path: -every[path])[:2]
        assert sorted(beam_search(draft, (0,), 2, length)) == sorted(kept)
    assert sorted(beam_search(draft, (0,), 99, 2)) == sorted(product(range(3), repeat=2))


# Lengths


def predicted_lengths(q, threshold, most):
    """Steps 1.1 to 1.4: the head is asked about the token fed last, and not at all in the first step."""

    def program(draws):
        cumulated, fed, drafted = Fraction(1), None, 0
        while drafted < most:
            token = draws.categorical(q, ("draft", drafted))
            drafted += 1
            cumulated *= 1 if drafted == 1 else q[fed]
            fed = token
            if 1 - cumulated > threshold:
                break
        return drafted

    return law_of(program)


@pytest.mark.parametrize("threshold", [Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)])
def test_the_predicted_rejection_ends_the_draft_after_a_token_not_yet_judged(threshold):
    decoder = specdec_pp.build(Task(always(P), always(Q), horizon=5), threshold=threshold, gamma=4)
    drafts = law_of(lambda draws: decoder.propose(draws, decoder.init((0,))).tokens)
    assert project(drafts, len) == predicted_lengths(Q, threshold, 4)
    assert min(project(drafts, len)) == 2  # nothing is known after the first


@pytest.mark.parametrize(("row", "options", "limit"), [(svip, {"scale": 0.15}, None), (adaedl, {"scale": 0.2}, 1)])
def test_a_draft_of_high_entropy_is_kept_and_is_the_last(row, options, limit):
    for seed in range(6):
        task = Task(*table_pair("generic", 3, seed), horizon=5)
        threshold = 0.37 if limit is None else 0.57
        decoder = row.build(task, threshold=threshold, gamma=4, **options)
        for drafted in law_of(lambda draws, d=decoder: d.propose(draws, d.init((0,))).tokens):
            rows = [task.draft((0, *drafted[:i])) for i in range(len(drafted))]
            roots = [math.sqrt(options["scale"] * -math.fsum(float(m) * math.log(m) for m in row if m)) for row in rows]
            late = [root > threshold if limit is None else 1 - root < threshold for root in roots]
            assert late[:-1] == [False] * (len(late) - 1)
            assert late[-1] or len(drafted) == 4


def test_kangaroo_s_loop_drafts_past_the_first_unsure_token_and_no_further():
    for seed in range(6):
        task = Task(*table_pair("peaked", 3, seed), horizon=6)
        exit_row = [(a + 3 * b) / 4 for a, b in zip(task.target((0,)), task.draft((0,)), strict=True)]
        decoder = kangaroo.build(task, threshold=0.7, gamma=3, exit_layer=1, layers=4)
        drafted, text, score = [], (0,), None
        for step in range(4):
            if step == 3 or (step > 0 and score < 0.7):
                break
            exit_row = [(a + 3 * b) / 4 for a, b in zip(task.target(text), task.draft(text), strict=True)]
            score = max(exit_row)
            drafted.append(exit_row.index(score))
            text = (*text, drafted[-1])
        assert decoder.propose(None, decoder.init((0,))).tokens == tuple(drafted)
        assert generate(decoder, (0,), Sampled(0)).tokens == _greedy_text(task)


def _greedy_text(task):
    text = (0,)
    while len(text) <= task.horizon:
        row = task.target(text).tolist()
        text = (*text, row.index(max(row)))
    return text[1:]
