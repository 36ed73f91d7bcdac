"""The law of an edge-cloud session: that of the target in the exact modes, the known one in the others."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from reference import Task, accepted_ratio
from reference.algorithms import edge_cloud_timeout
from reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, as_law, distance, examples, law_of, project
from test_support.reference.edge_cloud_sessions import (
    BACKWARDS,
    GOLDEN,
    LOST,
    TWICE,
    UNANSWERED,
    Unreliable,
    every_mode,
    exact_modes,
    first_of_round,
    loses_zeros,
    scripts,
    session,
)


@exact_modes
@pytest.mark.parametrize("script", [(), (LOST, UNANSWERED) * 3, (TWICE, BACKWARDS) * 3], ids=["kept", "lost", "again"])
@pytest.mark.parametrize("shape", ["generic", "zeros", "peaked"])
def test_a_session_has_the_law_of_the_target_whatever_the_link_does(mode, script, shape):
    task = Task(*table_pair(shape, 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), mode, partial(Unreliable, script)))
    assert found == target_law(task, (0, 1))


@exact_modes
@examples(4)
@given(task=tasks(2, 2, 3), prompt=prompts(2), script=scripts)
def test_the_law_survives_any_script(mode, task, prompt, script):
    found = law_of(lambda draws: session(draws, task, prompt, mode, partial(Unreliable, script)))
    assert found == target_law(task, prompt)


@pytest.mark.thorough(keep=3)
@every_mode
@examples(60)
@given(task=tasks(3, 1, 8), prompt=prompts(3), script=scripts, seed=st.integers(0, 999))
def test_nothing_is_emitted_twice_or_lost_whatever_the_link_does(mode, task, prompt, script, seed):
    """One uniform for each occurrence of a site: a draw made again would shift every one after it."""
    plain = session(Tape(seed), task, prompt, mode)
    assert session(Tape(seed), task, prompt, mode, partial(Unreliable, script)) == plain


@exact_modes
@examples(6)
@given(task=tasks(2, 2, 4), prompt=prompts(2), start=st.integers(0, 3))
def test_the_length_of_a_draft_may_follow_the_accepted_share(mode, task, prompt, start):
    decoder = edge_cloud_decoder(task, mode, accepted_ratio(start, 0, 3))
    assert decoder_law(decoder, prompt).probabilities == target_law(task, prompt)


@exact_modes
def test_even_a_link_that_loses_by_content_cannot_bend_the_law(mode):
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    assert law_of(lambda draws: session(draws, task, (0, 1), mode, loses_zeros)) == target_law(task, (0, 1))


@pytest.mark.parametrize(
    ("mode", "law", "bias"),
    [
        ("sparse-q", (".2", ".3", ".5"), "0"),
        ("two-phase", (".2", ".3", ".5"), "0"),
        ("match", (".2", ".3", ".5"), "0"),
        ("gumbel", (".2", ".3", ".5"), "0"),
        ("scalar-q", (".20", ".45", ".35"), ".15"),
        ("shortcut", (".28", ".42", ".30"), ".20"),
        ("likelier", (".12", ".48", ".40"), ".18"),
    ],
)
def test_the_known_pair_has_the_known_law_in_every_mode(mode, law, bias):
    found = first_of_round(mode)
    assert found == {token: Fraction(mass) for token, mass in enumerate(law)}
    assert distance(found, as_law(P)) == Fraction(bias)


def test_a_silence_that_commits_the_first_draft_costs_its_probability_times_the_distance():
    law = decoder_law(edge_cloud_timeout.build(GOLDEN, Fraction(1, 10), 1), (0,)).probabilities
    first = project(law, lambda new: new[0])
    assert distance(first, as_law(P)) == Fraction(1, 10) * Fraction(2, 5)


def most_accepted(p, steps):
    """Return the largest mean of P(out = y) over all q on a grid, for a verifier told (p, y, q(y)) that is lossless."""
    size = len(p)
    grid = [q for q in np.ndindex(*[steps + 1] * size) if sum(q) == steps]
    shape = (size, steps + 1, size)
    equations = np.zeros((len(grid) * size + size * (steps + 1), np.prod(shape)))
    right, gain = [], np.zeros(shape)
    for row, (q, v) in enumerate((q, v) for q in grid for v in range(size)):
        for y, mass in enumerate(q):
            equations[row].reshape(shape)[y, mass, v] = mass / steps
            gain[y, mass, v] += (y == v) * mass / steps / len(grid)
        right.append(p[v])
    for row, (y, mass) in enumerate(np.ndindex(size, steps + 1), start=len(right)):
        equations[row].reshape(shape)[y, mass] = 1
    right += [1.0] * (size * (steps + 1))
    solved = linprog(-gain.ravel(), A_eq=equations, b_eq=right, bounds=(0, 1), method="highs")
    assert solved.success
    return -solved.fun, np.array(grid) / steps


@pytest.mark.parametrize("steps", [4, 6, 8])
@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.1, 0.1, 0.8)])
def test_with_scalars_alone_nothing_lossless_beats_sample_and_match(p, steps):
    best, grid = most_accepted(p, steps)
    assert best == pytest.approx(float(np.mean(grid @ p)), abs=1e-9)
    assert best < np.mean(np.minimum(grid, p).sum(axis=1)) - 0.05


@pytest.mark.parametrize("p", [(0.2, 0.8), (0.5, 0.5)])
def test_with_two_tokens_the_scalar_is_the_whole_row(p):
    best, grid = most_accepted(p, 10)
    assert best == pytest.approx(float(np.mean(np.minimum(grid, p).sum(axis=1))), abs=1e-9)
