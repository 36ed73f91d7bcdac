"""The rule of one call: its bounds hold what floats make of it, and are no wider than they need."""

from __future__ import annotations

import numpy as np
import pytest

from reference import Draft
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.call_paths import Ending
from specverify.laws.call_rule import EXACT, PmfRow, Rows, added_up, behind, kept, one_by_one, reached
from specverify.laws.law_of_call import call_law
from specverify.laws.rounding import BFLOAT16, FLOAT16, FLOAT32, FLOAT64

SIZE, GAMMA = 3000, 3


def pmfs(rng, count, size):
    found = rng.exponential(size=(count, size)) ** 3
    found[rng.random((count, size)) < 0.1] = 0.0
    return found / found.sum(-1, keepdims=True)


def rows(seed, size=SIZE, store=lambda row: row, near=False):
    rng = np.random.default_rng(seed)
    p, q = pmfs(rng, GAMMA + 1, size), pmfs(rng, GAMMA, size)
    if near:
        q = p[:GAMMA] * (1 + rng.uniform(-1, 1, (GAMMA, size)) * 1e-5)
        q /= q.sum(-1, keepdims=True)
    drafts = tuple(int(rng.choice(size, p=row)) for row in q)
    return Rows(tuple(PmfRow(store(row)) for row in p), tuple(PmfRow(store(row)) for row in q), drafts)


def inside(found, allowed, spare=1e-12):
    return bool(np.all(found >= allowed.low - spare) and np.all(found <= allowed.high + spare))


# The rule itself


@pytest.mark.parametrize("seed", range(4))
def test_without_rounding_the_bounds_are_the_law_of_the_reference(seed):
    given = rows(seed)

    def program(draws):
        draft = Draft(given.drafts, tuple(range(-1, GAMMA - 1)), tuple(row.pmf for row in given.q))
        found = speculative_sampling(draws, lambda tokens: given.p[len(tokens)].pmf, (), draft)
        return Ending(found.tokens)

    law, weights = call_law(program, SIZE), list(reached(given, EXACT))
    for position in range(GAMMA + 1):
        found = law.behind.get(given.drafts[:position])
        assert np.isclose(found.weight if found else 0.0, weights[position].low, atol=1e-12)
        assert np.isclose(weights[position].high, weights[position].low, atol=1e-12)
        if found and found.weight > 1e-9:
            allowed = behind(given, position, EXACT)
            assert np.allclose(found.masses / found.weight, allowed.low, atol=1e-12)
            assert np.allclose(allowed.high, allowed.low, atol=1e-12)


def test_a_draft_that_p_forbids_is_not_kept_and_one_that_q_has_less_of_is():
    given = Rows((PmfRow(np.array([0.0, 1.0])),) * 2, (PmfRow(np.array([0.5, 0.5])),), (0,))
    assert kept(given, 0, EXACT) == (0.0, 0.0)
    assert kept(given._replace(drafts=(1,)), 0, EXACT) == (1.0, 1.0)


# What floats make of it


def in_floats(given, position, dtype, *, scaled, one_after_another):
    """Return what a program has that computes in a dtype: the probability of keeping the draft, the law behind."""

    def total(row):
        return np.cumsum(row)[-1] if one_after_another else row.sum()

    p = given.p[position].pmf.astype(dtype)
    p = p / total(p) if scaled else p
    if position == GAMMA:
        return None, np.float64(p) / np.float64(p).sum()
    q = given.q[position].pmf.astype(dtype)
    q = q / total(q) if scaled else q
    left = np.maximum(p - q, dtype(0))
    left = np.float64(left / total(left))
    draft = given.drafts[position]
    return min(1.0, float(p[draft] / q[draft])), left / left.sum()


WAYS = [(scaled, one_after_another) for scaled in (False, True) for one_after_another in (False, True)]
DTYPES = {np.float64: FLOAT64, np.float32: FLOAT32, np.float16: FLOAT16}


NEAR = [(dtype, near) for dtype in DTYPES for near in (False, True) if not (near and dtype is np.float16)]
"""Rows that are near are the same in float16."""


@pytest.mark.parametrize(("dtype", "near"), NEAR)
def test_what_floats_make_of_the_rule_is_inside_the_bounds(dtype, near):
    """Rows stored in the dtype, as they are or scaled, sums in pairs or one by one."""
    for seed in range(6):
        given = rows(seed, store=lambda row: row.astype(dtype).astype(np.float64), near=near)
        for (scaled, one_after_another), position in ((way, place) for way in WAYS for place in range(GAMMA + 1)):
            ratio, law = in_floats(given, position, dtype, scaled=scaled, one_after_another=one_after_another)
            sums = SIZE * DTYPES[dtype] if one_after_another and dtype is np.float16 else 0.0
            floats = one_by_one(DTYPES[dtype], DTYPES[dtype], SIZE, looked_up=False)
            floats = floats._replace(sums=floats.sums + sums)
            assert inside(law, behind(given, position, floats))
            assert ratio is None or inside(ratio, kept(given, position, floats))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_bounds_an_eighth_as_wide_would_not_hold(dtype):
    """A control: what is allowed is used, so that it is no wider than it must be by more than a factor."""
    outside = 0
    for seed in range(6):
        given = rows(seed)
        for position in range(GAMMA + 1):
            _, law = in_floats(given, position, dtype, scaled=True, one_after_another=False)
            outside += not inside(law, behind(given, position, added_up(DTYPES[dtype] / 64, SIZE)), 0.0)
    assert outside


@pytest.mark.parametrize("epsilon", [FLOAT32, BFLOAT16])
def test_a_token_that_is_lost_is_outside_of_the_bounds_however_large_the_vocabulary(epsilon):
    """Bounds on the whole law would swallow it: each token is bounded by its own entries."""
    given = rows(3, size=100_000)
    for position in range(GAMMA + 1):
        allowed = behind(given, position, one_by_one(epsilon, epsilon, 100_000, looked_up=False))
        law = behind(given, position, EXACT).low.copy()
        far = given.p[position].pmf > 2 * (given.q[position].pmf if position < GAMMA else 0)
        token = int(np.where(far, law, 0.0).argmax())
        assert inside(law, allowed)
        law[token] = 0.0
        assert not inside(law, allowed, 1e-9)


def test_p_and_q_apart_by_rounding_may_leave_anything_of_p_and_nothing_else():
    row = pmfs(np.random.default_rng(0), 1, SIZE)[0]
    given = Rows((PmfRow(row),) * 2, (PmfRow(row),), (int(row.argmax()),))
    allowed = behind(given, 0, added_up(FLOAT32, SIZE))
    assert (allowed.high[row > 0] == 1).all()
    assert (allowed.high[row == 0] == 0).all()
    assert (allowed.low == 0).all()
    assert next(reached(given, added_up(FLOAT32, SIZE))).high < 1e-4


def test_doubtful_entries_may_be_nothing():
    given = Rows((PmfRow(np.array([0.5, 0.25, 0.25]), doubtful=np.array([False, True, True])),), (), ())
    allowed = behind(given, 0, EXACT)
    assert np.allclose(allowed.low, [0.5, 0.0, 0.0])
    assert np.allclose(allowed.high, [1.0, 1 / 3, 1 / 3])
