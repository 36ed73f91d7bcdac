"""Engines in the statistics run: which settings are planned, and that a divided sample has the engine's own law."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specverify.engines import engine_subjects
from specverify.engines.huggingface.generation import prompt_lookup_engine
from specverify.engines.huggingface.programs import engine_program
from specverify.engines.huggingface.real_generate import prompt_lookup_counts
from specverify.engines.huggingface.tiny_models import SETTINGS
from specverify.laws.divided import program_counts
from specverify.laws.enumeration import program_law
from specverify.run.stats import QUICK, USUAL, plan_statistics
from specverify.statistics import goodness_of_fit
from specverify.subjects.subject import Method

IMPROBABLE = 1e-9
ENGINES = engine_subjects()


def test_engines_are_planned_with_their_own_numbers_and_finely_with_answered_ones():
    plan = plan_statistics(1e-6, 0, USUAL)
    of_engines = [item for item in plan.settings if item.subject in ENGINES]
    own = [item for item in of_engines if item.setting.method is Method.OWN]
    divided = [item for item in of_engines if item.setting.method is Method.DIVIDED]
    both = ("hf:assisted", "hf:prompt-lookup")
    assert {item.subject for item in divided} == set(both)
    assert [item.subject for item in own] == [
        name for name in ENGINES for _ in (SETTINGS[::2] if name in both else SETTINGS)
    ]
    assert {item.setting.name.partition(" ")[0] for item in own if item.subject in both} == {"llama", "gpt2"}
    named = plan_statistics(1e-6, 0, USUAL, both)
    assert len([item for item in named.settings if item.setting.method is Method.OWN]) == 2 * len(SETTINGS)
    assert all(item.setting.detect == USUAL.divided for item in divided)
    assert len(plan_statistics(1e-6, 0, QUICK).settings) == len(plan.settings) - len(of_engines)


def test_no_setting_of_an_engine_is_sampled_twice():
    """Neither by name nor by what draws it: settings that two subjects share are one sampler each."""
    settings = [item.setting for item in plan_statistics(1e-6, 0, USUAL).settings if item.subject in ENGINES]
    samplers = [(item.sample.func, *item.sample.args) for item in settings]
    assert len(set(samplers)) == len(samplers)


def test_the_committed_table_is_of_all_tests_that_are_planned_now():
    page = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text("utf-8")
    tests = int(re.search(r"over (\d+) planned tests", page)[1])
    assert tests == plan_statistics(1e-6, 0, USUAL).budget.parts


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("setting", SETTINGS[::2], ids=lambda setting: setting.name)
def test_a_divided_sample_of_an_engine_has_its_enumerated_law(setting):
    runs = []
    with engine_program(setting, prompt_lookup_engine).open() as program:
        law = program_law(program)
        counts = program_counts(lambda draws: (runs.append(None), program(draws))[1], 10**6, 1)
    assert counts.total() == 10**6
    assert len(runs) <= law.runs
    assert goodness_of_fit(counts, {new: float(mass) for new, mass in law.probabilities.items()}).p_value > IMPROBABLE


def test_a_divided_sample_of_another_temperature_does_not_fit():
    """The control of the test above."""
    setting = SETTINGS[0]
    with engine_program(setting._replace(temperature=1.1), prompt_lookup_engine).open() as program:
        counts = program_counts(program, 10**6, 1)
    with engine_program(setting, prompt_lookup_engine).open() as program:
        law = program_law(program)
    assert goodness_of_fit(counts, {new: float(mass) for new, mass in law.probabilities.items()}).p_value < IMPROBABLE


@pytest.mark.thorough
def test_divided_samples_and_the_engines_own_are_of_one_law():
    setting = SETTINGS[0]
    with engine_program(setting, prompt_lookup_engine).open() as program:
        divided = program_counts(program, 10**7, 1)
    own = prompt_lookup_counts(setting, 300, 2)
    share = {new: number / divided.total() for new, number in divided.items()}
    assert goodness_of_fit(own, share).p_value > IMPROBABLE
