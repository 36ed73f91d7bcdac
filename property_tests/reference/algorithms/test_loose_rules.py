"""Cactus and FLy, which accept more than exactness allows: against plain loops, their budgets and their limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task
from reference.algorithms import cactus, fly
from reference.algorithms.cactus import BITS, kept_probability, raised, raised_mass, root
from reference.algorithms.fly import staying, top_entropy
from reference.coupling import overlap
from specverify.laws.enumeration import decoder_law
from specverify.laws.model_strategies import pmf_pairs
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, flips, law_of, pmf, project

F = Fraction
budgets = st.sampled_from([F(1, 1000), F(1, 50), F(1, 5), F(2)])


def tasks_of(shapes, horizon):
    return [Task(*table_pair(shape, 3, seed), horizon=horizon) for shape in shapes for seed in range(2)]


# Cactus


def divergence(h, p):
    return math.fsum(float(a) * math.log(a / b) for a, b in zip(h, p, strict=True) if a > 0)


def cactus_loop(task, delta, gamma):
    """``solve_constraint`` for each draft, min(h, 1) over q, then (h - q)+; a bonus of p."""

    def lifted(p, d):
        high = min(p[d] + F(math.isqrt(int(2 * delta * p[d] * (1 - p[d]) * 4**32)), 2**32), F(1))
        scale = (1 - high) / (1 - p[d]) if p[d] < 1 else F(1)
        return [high if v == d else p[v] * scale for v in range(len(p))]

    def program(draws):
        text = [0]
        while len(text) <= task.horizon:
            drafts, rows = [], []
            for k in range(min(gamma, task.horizon - len(text))):
                rows.append(task.draft(tuple(text + drafts)))
                drafts.append(draws.categorical(rows[-1], ("draft", len(text), k)))
            for k, (d, q) in enumerate(zip(drafts, rows, strict=True)):
                h = lifted(task.target(tuple(text)), d)
                if not flips(draws, min(h[d] / q[d], F(1)), ("coin", len(text), k)):
                    left = [max(a - b, F(0)) for a, b in zip(h, q, strict=True)]
                    law = np.array([mass / sum(left) for mass in left], dtype=object)
                    text.append(draws.categorical(law, ("again", len(text))))
                    break
                text.append(d)
            else:
                text.append(draws.categorical(task.target(tuple(text)), ("bonus", len(text))))
        return tuple(text[1:])

    return program


def test_cactus_is_its_loop():
    for task in tasks_of(("generic", "zeros"), 3):
        found = decoder_law(cactus.build(task, delta=F(1, 10), gamma=2), (0,)).probabilities
        assert found == law_of(cactus_loop(task, F(1, 10), 2))


@examples(20)
@given(pmf_pairs(3), budgets)
def test_the_others_keep_their_proportions_and_the_draft_is_raised(pair, delta):
    p, q = pair
    for token in range(3):
        h = raised(p, token, delta)
        assert sum(h) == 1
        assert h[token] == raised_mass(p, token, delta) >= p[token]
        others = [v for v in range(3) if v != token]
        assert all(h[v] * (1 - p[token]) == p[v] * (1 - h[token]) for v in others) or p[token] == 1
        assert kept_probability(p, q, token, delta) >= min(1, p[token] / q[token] if q[token] else 1) * (p[token] > 0)
        assert all(h[v] == 0 for v in range(3) if p[v] == 0)


@examples(20)
@given(pmf_pairs(3), budgets)
def test_the_divergence_is_within_its_budget_up_to_one_half(pair, delta):
    """Of two coins: their second order bounds it from above as long as p (1 - p) grows, which is up to 1/2."""
    p, _ = pair
    for token in range(3):
        h = raised(p, token, delta)
        if h[token] <= F(1, 2):
            assert divergence(h, p) <= delta + 1e-12


def test_the_divergence_is_above_its_budget_where_the_draft_was_likely_already():
    p, delta = pmf("9/10", "1/10"), F(1, 20)
    h = raised(p, 0, delta)
    assert float(h[0]) == pytest.approx(0.9 + math.sqrt(0.1 * 0.9 * 0.1))
    assert divergence(h, p) == pytest.approx(0.0845, abs=1e-4)
    assert divergence(h, p) > 1.6 * delta


def test_more_is_accepted_than_any_lossless_rule_accepts_and_paid_for():
    """2 delta p (1 - p) = .0064 for p = 1/5 and delta = 1/50: .28 of .6 is kept, where .2 would be."""
    task = Task(always(P), always(Q), horizon=2)
    assert float(raised_mass(P, 0, F(1, 50))) == pytest.approx(0.28, abs=2**-BITS)
    rows = cactus.build(task, delta=F(1, 50), gamma=1)
    kept = law_of(lambda draws: rows.step(draws, rows.init((0,)))[1].accepted)
    assert kept[1] == raised_mass(P, 0, F(1, 50)) + F(3, 10) + F(1, 10) > overlap(P, Q)
    first = project(cactus.declared_law(task, (0,), F(1, 50), 1), lambda text: text[0])
    assert 0 < distance(first, as_law(P)) <= kept[1]


@examples(20)
@given(st.fractions(0, 1, max_denominator=50))
def test_a_rational_root_is_below_by_less_than_its_last_place(value):
    assert root(value) ** 2 <= value < (root(value) + F(1, 2**BITS)) ** 2
    assert float(root(value)) == pytest.approx(root(float(value)), abs=2**-BITS)


def test_a_negative_budget_is_refused():
    with pytest.raises(ValueError, match="delta is -1, expected a divergence >= 0"):
        raised(P, 0, -1)


# FLy


def fly_loop(task, window, threshold, gamma):
    """Both draws of every place, the pattern looked for everywhere, the end and the sure places taken back."""

    def program(draws):
        text = [0]
        while len(text) <= task.horizon:
            drafts = []
            for _ in range(min(gamma, task.horizon - len(text))):
                row = task.draft(tuple(text + drafts)).tolist()
                drafts.append(row.index(max(row)))
            k = len(drafts)
            rows = [task.target(tuple(text + drafts[:i])) for i in range(k)]
            z = [[draws.categorical(p, ("z", len(text), i, n)) for n in range(2)] for i, p in enumerate(rows)]
            met = [drafts[i] in z[i] for i in range(k)]
            found = [i + window <= k and not met[i] and all(met[i + 1 : i + window]) for i in range(k)]
            accepted = [met[i] or found[i] for i in range(k)]
            accepted[-window:] = [a and m for a, m in zip(accepted[-window:], met[-window:], strict=True)]
            sure = [-sum(x * math.log(x) for x in sorted(map(float, p))[-3:] if x) < threshold for p in rows]
            accepted = [accepted[i] and not (sure[i] and not met[i]) for i in range(k)]
            stay = accepted.index(False) if False in accepted else k
            text += drafts[:stay]
            last = z[stay][0] if stay < k else draws.categorical(task.target(tuple(text)), ("bonus", len(text)))
            text.append(last)
        return tuple(text[1:])

    return program


@pytest.mark.parametrize(("window", "threshold", "gamma"), [(1, 0.9, 2), (2, 0.5, 3)])
def test_fly_is_its_loop(window, threshold, gamma):
    for seed in range(2):
        task = Task(*table_pair("generic", 2, seed), horizon=4)
        found = decoder_law(fly.build(task, window, threshold, gamma), (0,)).probabilities
        assert found == law_of(fly_loop(task, window, threshold, gamma))


def test_a_miss_stays_before_matches_where_the_target_is_unsure_and_never_at_the_end():
    yes, no = True, False
    assert staying((no, yes, yes, yes), (yes,) * 4, 3) == 4
    assert staying((no, yes, yes, yes), (no, yes, yes, yes), 3) == 0
    assert staying((no, yes, yes), (yes,) * 3, 3) == 0
    assert staying((yes, no, no, yes, yes), (yes,) * 5, 2) == 1
    assert staying((yes, yes), (no, no), 1) == 2
    assert staying((no, no, no), (yes,) * 3, 1) == 2


def test_two_draws_meet_a_draft_more_often_than_one():
    """The draft is 0 and p(0) = 1/5: it is written with probability 9/25, the others share the rest as p has them."""
    task = Task(always(P), always(Q), horizon=2)
    first = project(fly.declared_law(task, (0,), 1, 0.5, 1), lambda text: text[0])
    assert first == {0: F(9, 25), 1: F(16, 25) * F(3, 8), 2: F(16, 25) * F(5, 8)}


def test_the_entropy_is_of_three_entries_that_need_not_sum_to_one():
    assert top_entropy(pmf("1/4", "1/4", "1/4", "1/4")) == pytest.approx(0.75 * math.log(4))
    assert top_entropy(pmf(1, 0)) == 0


def test_a_window_without_a_place_is_refused():
    with pytest.raises(ValueError, match="window is 0, expected at least 1"):
        fly.build(Task(always(P), always(Q)), window=0)
