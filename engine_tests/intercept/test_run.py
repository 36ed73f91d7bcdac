"""A run leaves nothing behind, however it ends: all that changes while foreign code runs is in one object."""

from __future__ import annotations

import ast
import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from specverify.foreign.limit import OutOfTime, time_limit
from specverify.intercept import run
from specverify.intercept.audit import audited
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue, gifts_kept
from specverify.intercept.run import PROCESS, RUNS, Block, RunMode, Runs, aside, mode, mode_with, nobody_answers
from specverify.intercept.streams import states_noted
from specverify.intercept.symbolic.large import at_large
from specverify.intercept.symbolic.numbers import SymbolicFloat
from specverify.intercept.symbolic.uniform import uniforms_made
from specverify.laws.draws import Tape


def draws_of_one_thread():
    """Draw from every library, also in place, and compare."""
    noise = torch.empty(3).exponential_()
    return bool(torch.rand(()) < 0.5), random.random() < 0.5, np.random.default_rng(0).random() < 0.5, noise.argmin()


def draws_of_all_libraries():
    """Draw from every library, in place and in another thread, and compare."""
    thread = threading.Thread(target=lambda: bool(torch.rand(()) < 0.5))
    thread.start()
    thread.join()
    return draws_of_one_thread()


def fails():
    draws_of_all_libraries()
    raise ValueError("the subject fails")


def refuses():
    draws_of_all_libraries()
    torch.rand(3).sin()


def swallows_a_refusal():
    with suppress(NeedsValue):
        torch.rand(3).sin()


def maps_without_draws():
    torch.vmap(lambda x: x + torch.rand(()))(torch.zeros(2))


def nested():
    draws_of_all_libraries()
    with answered_everywhere(Tape(0)):
        draws_of_all_libraries()


def nested_and_fails():
    draws_of_all_libraries()
    with answered_everywhere(Tape(0)):
        fails()


def sets_up():
    with aside():
        fails()


ENDS = {
    draws_of_all_libraries: None,
    fails: ValueError,
    refuses: NeedsValue,
    swallows_a_refusal: NeedsValue,
    maps_without_draws: RuntimeError,
    nested: None,
    nested_and_fails: ValueError,
    sets_up: ValueError,
}


@pytest.mark.parametrize("program", ENDS, ids=lambda each: each.__name__)
def test_a_run_leaves_nothing_behind(program):
    assert RUNS.left_behind() == {}
    raised = None
    try:
        with (
            audited(), gifts_kept(), states_noted(), uniforms_made(), at_large(), answered_everywhere(Tape(0))
        ):  # fmt: skip
            assert RUNS.left_behind() != {}
            assert mode() != RunMode()
            program()
    except Exception as error:  # noqa: BLE001 - which one it is, is compared
        raised = type(error)
    assert raised is ENDS[program]
    assert RUNS.left_behind() == {}
    assert mode() == RunMode()
    assert torch.rand(()).item() < 1
    assert type(random.random()) is float


def test_a_run_that_is_out_of_time_leaves_nothing_behind():
    def endless():
        with time_limit(0.2), answered_everywhere(Tape(0)):
            while True:
                draws_of_one_thread()  # a thread that is not joined would end in the next test
                time.sleep(0.01)

    with pytest.raises(OutOfTime):
        endless()
    assert RUNS.left_behind() == {}
    assert mode() == RunMode()


def test_a_thread_that_outlives_its_block_leaves_the_next_one_alone():
    drawing, ended = threading.Event(), threading.Event()

    class Waits(Tape):
        """Draws that last until the next block is open."""

        def categorical(self, pmf, site):
            drawing.set()
            assert ended.wait(60)
            return super().categorical(pmf, site)

    def abandons():
        with answered_everywhere(Waits(0)):
            thread = threading.Thread(target=lambda: bool(torch.rand(()) < 0.5), daemon=True)
            thread.start()
            assert drawing.wait(60)
            return thread

    thread = abandons()
    assert RUNS.left_behind() == {}
    with answered_everywhere(Tape(0)):
        first = random.random()
        ended.set()
        thread.join()
        assert type(first) is type(random.random()) is type(np.random.default_rng(0).random()) is not float
    assert RUNS.left_behind() == {}


def test_a_thread_that_draws_does_not_silence_another():
    with answered_everywhere(Tape(0)), nobody_answers():
        assert type(random.Random(3).random()) is float
        kinds = []
        thread = threading.Thread(target=lambda: kinds.append(type(random.random())))
        thread.start()
        thread.join()
        assert kinds == [SymbolicFloat]
        with answered_everywhere(Tape(0)):
            assert type(random.random()) is SymbolicFloat
        assert type(random.Random(3).random()) is float


@pytest.mark.parametrize(("field", "left"), [("block", Block()), ("silent", [1]), ("advancing", 1)])
def test_what_is_left_behind_in_a_thread_is_noticed(field, left):
    runs = Runs()
    setattr(runs.thread, field, left)
    assert runs.left_behind() == {"thread": {field: left}}


def test_a_block_inside_gives_the_outer_one_its_draws_back():
    with answered_everywhere(Tape(0)):
        outer = RUNS.blocks[-1]
        with answered_everywhere(Tape(0)):
            assert RUNS.blocks[-1] is not outer
            inner = {name: len(stack) for name, stack in RUNS.answers.items()}
        assert RUNS.blocks == [outer]
        assert {name: len(stack) for name, stack in RUNS.answers.items()} == dict.fromkeys(inner, 1)
        assert not outer.over


LEFT = {"blocks": [Block()], "patched": {"a patch"}, "set_up": 1, "gifts": [{}], "noted": [[]], "answers": {"np": [1]},
        "lines": [str], "torch": [1], "mapped_without_draws": 1, "jax": [1],
        "jax_functions": ["_uniform"]}  # fmt: skip


@pytest.mark.parametrize("field", LEFT)
def test_what_is_left_behind_is_noticed(field):
    runs = Runs()
    assert runs.left_behind() == {}
    setattr(runs, field, LEFT[field])
    assert runs.left_behind() == {field: LEFT[field]}


def test_every_field_of_runs_can_be_left_behind():
    assert LEFT.keys() | {"thread"} == vars(Runs()).keys()
    runs = Runs()
    runs.thread.block = Block()
    assert runs.left_behind() == {"thread": {"block": runs.thread.block}}


def test_a_mode_is_put_back_after_an_error():
    def both():
        with mode_with(large=True), mode_with(short=True):
            assert (mode().large, mode().short) == (True, True)
            fails()

    with pytest.raises(ValueError, match="fails"):
        both()
    assert mode() == RunMode()


def test_no_other_module_of_interception_holds_state():
    assert PROCESS is run.PROCESS
    found = [
        f"{path.name}:{node.lineno}"
        for path in Path(run.__file__).parent.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if is_state(node)
    ]
    assert [place.partition(":")[0] for place in found] == ["run.py", "tensors.py"]  # the mode, and a table
    assert is_state(ast.parse("_found: list[int] = []").body[0])
    assert not is_state(ast.parse("FOUND = (1, 2)").body[0])


def is_state(node):
    """Return whether a statement of a module makes an empty container, or a context variable."""
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call):
        name = getattr(value.func, "id", "")
        return name == "ContextVar" or (name in {"dict", "list", "set"} and not value.args)
    empty_list = isinstance(value, ast.List | ast.Set) and not value.elts
    return empty_list or (isinstance(value, ast.Dict) and not value.keys)
