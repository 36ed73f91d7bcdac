"""What is kept for the checks of a subject is forgotten when it is done with, whichever check kept it."""

from __future__ import annotations

import math
import pkgutil
from importlib import import_module

import pytest

import specverify.checks
from specverify.checks import checks_named, forgetting
from specverify.checks.check import paths_of_program
from specverify.checks.compared_laws import law_of_opened
from specverify.laws.paths import PROBES
from specverify.run.catalogue import find_subject
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject

FEW = 32
"""What keeps no more than so many does not matter, whatever they are."""


def kept_by_checks():
    """Return the functions in the files of checks that keep many results."""
    every = [file.name for file in pkgutil.walk_packages(specverify.checks.__path__, "specverify.checks.")]
    files = [name for name in every if ".kernels" not in name]  # a kernel's rows are kept from subject to subject
    named = {name: vars(import_module(name)) for name in files}
    kept = [one for name, found in named.items() for one in found.values() if getattr(one, "__module__", "") == name]
    return [one for one in kept if hasattr(one, "cache_info") and (one.cache_info().maxsize or FEW + 1) > FEW]


def test_whatever_keeps_many_results_is_forgotten():
    assert {one.__name__ for one in forgetting._KEPT} == {one.__name__ for one in kept_by_checks()}


@pytest.mark.parametrize(
    ("name", "checks", "keeps"),
    [
        ("reference:speculative-sampling", ("law_is_target", "acceptance_is_optimal"), {"law_in", "first_rounds"}),
        ("mutant:argmax-for-a-draw", ("outputs_are_fresh",), {"after_calls"}),
    ],
)
def test_what_was_worked_out_for_a_subject_is_forgotten(name, checks, keeps):
    for _ in verify_subject(find_subject(name), Checklist(checks_named(checks), quick=True)):
        pass
    assert keeps <= {one.__name__ for one in kept_by_checks() if one.cache_info().currsize}
    forgetting.forget_laws()
    assert not [one.__name__ for one in kept_by_checks() if one.cache_info().currsize]


def test_what_is_known_of_a_made_engine_is_kept_for_the_next_check():
    """Checks go through all its programs in turn: were fewer kept, nothing would be found again."""
    runs = []

    def decode(prompts):
        runs.append(len(prompts))
        return [[0] for _ in prompts]

    subject = made_subject(lambda scenario: Made(decode, batched=True, stops=True), "an engine")
    found = []
    for _ in range(2):
        runs.clear()
        for program in subject.programs:
            paths_of_program(program.open, math.inf, PROBES)
            law_of_opened(program.open, 10, 1)
        found.append(len(runs))
    forgetting.forget_laws()
    assert found[0] > 0
    assert found[1] == 0
