"""Fed runs: a program that is given the numbers of a path ends as the path, and wrong rules show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine_tests.intercept.test_coupled_runs import PROGRAMS, forget_rules, program_of
from specverify.checks.coupled_runs import coupled
from specverify.checks.fed_runs import fed
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.recorded_numbers import ROWS
from specverify.intercept.replayer import FED
from specverify.intercept.symbolic import numbers
from test_support.intercept.drawing_calls import evaluated, lines_of, of_this_python
from test_support.intercept.faults_of_interception import FAULTS
from test_support.intercept.numpy_and_random import NUMPY, RANDOM
from test_support.intercept.torch_under_test import TORCH

RUNS, NOTICED = 40, 40
"""Paths of a program, and faults of interception that fed runs find alone: weights are for coupled runs to find."""
LINES = [
    pytest.param(library, line, call, id=f"{line.place} {name}")
    for library in (NUMPY, RANDOM, TORCH)
    for line in filter(of_this_python, lines_of(library))
    if line.kind == "answered"
    for name, call in zip(line.names(), line.calls(), strict=True)
]


@pytest.fixture(autouse=True)
def fresh_rules():
    forget_rules()
    yield
    forget_rules()


@pytest.mark.parametrize("call", PROGRAMS, ids=lambda call: call.__name__)
def test_right_rules_end_as_the_program_does(call):
    found = fed(program_of(call), 16)
    assert (found.parted, found.unrecorded, found.narrow) == ("", "", 0)
    assert found.runs


@pytest.mark.thorough(keep=24)
@pytest.mark.parametrize(("library", "line", "call"), LINES)
def test_every_answered_call_is_given_its_numbers(library, line, call):
    def program(draws):
        with answered_everywhere(draws):
            return evaluated(library, line, call)

    found = fed(program, 16)
    assert (found.parted, found.unrecorded) == ("", "")
    assert found.runs


def test_calls_are_given_numbers_where_numbers_are_recorded():
    assert FED.keys() == ROWS.keys()


@pytest.mark.thorough
def test_many_wrong_rules_part_the_runs():
    noticed = 0
    for fault in FAULTS:
        forget_rules()
        with pytest.MonkeyPatch.context() as patch:
            fault.plant(patch)
            noticed += bool(fed(program_of(fault.program), RUNS).parted)
    assert noticed >= NOTICED


def test_a_path_that_seldom_comes_is_run():
    def call():
        u = np.random.default_rng().random()
        rare = bool(u < 1e-4)
        return rare, rare and not isinstance(u, numbers.SymbolicFloat)

    assert not coupled(program_of(call), 100).parted
    found = fed(program_of(call), 2)
    assert "the path with (True, False)" in found.parted


def test_numbers_of_a_race_and_of_a_sum_are_in_their_cell():
    def call():
        one, other = torch.rand(2)
        winner = int((torch.tensor([0.2, 0.8]) / torch.empty(2).exponential_()).argmax())
        return winner, bool(one + other < 0.3), bool(one < 0.25)

    found = fed(program_of(call), 20)
    assert (found.parted, found.every_path) == ("", True)
    assert found.runs == 8


def test_a_program_that_draws_more_when_it_runs_as_it_is_parts():
    def call():
        rng = np.random.default_rng()
        u = rng.random()
        if not isinstance(u, numbers.SymbolicFloat):
            rng.random()
        return bool(u < 0.5)

    assert "of which 0 are left" in fed(program_of(call), 5).parted


def test_a_shape_without_elements_draws_nothing():
    def call():
        kept = bool(torch.rand(()) < 0.5)
        torch.rand_like(torch.zeros(1, 0))
        return kept

    assert coupled(program_of(call), 5).runs == 5
    assert fed(program_of(call), 5).runs == 2


def test_an_error_is_compared_by_its_type():
    def call():
        rng = np.random.default_rng()
        return bool(rng.random() < 0.5) and int(rng.choice(2, p=[np.nan, 1.0]))

    assert not coupled(program_of(call), 10).parted
    assert not fed(program_of(call), 10).parted
