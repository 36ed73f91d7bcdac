"""Fed runs: each path of a program that has few, else a sample of them; how many runs this takes."""

from __future__ import annotations

import random

import pytest

from specverify.checks.fed_runs import fed
from specverify.intercept.everywhere import answered_everywhere

FEW = 4


@pytest.mark.parametrize(
    ("outcomes", "every_path", "runs"), [((3,), True, 3 + 3), ((2, 2), True, 4 + 4), ((2, 2, 2, 2), False, 1 + 4 + 4)]
)
def test_one_run_shows_that_a_program_has_many_paths(outcomes, every_path, runs):
    done = []

    def program(draws):
        done.append(draws)
        with answered_everywhere(draws):
            return [random.choices(range(number))[0] for number in outcomes]

    result = fed(program, FEW)
    assert (result.runs, result.parted, result.every_path) == (FEW if len(outcomes) > 1 else 3, "", every_path)
    assert len(done) == runs
