"""Two-step selection, SpecHub, list-level races and speculative Jacobi: against their formulas and loops."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from reference import Task
from reference.algorithms import canonical_selection, gumbel_list, sjd_pac, spechub, speculative_jacobi
from reference.algorithms.canonical_selection import acceptance, choose_then_accept, selection
from reference.algorithms.spechub import hub_drafter, through_the_hub
from reference.transport import candidate_set_law, optimum
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import pmf_pairs
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, examples, law_of, project
from test_support.reference.multi_draft_rules import counts, pairs

F = Fraction


# Canonical selection


def selected(p, q, count):
    def program(draws):
        tokens = tuple(draws.categorical(q, ("draft", k)) for k in range(count))
        return choose_then_accept(draws, p, tokens, (q,) * count, 0)

    return law_of(program)


@examples(6)
@given(pairs, counts)
def test_the_choice_is_accepted_as_often_as_the_closed_form_says(pair, count):
    p, q = pair
    law = selected(p, q, count)
    assert project(law, lambda step: step.accepted).get(True, 0) == acceptance(p, q, count)
    assert project(law, lambda step: step.token) == {token: mass for token, mass in enumerate(p) if mass}
    _, intermediate = selection(p, q, count, 0)
    assert sum(min(a, b) for a, b in zip(p, intermediate, strict=True)) == acceptance(p, q, count)


def test_no_other_weights_accept_more():
    """The first step as a linear programme over beta, P = (.2, .3, .5), Q = (.6, .3, .1), two candidates."""
    sets = candidate_set_law(Q, 2, replacement=True)
    places = [(drawn, token) for drawn in sets for token in sorted(drawn)]
    size = len(places)
    gain = [0.0] * size + [-1.0] * 3  # then min(p, p_I), token by token
    within = [[float(token == v) * -float(sets[drawn]) for drawn, token in places] + [0.0] * 3 for v in range(3)]
    for v in range(3):
        within[v][size + v] = 1.0
    one = [[float(drawn == each) for drawn, _ in places] + [0.0] * 3 for each in sets]
    bounds = [(0, 1)] * size + [(0, float(mass)) for mass in P]
    found = linprog(gain, A_ub=within, b_ub=[0.0] * 3, A_eq=one, b_eq=[1.0] * len(sets), bounds=bounds)
    assert acceptance(P, Q, 2) == F(69, 100)
    assert -found.fun == pytest.approx(0.69)
    assert canonical_selection.ALGORITHM.claims


# SpecHub


def by_pairs(p, q):
    """The four steps over tables of pairs: what each pair has left, what each token is owed."""
    size = len(p)
    hub = q.index(max(q))
    others = [i for i in range(size) if i != hub]
    mass = {(i, hub): q[i] for i in others if q[i]} | {
        (hub, i): q[hub] * q[i] / (1 - q[hub]) for i in others if q[i] and q[hub] < 1
    }
    if q[hub] == 1:
        mass = {(hub,): F(1)}
    owed, accepted = list(p), F(0)

    def move(chosen, token):
        nonlocal accepted
        total = sum(mass[pair] for pair in chosen)
        moved = min(total, owed[token])
        owed[token] -= moved
        accepted += moved
        for pair in chosen:
            mass[pair] -= moved * mass[pair] / total if total else 0

    for i in others:
        move([pair for pair in mass if pair == (i, hub)], i)
    for i in others:
        move([pair for pair in mass if pair == (hub, i)], i)
    move([pair for pair in mass if pair[0] == hub], hub)
    move([pair for pair in mass if pair[0] != hub], hub)
    return accepted, owed


@examples(12)
@given(pmf_pairs(3))
def test_the_hub_moves_what_the_four_steps_move(pair):
    p, q = pair

    def program(draws):
        drafted = hub_drafter(always(q), 1).propose(draws, None, (0,), 1, None)
        return through_the_hub(draws, p, drafted.tokens, drafted.pmfs, 0)

    law = law_of(program)
    taken, owed = by_pairs(p.tolist(), q.tolist())
    assert project(law, lambda step: step.accepted).get(True, 0) == taken
    assert project(law, lambda step: step.token) == {token: mass for token, mass in enumerate(p) if mass}
    replaced = {step.token: mass for step, mass in law.items() if not step.accepted}
    assert replaced == {token: mass for token, mass in enumerate(owed) if mass}


def test_the_hub_is_near_the_optimum_of_its_pairs():
    """(i, a) and (a, i) are one set: 3/4 here, which no rule for these pairs beats."""
    sets = {frozenset({0, i}): Q[i] + Q[0] * Q[i] / (1 - Q[0]) for i in (1, 2)}
    assert by_pairs(P.tolist(), Q.tolist())[0] == optimum(P, sets) == F(3, 4)
    assert spechub.ALGORITHM.claims


# Lists


def test_the_text_of_a_list_does_not_depend_on_the_drafter():
    target, draft = table_pair("generic", 3, 2)
    sites = []
    for q in (draft, target):
        decoder = gumbel_list.build(Task(target, q, horizon=2), lists=2)
        outcome = law_of(lambda draws, d=decoder: d.step(draws, d.init((0,)))[1].tokens[0])
        sites.append(outcome)
    assert sites[0] == sites[1]


# Speculative Jacobi


def two_sweeps(target, window, horizon):
    """Sweeps over arrays: tokens, and the row each was drawn from; None where it was filled in."""

    def program(draws):
        text, tokens, rows, told = [0], [], [], []
        while len(text) - 1 < horizon:
            room = min(window, horizon - (len(text) - 1) - 1)
            tokens, rows = tokens[:room], rows[:room]
            while len(tokens) < room:
                size = len(target((0,)))
                even = np.array([F(1, size)] * size, dtype=object)
                tokens.append(draws.categorical(even, ("fill", len(text), len(tokens))))
                rows.append(None)
            new_rows = [target(tuple(text + tokens[:i])) for i in range(room + 1)]
            stays = 0
            for i in range(room):
                p, q = new_rows[i][tokens[i]], 1 if rows[i] is None else rows[i][tokens[i]]
                chance = min(F(1), p / q)
                if draws.categorical(np.array([chance, 1 - chance], dtype=object), ("keep", len(text), i)):
                    break
                stays += 1
            last = new_rows[stays]
            if stays < room:
                q = rows[stays]
                q = np.eye(len(last), dtype=int)[tokens[stays]] if q is None else q
                last = np.maximum(last - q, 0)
                last = last / last.sum()
            told.append((tuple(tokens[:stays]), stays))
            swept = [draws.categorical(new_rows[i], ("sweep", len(text), i)) for i in range(stays + 1, room)]
            block = [*tokens[:stays], draws.categorical(last, ("last", len(text)))]
            tokens, rows, text = swept, new_rows[stays + 1 : room], text + block
        return tuple(text[1:]), tuple(told)

    return program


@pytest.mark.parametrize("seed", range(2))
def test_sweeps_are_those_of_the_loop(seed):
    target, _ = table_pair("generic", 2, seed)
    decoder = speculative_jacobi.build(Task(target, horizon=3), window=2)

    def rounds(draws):
        state, told, text = decoder.init((0,)), (), ()
        while state.remaining:
            state, done = decoder.step(draws, state)
            told, text = (*told, (done.draft[: done.accepted], done.accepted)), text + done.tokens
        return text, told

    assert law_of(rounds) == law_of(two_sweeps(target, 2, 3))


@pytest.mark.parametrize(("vocabulary", "window", "horizon"), [(2, 3, 5), (3, 2, 4)])
def test_sweeps_that_go_on_behind_a_rejection_are_lossless(vocabulary, window, horizon):
    target, _ = table_pair("generic", vocabulary, 1)
    task = Task(target, horizon=horizon)
    assert decoder_law(sjd_pac.build(task, window=window), (0,)).probabilities == target_law(task, (0,))


def mean_rounds(build, task):
    def rounds(draws):
        state, count = build.init((0,)), 0
        while state.remaining:
            state, count = build.step(draws, state)[0], count + 1
        return count

    return sum(count * mass for count, mass in law_of(rounds).items())


def test_drafts_that_were_judged_before_agree_more_often():
    """Fewer sweeps of the same window write the same text, with the same fill of new places for both."""
    task = Task(table_pair("generic", 2, 1)[0], horizon=4)
    plain = mean_rounds(speculative_jacobi.build(task, window=2), task)
    assert mean_rounds(sjd_pac.build(task, window=2), task) < plain
