"""Holes of the instrument itself, opened one at a time: what guards against each is shown to be what guards.

Every row is sound as it is, and with the hole it is not: an engine is judged otherwise than it must be, or nothing is
said where something must be. What one layer misses the next one often sees; such a row asks the layer itself.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from engine_tests.soundness.test_token_ids_and_dtypes import from_the_target, law_is_target
from specverify.base.verdict import Status
from specverify.checks import compared_laws, moved_replays, program_is_its_draws
from specverify.intercept import everywhere, refusals, streams
from specverify.intercept import numpy as numpy_calls
from specverify.intercept.cpython import aliases, generator_states
from specverify.intercept.cpython.sandbox import look_around, moved
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import PROCESS
from specverify.intercept.torch import generators as torch_streams
from specverify.intercept.torch import passes
from specverify.laws.draws import Narrated, Tape
from specverify.run import verify
from specverify.subjects.subject import Variant
from specverify.testing import plans
from test_support.soundness.sources_of_randomness import HIDDEN, SOURCES, swallowing
from tools.pages.sources_page import RIGHT, WRONG, verdicts

WATCHED = np.random.default_rng(11)


def nothing(*_, **__):
    """Stand for a guard that is not there."""


def exact(source):
    statuses = [verdicts(SOURCES[source], p)["law_is_target"].status for p in (RIGHT, WRONG)]
    return statuses == [Status.HOLDS, Status.REFUTED]


def unknown(source):
    return {verdicts(HIDDEN[source], p)["law_is_target"].status for p in (RIGHT, WRONG)} == {Status.UNKNOWN}


def refused(call):
    try:
        with answered_everywhere(Tape(0)):
            call()
    except NeedsValue:
        return True
    return False


def threads_stay_outside(patch):
    patch.setattr(everywhere, "threads_enter", lambda *_: nullcontext())
    patch.setattr(threading, "excepthook", nothing)  # a refusal in a thread is printed then


def threads_are_answered():
    return exact("torch.rand in a thread")


def names_are_not_looked_for(patch):
    patch.setattr(aliases, "find_aliases", nothing)
    PROCESS.aliases.clear()


def names_are_answered():
    return exact("default_rng(0).random kept in the module")


def types_keep_their_methods(patch):
    patch.setattr(numpy_calls, "METHODS", {})


def generators_of_modules_are_answered():
    return exact("default_rng(0) of the module")


def torch_states_are_not_compared(patch):
    patch.setattr(torch_streams.TorchStreams, "_found", nothing)


def scripted_draws_are_refused():
    scripted = torch.jit.CompilationUnit("def toss():\n    return bool(torch.rand([]) < 0.5)\n")
    return refused(scripted.toss)


def numpy_states_are_not_compared(patch):
    patch.setattr(streams.Answers, "check", nothing)


def draws_past_the_methods_are_refused():
    draw = numpy_calls.REAL[np.random.RandomState]["random_sample"]
    return refused(lambda: draw(numpy_calls.OWNER))


def refusals_can_be_swallowed(patch):
    patch.setattr(refusals, "refused", nothing)


def swallowed_refusals_come_out():
    return refused(lambda: swallowing(RIGHT))


def replays_stay_in_one_world(patch):
    patch.setattr(moved_replays, "moved", lambda _: nullcontext())


def clocks_are_noticed():
    return unknown("time.time in whole seconds")


def engines_are_not_asked(patch):
    verifiers_alone = tuple(part for part in program_is_its_draws.CHECK.examines if part.kind is Variant)
    check = program_is_its_draws.CHECK._replace(examines=verifiers_alone)
    patch.setattr(verify, "PROGRAM_IS_ITS_DRAWS", check)
    for names in ("CHECKS", "EXACT_CHECKS"):
        others = [item for item in getattr(plans, names) if item.name != check.name]
        patch.setattr(plans, names, (check, *others))


def generators_are_not_moved(patch):
    patch.setattr(generator_states, "state_in_world", lambda generator, _: generator_states.read(generator))


def a_world_has_other_generators():
    look_around()
    before = generator_states.read(WATCHED)
    with moved(1):
        return generator_states.read(WATCHED) != before


def housekeeping_is_answered(patch):
    patch.setattr(refusals, "_HOUSEKEEPING", set())


def temporary_files_are_left_alone():
    draws = Narrated(Tape(0))
    with answered_everywhere(draws), tempfile.NamedTemporaryFile():
        pass
    return not draws.decisions


def the_bound_grows_with_the_ids(patch):
    """Four roundings for every token below the largest id that is named, as it was."""
    patch.setattr(compared_laws, "rounding_bound", lambda law, *_: 2.0**-23 * law.decisions * (4 * 151_003 + 16))
    patch.setattr(compared_laws, "LARGEST", 1.0)


def a_wrong_engine_with_real_ids_is_refuted():
    return law_is_target(151_000, torch.float32, from_the_target).status is Status.REFUTED


def parts_have_no_length(patch):
    patch.setattr(passes, "_part", lambda parts, kind, value: parts.append(value))


def parts_are_told_apart():
    return passes.digest((1, 23)) != passes.digest((12, 3))


HOLES = [
    (threads_stay_outside, threads_are_answered),
    (names_are_not_looked_for, names_are_answered),
    (types_keep_their_methods, generators_of_modules_are_answered),
    (torch_states_are_not_compared, scripted_draws_are_refused),
    (numpy_states_are_not_compared, draws_past_the_methods_are_refused),
    (refusals_can_be_swallowed, swallowed_refusals_come_out),
    (replays_stay_in_one_world, clocks_are_noticed),
    (engines_are_not_asked, clocks_are_noticed),
    (generators_are_not_moved, a_world_has_other_generators),
    (housekeeping_is_answered, temporary_files_are_left_alone),
    (the_bound_grows_with_the_ids, a_wrong_engine_with_real_ids_is_refuted),
    (parts_have_no_length, parts_are_told_apart),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("plant", "sound"), HOLES, ids=[plant.__name__ for plant, _ in HOLES])
def test_a_hole_makes_a_sound_judgement_unsound(monkeypatch, plant, sound):
    assert sound()
    plant(monkeypatch)
    assert not sound()


IMPORTING = """
from specverify import testing
from specverify.subjects import engine
from specverify.testing import plans
{plant}

def coin():
    import torch
    return [int(torch.rand(()) < 0.9)]

found = testing.check_engine(coin, {{(0,): 0.1, (1,): 0.9}}, on_fail=None)
print({{verdict.check: verdict.status.value for verdict in found}}["law_is_target"])
"""
UNREADY = """
from specverify.checks import constant_draws, program_is_its_draws
from specverify.run import verify
engine._warm = lambda *calls: None
verify.find_constant_draws = lambda subject: constant_draws.ConstantDraws(())
plans.EXACT_CHECKS = plans.EXACT_CHECKS[1:2]
program_is_its_draws.find_unseen_calls = lambda run, seed: program_is_its_draws.Found()
program_is_its_draws.replayed = lambda run, number, seed: program_is_its_draws.Replays(number)
"""
"""Nothing runs it before the enumeration does."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("plant", "expected"),
    [("", "holds"), (UNREADY, "unknown")],
    ids=["warmed up", "met in the middle"],
)
def test_a_library_that_is_loaded_in_the_middle_is_never_drawn_from_unanswered(plant, expected):
    script = IMPORTING.format(plant=plant)
    command = [sys.executable, "-W", "ignore", "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert said.stdout.strip() == expected
