"""Exact laws of kernels by their cells: equal as rationals to the enumerated law, on hundreds of tables.

The kernel under test is ``verify_batched``. A second one, written here for one draft at a time and entirely in float32,
carries the planted bugs.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from reference import Task, chain, overlap, verify_batched
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.enumeration import program_law
from specverify.laws.grid import GridRefused, chain_breakpoints, chain_grid_law, grid_law, grid_tables
from specverify.laws.law import target_law, total_variation

PROMPT = (0,)
TABLES = [(3, denominator, seed) for denominator, seed in product(range(2, 8), range(50))]


def batched(dtype, p, q, draft, uniforms):
    """``verify_batched`` on one (p, q, draft) for every row of uniforms."""
    rows, gamma = len(uniforms), len(draft)
    p, q = (
        np.broadcast_to(p.astype(dtype), (rows, *p.shape)),
        np.broadcast_to(q.astype(dtype), (rows, gamma, p.shape[1])),
    )
    tokens = np.broadcast_to(np.array(draft, dtype=np.int64), (rows, gamma))
    lengths = np.full(rows, gamma)
    return verify_batched(p, q, tokens, lengths, uniforms[:, :-1].astype(dtype), uniforms[:, -1].astype(dtype)).emitted


def right_residual(p, q, i):
    return np.maximum(p[i] - q[i], 0)


def from_target(p, q, i):
    return p[i]


def row_below(p, q, i):
    return np.maximum(p[min(i + 1, len(p) - 1)] - q[i], 0)


def one_by_one(p, q, draft, uniforms, *, residual=right_residual, less=np.less, shift=0, reuse=False):
    """A verifier, float32 throughout. Planted: ``residual``, ``less``, rows ``shift`` too far, uniforms ``reuse``d."""
    p, q, uniforms = p.astype(np.float32), q.astype(np.float32), uniforms.astype(np.float32)
    gamma = len(draft)
    emitted, alive = np.full((len(uniforms), gamma + 1), -1), np.ones(len(uniforms), dtype=bool)
    for i in range(gamma + 1):
        accept = np.zeros_like(alive)
        if i < gamma:
            accept = alive & less(uniforms[:, i] * q[i, draft[i]], p[min(i + shift, gamma), draft[i]])
            emitted[accept, i] = draft[i]
        ended = alive & ~accept
        weights = residual(p, q, i) if i < gamma else p[gamma]
        cumulative = np.cumsum(weights if weights.any() else p[i], dtype=np.float32)
        final = uniforms[ended, i if reuse and i < gamma else -1]
        emitted[ended, i] = np.searchsorted(cumulative, final * cumulative[-1], side="right")
        alive = accept
    return emitted


def enumerated(models, gamma):
    """The exact law of one round of the reference's verifier, by the enumerator."""
    target, drafter = models

    def program(draws):
        tokens, pmfs = (), ()
        for i in range(gamma):
            pmfs = (*pmfs, drafter(PROMPT + tokens))
            tokens = (*tokens, draws.categorical(pmfs[i], ("draft", i)))
        return speculative_sampling(draws, target, PROMPT, chain(tokens, pmfs)).tokens

    return program_law(program).probabilities


def completed(law, target, length):
    """The law once the target alone has filled every outcome up to ``length`` tokens."""
    whole = {}
    for tokens, mass in law.items():
        for rest, share in target_law(Task(target, horizon=length - len(tokens)), PROMPT + tokens).items():
            whole[tokens + rest] = whole.get(tokens + rest, 0) + mass * share
    return whole


KERNELS = {
    "batched, float32": partial(batched, np.float32),
    "batched, float64": partial(batched, np.float64),
    "one by one, float32": one_by_one,
}


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_grid_law_is_the_exact_law_of_hundreds_of_tables(kernel):
    """Gamma = 2. No tolerance; and filled up by the target it is the target's law, which no verifier computed."""
    assert len(TABLES) == 300
    for vocabulary, denominator, seed in TABLES:
        models = grid_tables(vocabulary, denominator, seed)
        law = chain_grid_law(KERNELS[kernel], models, PROMPT, gamma=2)
        assert law.probabilities == enumerated(models, gamma=2)
        assert completed(law.probabilities, models[0], 3) == target_law(Task(models[0], horizon=3), PROMPT)


@pytest.mark.parametrize("gamma", [0, 1, 3])
def test_other_draft_lengths(gamma):
    for seed in range(10):
        models = grid_tables(3, 4, seed)
        law = chain_grid_law(KERNELS["batched, float32"], models, PROMPT, gamma)
        assert law.probabilities == enumerated(models, gamma)


def test_every_subset_sum_is_a_breakpoint_of_the_last_draw():
    """With p = (1/2, 1/4, 1/4) and q = (1, 0, 0) the residual splits at 1/2, p and its subsets at quarters."""
    p, q = (np.array([Fraction(mass, 4) for mass in row], dtype=object) for row in ((2, 1, 1), (4, 0, 0)))
    last = {Fraction(i, 4) for i in range(4)}
    assert chain_breakpoints([p, p], [q], (0,)) == ({Fraction(1, 2)}, last)


def test_steps_off_the_breakpoints_are_found():
    """A kernel that steps at 1/3 where only 1/2 is known: its law, but for a sliver beside the step."""
    law = grid_law(lambda uniforms: (uniforms > 1 / 3).astype(int), [{Fraction(1, 2)}])
    assert 0 < law.missing < Fraction(1, 2**14)
    assert law.probabilities[0,] < Fraction(1, 3) < law.probabilities[0,] + law.missing
    assert sum(law.probabilities.values()) + law.missing == 1


def test_what_the_budget_leaves_is_missing():
    law = grid_law(lambda uniforms: (uniforms > 1 / 3).astype(int), [{Fraction(1, 2)}], budget=12)
    assert (law.runs, law.missing) == (10, Fraction(1, 2))


# Planted bugs, by exact total variation


def distance(models, gamma, **planted):
    """TV of a planted kernel from the right law, a rational at least: what lies beside wrong steps may be missing."""
    law = chain_grid_law(partial(one_by_one, **planted), models, PROMPT, gamma)
    found = total_variation(law, enumerated(models, gamma))
    assert isinstance(found.low, Fraction)
    assert found.high - found.low <= law.missing < 1e-2
    return found.low


PLANTED = {
    "residual from p": dict(residual=from_target),
    "residual row off by one": dict(residual=row_below),
    "accept row off by one": dict(shift=1),
    "final uniform is the accept uniform": dict(reuse=True),
}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_refuted(planted):
    """One table is enough, being exact. On some a bug has nothing to spoil: where p = q, on point masses."""
    distances = [distance(grid_tables(3, 4, seed), 2, **planted) for seed in range(40)]
    assert max(distances) > 0


def test_resampling_from_the_target_is_off_by_its_closed_form():
    """One draft: the law of the first token is min(p, q) + TV(p, q) p, a known rational distance from p."""
    for seed in range(12):
        models = grid_tables(3, 4, seed)
        p, q = (model(PROMPT) for model in models)
        law = chain_grid_law(partial(one_by_one, residual=from_target), models, PROMPT, 1).probabilities
        first = [sum(mass for tokens, mass in law.items() if tokens[0] == token) for token in range(3)]
        assert first == (np.minimum(p, q) + (1 - overlap(p, q)) * p).tolist()


def test_a_uniform_used_twice_is_off_by_a_known_rational():
    """One draft. A residual of one token, or a certain rejection, leaves the law right whatever u is used.

    With p = (1/2, 1/4, 1/4) and q = (1, 0, 0) the draft is rejected when u >= 1/2, and the residual (0, 1/2, 1/2)
    splits at 1/2, so that u always takes token 2: law (1/2, 0, 1/2), TV 1/4.
    """
    cases = {
        ("1/4 1/4 1/2", "1/2 1/2 0"): Fraction(0),
        ("0 1/2 1/2", "1 0 0"): Fraction(0),
        ("1/2 1/4 1/4", "1 0 0"): Fraction(1, 4),
    }
    for rows, wanted in cases.items():
        p, q = (np.array([Fraction(mass) for mass in row.split()], dtype=object) for row in rows)
        found = distance(((lambda tokens, p=p: p), (lambda tokens, q=q: q)), 1, reuse=True)
        assert wanted - Fraction(1, 10**4) <= found <= wanted


def test_the_side_of_a_breakpoint_is_invisible():
    """``u q <= p`` differs from ``u q < p`` on breakpoints alone, and no row is one: test_batched sees it."""
    assert {distance(grid_tables(3, 4, seed), 2, less=np.less_equal) for seed in range(12)} == {0}


# What is refused


def test_dyadic_floats_are_on_a_grid():
    p, q = [np.array([0.25, 0.75])] * 2, [np.array([0.5, 0.5])]
    assert chain_breakpoints(p, q, (0,)) == ({Fraction(1, 2)}, {0, Fraction(1, 4), Fraction(3, 4)})
    law = grid_law(partial(batched, np.float32, np.array(p), np.array(q), (0,)), chain_breakpoints(p, q, (0,)))
    assert law.probabilities == {(0, 0): Fraction(1, 8), (0, 1): Fraction(3, 8), (1,): Fraction(1, 2)}
    assert (law.runs, law.missing) == (42, 0)


def test_more_cells_than_the_budget_are_refused():
    with pytest.raises(GridRefused, match=r"8 cells take 88 rows, and the budget is 87: use fewer drafts"):
        grid_law(lambda uniforms: uniforms, [{Fraction(1, 10)}] * 3, budget=87)


def test_a_kernel_that_loses_rows_is_refused():
    with pytest.raises(ValueError, match=r"the kernel answered an array \(9, 1\), expected \[10, tokens\]"):
        grid_law(lambda uniforms: np.zeros((len(uniforms) - 1, 1), dtype=int), [{Fraction(1, 4)}])


@pytest.mark.parametrize("denominator", range(1, 9))
def test_tables_are_pmfs_of_the_denominator(denominator):
    equal = 0
    for seed in range(60):
        target, drafter = grid_tables(3, denominator, seed)
        p, q = [target(PROMPT), target((*PROMPT, 1))], [drafter(PROMPT)]
        assert sum(p[0]) == sum(q[0]) == 1
        assert all(denominator % mass.denominator == 0 for row in (*p, *q) for mass in row)
        equal += p[0].tolist() == q[0].tolist()
    assert 0 < equal <= 60
    assert equal < 60 or denominator == 1
