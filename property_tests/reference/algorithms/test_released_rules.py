"""Rules as papers' code has them, against the same rule stated again as a plain loop."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from reference import ALGORITHMS, Task, chain
from reference.algorithms import (
    block_verification,
    fuzzy_speculative_decoding,
    hierarchical,
    hierarchical_released,
    lantern_released,
    nasd_released,
    rest_released,
    reward_guided,
    speculative_sampling,
)
from reference.algorithms.hierarchical import backward, ratios, stays
from reference.verifiers.block_verification import capped_ratios
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import pmf_pairs
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, examples, law_of, pmf, project

F = Fraction


def tasks_of(shapes=("generic", "zeros", "peaked"), horizon=4, vocabulary=3):
    return [Task(*table_pair(shape, vocabulary, seed), horizon=horizon) for shape in shapes for seed in range(2)]


# Fuzzy, reward-guided, LANTERN


def fuzzy_loop(task, threshold, gamma):
    def program(draws):
        text = [0]
        while len(text) <= task.horizon:
            drafts = []
            for _ in range(min(gamma, task.horizon - len(text))):
                row = task.draft(tuple(text + drafts)).tolist()
                drafts.append(row.index(max(row)))
            matches = 0
            for i in range(len(drafts)):
                here = tuple(text + drafts[:i])
                gap = sum(abs(a - b) for a, b in zip(task.target(here), task.draft(here), strict=True)) / 2
                if gap > threshold:
                    break
                matches += 1
            text += drafts[:matches]
            text.append(draws.categorical(task.target(tuple(text)), ("next", len(text))))
        return tuple(text[1:])

    return program


@pytest.mark.parametrize("threshold", [F(1, 4), F(2, 5)])
def test_fuzzy_speculative_decoding_is_its_loop(threshold):
    for task in tasks_of():
        found = decoder_law(fuzzy_speculative_decoding.build(task, threshold=threshold, gamma=2), (0,)).probabilities
        assert found == law_of(fuzzy_loop(task, threshold, 2))


def reward_loop(task, rewarded):
    def program(draws):
        text = (0,)
        while len(text) <= task.horizon:
            step = draws.categorical(task.draft(text), ("draft", len(text)))
            if (text[-1], step) not in rewarded:
                step = draws.categorical(task.target(text), ("target", len(text)))
            text += (step,)
        return text[1:]

    return program


def test_reward_guided_steps_are_kept_or_written_anew():
    rewarded = ((0, 0), (1, 0), (2, 1))
    for task in tasks_of(horizon=3):
        found = decoder_law(reward_guided.build(task, rewarded=rewarded), (0,)).probabilities
        assert found == law_of(reward_loop(task, rewarded))


def lantern_loop(p, guess, k, delta):
    """The law of the token at a place: cumulated neighbours, then what a rejection leaves."""
    order = sorted(set(range(len(p))) - {guess}, key=lambda code: (abs(code - guess), code))
    sums = [sum(p[code] for code in order[: n + 1]) for n in range(min(k, len(order)))]
    within = [n for n, total in enumerate(sums) if total <= delta]
    chance = p[guess] + (sums[within[-1]] if within else 0)
    left = p.tolist()
    left[guess] = F(0)
    if within:
        for code in order[: k + 1]:
            left[code] = F(0)
    left = left if sum(left) else [F(1)] * len(p)
    law = [(1 - chance) * mass / sum(left) for mass in left]
    law[guess] += chance
    return law


@examples(30)
@given(pmf_pairs(4))
def test_lantern_gives_a_draft_its_neighbours_and_takes_one_more_away(pair):
    p, q = pair
    guess = q.tolist().index(max(q.tolist()))
    for k, delta in ((0, F(1, 2)), (1, F(1, 4)), (2, F(3, 5))):
        task = Task(always(p), always(q), horizon=2)
        law = lantern_released.declared_law(task, (0,), neighbours=k, delta=delta, gamma=1)
        first = project(law, lambda text: text[0])
        assert [first.get(v, 0) for v in range(4)] == lantern_loop(p, guess, k, delta)


# NASD and REST, where a draw that missed is thrown away


def learn(text, at, order, counts, best):
    for length in range(min(order - 1, at), 1, -1):
        gram = tuple(text[at - length : at])
        row = counts.setdefault(gram, {})
        row[text[at]] = row.get(text[at], 0) + 1
        if gram not in best or row[text[at]] > row[best[gram]]:
            best[gram] = text[at]


def nasd_loop(task, order, gamma):
    """Counts and best guesses by context length, a random guess where there is none; a filler of one."""

    def program(draws):
        text = [0, 1, 0, 1]
        start, counts, best = len(text), {}, {}
        for at in range(start):
            learn(text, at, order, counts, best)
        while len(text) - start < task.horizon:
            drafts = []
            for k in range(min(gamma, task.horizon - (len(text) - start) - 1)):
                seen = text + drafts
                known = [best[tuple(seen[-n:])] for n in range(order - 1, 1, -1) if tuple(seen[-n:]) in best]
                drafts.append(known[0] if known else draws.categorical(pmf("1/2", "1/2"), ("guess", len(text), k)))
            n = 0
            while n < len(drafts):
                z = draws.categorical(task.target(tuple(text + drafts[:n])), ("compare", len(text), n))
                if z != drafts[n]:
                    break
                n += 1
            before = len(text)
            text += drafts[:n]
            text.append(draws.categorical(task.target(tuple(text)), ("again", before)))
            for at in range(before, len(text)):
                learn(text, at, order, counts, best)
        return tuple(text[start:])

    return program


def test_nasd_as_released_is_its_loop_and_off_by_the_variance_of_a_coin():
    for seed in range(3):
        task = Task(*table_pair("generic", 2, seed), horizon=3)
        law = decoder_law(nasd_released.build(task, order=3, gamma=2, filler_top_k=1), (0, 1, 0, 1)).probabilities
        assert law == law_of(nasd_loop(task, 3, 2))
    certain = Task(always(P), always(Q), horizon=2)
    law = nasd_released.declared_law(certain, (2, 2, 2), order=3, gamma=1, filler_top_k=1)
    assert project(law, lambda text: text[0])[2] == P[2] * (2 - P[2])


def test_rest_as_released_draws_for_every_row_and_again():
    """Two rows 0 and 1 of one token, p = (.5, .3, .2): lengths (1, 0) by (.5, .7), and so on, then p once more."""
    p = pmf(".5", ".3", ".2")
    task = Task(always(p), horizon=2)
    options = {"datastore": ((2, 0), (2, 1)), "longest": 1, "depth": 1, "nodes": 2}
    law = project(rest_released.declared_law(task, (2,), **options), lambda text: text[0])
    none = (1 - p[0]) * (1 - p[1])
    assert [law[v] for v in range(3)] == [p[0] + none * p[0], (1 - p[0]) * p[1] + none * p[1], none * p[2]]
    assert decoder_law(rest_released.build(task, **options), (2,)).probabilities == (
        rest_released.declared_law(task, (2,), **options)
    )


# Hierarchical


def released_array_code(p, q, block, capped_end):
    """The verification as its array code: joint products, their running maximum, coins of all places at once."""
    gamma = len(block)
    joint_p = np.array([np.prod([p[j][block[j]] for j in range(k)] or [F(1)]) for k in range(gamma + 1)])
    joint_q = np.array([np.prod([q[j][block[j]] for j in range(k)] or [F(1)]) for k in range(gamma + 1)])
    highest = np.maximum.accumulate(np.maximum(joint_p / joint_q, F(1)))
    law, left = {}, F(1)
    end = min(F(1), joint_p[gamma] / joint_q[gamma] / (highest[gamma] if capped_end else 1))
    for token, mass in enumerate(p[gamma]):
        law[gamma, token] = end * mass
    left -= end
    for k in range(gamma - 1, -1, -1):
        gap = joint_p[k] / highest[k] * p[k] - joint_q[k] * q[k]
        above, below = np.maximum(gap, 0), np.maximum(-gap, 0)
        most = max(above.sum(), below.sum())
        if most == 0:  # 0/0 never steps back; nothing is left to draw
            law[k, "p"] = left
            break
        prime = above / most
        for token, mass in enumerate(prime):
            law[k, token] = law.get((k, token), 0) + left * mass
        left *= 1 - prime.sum()
    return {outcome: mass for outcome, mass in law.items() if mass}


@pytest.mark.parametrize("capped_end", [True, False])
def test_a_block_is_decided_as_the_array_code_decides_it(capped_end):
    for seed in range(12):
        task = Task(*table_pair("generic", 3, seed))
        block = ((0, 1, 2), (1, 1, 0), (2, 0, 1))[seed % 3]
        rows = [[model(block[:i]) for i in range(4)] for model in (task.target, task.draft)]
        given_block = task.target, (), chain(block, tuple(rows[1][:3]))
        found = law_of(lambda draws, it=given_block: backward(capped_end)(draws, *it))
        by_place = {(done.accepted, done.tokens[-1]): mass for done, mass in found.items()}
        assert by_place == released_array_code(*rows, block, capped_end)


def test_the_release_is_biased_from_two_drafts_on_and_the_capped_rule_is_not():
    task = Task(always(pmf("1/3", "2/3")), always(pmf("2/3", "1/3")), horizon=3)
    wanted = target_law(task, (0,))
    off = []
    for row in (hierarchical, hierarchical_released):
        law = decoder_law(row.build(task, gamma=2), (0,)).probabilities
        off.append(sum(abs(law.get(text, 0) - mass) for text, mass in wanted.items()) / 2)
    assert off == [0, F(1, 9)]
    assert hierarchical_released.declared_law(task._replace(horizon=2), (0,), gamma=1) == target_law(
        task._replace(horizon=2), (0,)
    )


@pytest.mark.parametrize("seed", range(4))
def test_with_its_cap_a_block_is_decided_coin_for_coin_as_block_verification_decides_it(seed):
    """A - B = w - 1 <= 0, so max(A, B) = A + 1 - w: the two heads are one number, for every token of every block."""
    task = Task(*table_pair("generic", 3, seed))
    for block in product(range(3), repeat=3):
        p, q = ([model(block[:i]) for i in range(3)] for model in (task.target, task.draft))
        _, capped = ratios(p, q, block)
        assert capped == capped_ratios(p, q, block)
        for k in range(3):
            above, below = (sum(np.maximum(side * (capped[k] * p[k] - q[k]), 0)) for side in (1, -1))
            assert above - below == capped[k] - 1
            assert stays(capped[k], p[k], q[k]) == (above / (above + 1 - capped[k]) if below else 1)


def test_what_the_release_gains_over_block_verification_comes_from_its_uncapped_coin():
    task = Task(always(pmf("1/3", "2/3")), always(pmf("2/3", "1/3")), horizon=3)
    drafts = []
    for row in (speculative_sampling, block_verification, hierarchical, hierarchical_released):
        decoder = row.build(task, gamma=2)
        law = law_of(lambda draws, it=decoder: it.step(draws, it.init((0,)))[1].accepted)
        drafts.append(sum(accepted * mass for accepted, mass in law.items()))
    assert drafts == [F(10, 9), F(11, 9), F(11, 9), F(4, 3)]


RELEASED = [row for row in ALGORITHMS if row.name.endswith("-released")]


@pytest.mark.parametrize("row", RELEASED, ids=lambda row: row.name)
def test_a_released_row_names_the_commit_it_was_read_at(row):
    said = f"{row.paper} {inspect.getmodule(row.build).__doc__}"
    assert re.search(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7}\b", said)
