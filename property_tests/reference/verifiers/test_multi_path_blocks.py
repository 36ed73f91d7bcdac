"""Several paths verified as blocks: GBV and SpecTr-GBV, against plain loops, bounds and each other."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given

from reference import Task
from reference.algorithms import block_verification, greedy_multi_path, specinfer, spectr_gbv_released
from reference.algorithms.greedy_multi_path import below, ranking, selected_pmf
from reference.drafters.tree import independent
from reference.transport import candidate_set_law, optimum
from reference.verifiers.k_seq import k_seq
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import pmf_pairs
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, flips, law_of, pmf, project
from test_support.reference.multi_draft_rules import accepted, expected_tokens

F = Fraction


def one_round(decoder, prompt=(0,)):
    """The law of the tokens a round commits and of how many of them were drafted."""

    def program(draws):
        done = decoder.step(draws, decoder.init(prompt))[1]
        return done.tokens, done.accepted

    return law_of(program)


def drawn_paths(draws, task, count, size):
    paths = []
    for k in range(count):
        path = ()
        while len(path) < size:
            path += (draws.categorical(task.draft((0, *path)), ("path", k, len(path))),)
        paths.append(path)
    return paths


# GBV


def ratios(task, path):
    """What paths are compared by: of each token p/q, then the token."""
    rows = [(task.target((0, *path[:i])), task.draft((0, *path[:i]))) for i in range(len(path))]
    return [(p[v] / q[v] if q[v] else F(0), v) for (p, q), v in zip(rows, path, strict=True)]


def law_of_selected(task, words, count):
    """Every path in order, F(x)^K - F(x-)^K."""
    law, under = {}, F(0)
    for word in sorted(words, key=lambda word: ratios(task, word)):
        mass = prod(task.draft((0, *word[:i]))[v] for i, v in enumerate(word))
        law[word] = (under + mass) ** count - under**count
        under += mass
    return law


def gbv_loop(task, count, size):
    """Select, then Algorithm 2 of block verification from the first token on, with the law of selected paths."""
    vocabulary = len(task.target((0,)))
    words = list(product(range(vocabulary), repeat=size))
    selected = law_of_selected(task, words, count)

    def weight(start):
        return sum(mass for word, mass in selected.items() if word[: len(start)] == start)

    def program(draws):
        path = max(drawn_paths(draws, task, count, size), key=lambda path: ratios(task, path))
        tau, w, kept_w = 0, F(1), F(1)
        for i in range(1, size + 1):
            w = min(F(1), w * task.target((0, *path[: i - 1]))[path[i - 1]] * weight(path[: i - 1]) / weight(path[:i]))
            h = w
            if i < size:
                p = task.target((0, *path[:i]))
                above = sum(max(w * p[v] - weight((*path[:i], v)) / weight(path[:i]), F(0)) for v in range(vocabulary))
                h = above / (above + 1 - w) if above or w < 1 else F(1)
            if flips(draws, h, ("coin", i)):
                tau, kept_w = i, w
        p = task.target((0, *path[:tau])).tolist()
        if tau < size:
            left = [max(kept_w * p[v] - weight((*path[:tau], v)) / weight(path[:tau]), F(0)) for v in range(vocabulary)]
            p = [mass / sum(left) for mass in left] if sum(left) else p
        return (*path[:tau], draws.categorical(np.array(p, dtype=object), ("last",))), tau

    return program


@pytest.mark.parametrize(("shape", "vocabulary", "count", "size"), [("generic", 2, 2, 2), ("zeros", 3, 3, 1)])
def test_gbv_is_its_loop_round_by_round(shape, vocabulary, count, size):
    for seed in range(2):
        task = Task(*table_pair(shape, vocabulary, seed), horizon=size + 1)
        assert one_round(greedy_multi_path.build(task, count, size)) == law_of(gbv_loop(task, count, size))


@examples(6)
@given(pmf_pairs(3))
def test_the_law_of_the_selected_token_is_that_of_the_highest_of_several(pair):
    p, q = pair
    task = Task(always(p), always(q))
    order = ranking(p, q)
    for count in (1, 2, 4):
        law = law_of_selected(task, [(v,) for v in range(3)], count)
        assert selected_pmf(q, order, 0, 1, count).tolist() == [law[v,] for v in range(3)]
    assert [below(q, order)[v] for v in order] == [sum(q[v] for v in order[:i]) for i in range(3)]


def test_one_level_of_gbv_accepts_what_no_rule_for_two_candidates_exceeds():
    """p/q rises from token 0 to 2, the selected one has the law (.36, .45, .19), and sum min(p, q') = .69."""
    decoder = greedy_multi_path.build(Task(always(P), always(Q), horizon=2), paths=2, depth=1)
    rate = project(one_round(decoder), lambda seen: seen[1])[1]
    assert selected_pmf(Q, ranking(P, Q), 0, 1, 2).tolist() == pmf(".36", ".45", ".19").tolist()
    assert rate == F(69, 100) == optimum(P, candidate_set_law(Q, 2, replacement=True))
    assert rate == accepted(P, Q, 2, independent, optimal_transport(replacement=True))
    assert rate > accepted(P, Q, 2, independent, recursive_rejection) > F(3, 5)
    assert rate > accepted(P, Q, 2, independent, k_seq(8))


@examples(8)
@given(pmf_pairs(3))
def test_one_level_of_gbv_is_never_above_the_optimum(pair):
    p, q = pair
    for count in (2, 3):
        decoder = greedy_multi_path.build(Task(always(p), always(q), horizon=2), paths=count, depth=1)
        rate = project(one_round(decoder), lambda seen: seen[1]).get(1, 0)
        assert rate <= optimum(p, candidate_set_law(q, count, replacement=True))


def test_more_paths_yield_more_tokens_than_one_block_and_two_blocks_tried_level_by_level():
    task = Task(always(P), always(Q), horizon=3)
    blocks = [expected_tokens(greedy_multi_path.build(task, paths, 2)) for paths in (1, 2)]
    assert blocks[0] == expected_tokens(block_verification.build(task, gamma=2)) == 2
    assert blocks[1] > blocks[0]
    assert blocks[1] > expected_tokens(specinfer.build(task, forget=(0, 0), depth=2))


# SpecTr-GBV as released


def ratio(small, big):
    return min(small / big, F(1)) if big else F(1) if small else F(0)


def coin(draws, fraction, name):
    above, whole = fraction
    return flips(draws, min(max(above / whole if whole else F(0), F(0)), F(1)), name)


def joint(task, path):
    """m_s and m_b."""
    rows = [(task.draft((0, *path[:k])), task.target((0, *path[:k]))) for k in range(len(path))]
    return prod((q[v] for (q, _), v in zip(rows, path, strict=True)), start=F(1)), prod(
        (p[v] for (_, p), v in zip(rows, path, strict=True)), start=F(1)
    )


def part_stays(task, path, count):
    m_s, m_b = joint(task, path)
    ahead, guess = m_b * task.target((0, *path)), m_s * task.draft((0, *path))
    r = [ratio(a, b) for a, b in zip(guess, ahead, strict=True)]
    above = sum(b * (1 - x) ** count for b, x in zip(ahead, r, strict=True)) - m_b * (1 - ratio(m_s, m_b)) ** count
    return above, 1 - (1 - m_s) ** count - sum(b * (1 - (1 - x) ** count) for b, x in zip(ahead, r, strict=True))


def released_loop(task, count, size):
    """``speculative_decoding`` and its set of prefixes; a uniform below a number is a coin."""

    def program(draws):
        x = drawn_paths(draws, task, count, size)
        n, selected, seen = 0, 0, set()
        for j in range(count):
            for i in range(n, size - 1):
                if x[j][: i + 1] in seen:
                    continue
                if coin(draws, part_stays(task, x[j][: i + 1], count), (j, i)):
                    n, selected = i + 1, j
                else:
                    seen.add(x[j][: i + 1])
            m_s, m_b = joint(task, x[j])
            if coin(draws, (m_b * (1 - (1 - ratio(m_s, m_b)) ** count), 1 - (1 - m_s) ** count), (j, "all")):
                n, selected = size, j
                break
        kept = x[selected][:n]
        p = task.target((0, *kept))
        if n < size:
            m_s, m_b = joint(task, kept)
            q = task.draft((0, *kept))
            left = [m_b * b * (1 - ratio(m_s * a, m_b * b) ** count) for a, b in zip(q, p, strict=True)]
            p = np.array([mass / sum(left) for mass in left], dtype=object) if sum(left) else p
        return (*kept, draws.categorical(p, ("last",))), n

    return program


@pytest.mark.parametrize(
    ("shape", "vocabulary", "count", "size"),
    [("generic", 3, 1, 2), ("generic", 2, 2, 2), ("zeros", 3, 2, 1), ("disjoint", 2, 3, 1)],
)
def test_spectr_gbv_as_released_is_its_loop_round_by_round(shape, vocabulary, count, size):
    task = Task(*table_pair(shape, vocabulary, 1), horizon=size + 1)
    assert one_round(spectr_gbv_released.build(task, count, size)) == law_of(released_loop(task, count, size))


def test_two_blocks_of_two_have_the_law_declared():
    task = Task(*table_pair("generic", 2, 0), horizon=3)
    law = decoder_law(spectr_gbv_released.build(task, 2, 2), (0,)).probabilities
    assert law == spectr_gbv_released.declared_law(task, (0,), 2, 2)


def test_one_released_block_keeps_all_that_overlaps_and_is_off_from_the_second_token_on():
    """Greedy block verification keeps a prefix x as often as min(p(x), q(x)): 3/5 + 11/25, where a block keeps 1."""
    task = Task(always(P), always(Q), horizon=3)
    rounds = one_round(spectr_gbv_released.build(task, 1, 2))
    kept = sum(number * mass for (_, number), mass in rounds.items())
    assert kept == sum(min(a, b) for a, b in zip(P, Q, strict=True)) + sum(
        min(P[v] * P[w], Q[v] * Q[w]) for v in range(3) for w in range(3)
    )
    assert kept == F(26, 25)
    declared = spectr_gbv_released.declared_law(task, (0,), 1, 2)
    wanted = target_law(task, (0,))
    for length, bias in ((1, 0), (2, F(1, 25)), (3, F(1, 25))):
        cut = [project(law, lambda text, n=length: text[:n]) for law in (declared, wanted)]
        assert distance(*cut) == bias


def test_two_released_blocks_are_off_in_the_first_token():
    task = Task(always(P), always(Q), horizon=2)
    first = project(spectr_gbv_released.declared_law(task, (0,), 2, 1), lambda text: text[0])
    assert distance(first, as_law(P)) == F(2102, 79135)
