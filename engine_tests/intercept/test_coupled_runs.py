"""Coupled runs find a wrong rule of interception by themselves, and nothing where the rules are right."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from specverify.checks.coupled_runs import coupled
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.recorded_numbers import ROWS
from specverify.intercept.symbolic import numbers
from test_support.intercept.faults_of_interception import FAULTS

PROGRAMS = tuple({fault.program: None for fault in FAULTS})
CONTROL_RUNS, FAULT_RUNS = 40, 400


def program_of(call):
    def program(draws):
        with answered_everywhere(draws):
            return call()

    return program


def forget_rules():
    """Empty the memories of rules, which may have been changed."""
    for name in [name for name in sys.modules if name.startswith("specverify.intercept.symbolic")]:
        for item in vars(sys.modules[name]).values():
            if hasattr(item, "cache_clear"):
                item.cache_clear()


@pytest.fixture(autouse=True)
def fresh_rules():
    forget_rules()
    yield
    forget_rules()


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("call", PROGRAMS, ids=lambda call: call.__name__)
def test_right_rules_end_as_the_program_does(call):
    assert coupled(program_of(call), CONTROL_RUNS)._replace(ties=()) == (CONTROL_RUNS, "", (), "")


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_wrong_rule_parts_the_runs(fault):
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        assert coupled(program_of(fault.program), FAULT_RUNS).parted


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_planted_in_a_rule_that_exists(fault):
    """A rule that was moved or renamed shows without a run."""
    changed, patched = [], pytest.MonkeyPatch()
    names = {name: getattr(patched, name) for name in ("setattr", "setitem")}

    class Patch:
        def setattr(self, target, name, value, **options):
            before = getattr(target, name)
            names["setattr"](target, name, value, **options)
            changed.append(getattr(target, name) is not before)

        def setitem(self, table, key, value):
            before = table[key]
            names["setitem"](table, key, value)
            changed.append(table[key] is not before)

    try:
        fault.plant(Patch())
    finally:
        patched.undo()
    assert changed
    assert all(changed)


def test_at_least_forty_rules_are_changed():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40


def test_a_program_that_looks_for_the_examiner_parts():
    def call():
        u = np.random.default_rng().random()
        return bool(u < (0.3 if isinstance(u, numbers.SymbolicFloat) else 0.9))

    assert "examined with" in coupled(program_of(call), 400).parted


def test_a_hidden_draw_parts():
    hidden = torch.Generator().manual_seed(1)
    draw = torch.jit.CompilationUnit("def f(x):\n    return torch.bernoulli(x)\n").f  # unseen by Python

    def call():
        with torch.random.fork_rng():
            torch.set_rng_state(hidden.get_state())
            return float(draw(torch.tensor(0.5))), torch.rand(()).item() < 0.5

    result = coupled(program_of(call), 20)
    assert result.parted or result.unrecorded


def test_the_recorder_tells_the_first_call_at_which_runs_part():
    def call():
        rng = np.random.default_rng()
        first = rng.random() < 0.5
        return bool(first), rng.choice(3)

    from specverify.intercept.symbolic import uniform

    with pytest.MonkeyPatch.context() as patch:
        real = uniform.Uniform._ask
        patch.setattr(uniform.Uniform, "_ask", lambda *given: 1 - real(*given))
        assert "it ended with" in coupled(program_of(call), 20).parted


def test_every_answered_call_has_a_row():
    from specverify.intercept.distributions import spelled
    from specverify.intercept.numpy import LAWS

    assert {("numpy", name) for name in LAWS} <= ROWS.keys()
    assert {("torch", name) for name in spelled("torch")} <= ROWS.keys()
    assert {("random", name) for name in spelled("python")} <= ROWS.keys()
