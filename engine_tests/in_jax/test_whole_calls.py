"""Functions of JAX on known arguments have the results that JAX computes, and are computed once."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specverify.intercept.jax import calls, known_results, whole_calls
from specverify.laws.draws import Replayed
from test_support.jax.answers import law_of

ROW = jnp.asarray([0.2, 0.3, 0.5])
INDICES = jnp.asarray([2, 0, 1])
CALLS = {
    "repeat": lambda: jnp.repeat(INDICES, INDICES, total_repeat_length=4),
    "repeat to a length": lambda: jnp.repeat(jnp.arange(3), INDICES),
    "nonzero": lambda: jnp.nonzero(INDICES),
    "unique with counts": lambda: jnp.unique(INDICES % 2, return_counts=True),
    "unique as a named tuple": lambda: jnp.unique_all(INDICES),
    "split into a list": lambda: jnp.split(ROW, 3),
    "set": lambda: ROW.at[1].set(0.25),
    "add at indices": lambda: jnp.zeros(3).at[INDICES[:2]].add(ROW[:2]),
    "largest of segments": lambda: jax.ops.segment_max(ROW, INDICES, num_segments=4),
    "a weak type": lambda: jnp.asarray(1.5),
    "a Python number": lambda: jnp.where(ROW > 0.25, ROW, 0),
    "another dtype": lambda: jnp.zeros((2, 2), dtype=jnp.int8),
    "einsum": lambda: jnp.einsum("i,i->", ROW, ROW),
    "softmax": lambda: jax.nn.softmax(ROW, axis=-1),
    "one-hot rows": lambda: jax.nn.one_hot(INDICES, 4),
    "under vmap": lambda: jax.vmap(lambda row: jnp.where(row > 0, row, jnp.arange(3)))(jnp.eye(3)),
    "under jit": lambda: jax.jit(lambda row: jnp.repeat(row, 2).at[0].set(1))(ROW),
}


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    known_results.forget()


@pytest.mark.parametrize("name", CALLS)
def test_the_first_and_every_later_call_return_what_jax_returns(name):
    leaves, structure = jax.tree_util.tree_flatten(CALLS[name]())
    for _ in range(2):
        with calls.answered_by(Replayed(())):
            seen, shape = jax.tree_util.tree_flatten(CALLS[name]())
        assert shape == structure
        assert [each.aval for each in seen] == [each.aval for each in leaves]
        for one, other in zip(seen, leaves, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def counted(monkeypatch, program):
    """How many primitives a second run of ``program`` hands to the trace."""
    applied = []
    real = calls.TRACE.compute
    monkeypatch.setattr(calls.TRACE, "compute", lambda *told: applied.append(told[0].name) or real(*told))
    for _ in range(2):
        applied.clear()
        with calls.answered_by(Replayed(())):
            program()
    return len(applied)


@pytest.mark.parametrize("name", ["repeat", "nonzero", "set", "einsum", "softmax", "split into a list"])
def test_a_second_call_applies_no_primitive(monkeypatch, name):
    assert counted(monkeypatch, CALLS[name]) == 0


def test_arguments_that_are_equal_in_python_alone_are_told_apart():
    def program():
        ones = [str(jnp.asarray(value).dtype) for value in (1, 1.0, True)]
        signs = [bool(jnp.signbit(jnp.full((), value))) for value in (0.0, -0.0)]
        return ones, signs

    expected = program()
    with calls.answered_by(Replayed(())):
        assert program() == expected


def test_an_array_of_numpy_that_changed_is_read_again():
    buffer, seen = np.zeros(2, dtype=np.float32), []
    with calls.answered_by(Replayed(())):
        for value in (1, 2):
            buffer[0] = value
            seen.append(float(jnp.asarray(buffer)[0]))
    assert seen == [1.0, 2.0]


def test_a_list_that_the_program_changes_is_another_list_in_the_next_call():
    with calls.answered_by(Replayed(())):
        jnp.split(ROW, 3).clear()
        assert len(jnp.split(ROW, 3)) == 3


def test_functions_that_do_more_than_compute_are_called_every_time(tmp_path):
    file, before = tmp_path / "row.npy", jnp.get_printoptions()["precision"]
    with calls.answered_by(Replayed(())):
        for value in (1.0, 2.0):
            np.save(file, np.array([value], dtype=np.float32))
            assert float(jnp.load(str(file))[0]) == value
        for digits in (3, 5, 3):
            jnp.set_printoptions(precision=digits)
            assert jnp.get_printoptions()["precision"] == digits
            with jnp.printoptions(precision=2):
                pass
    jnp.set_printoptions(precision=before)


def test_random_numbers_reach_the_trace():
    def program():
        u = jax.random.uniform(jax.random.PRNGKey(0), (2,))
        return int(jnp.where(u < ROW[:2], 1, 0).sum())

    assert law_of(program) == pytest.approx({0: 0.56, 1: 0.38, 2: 0.06})


def test_a_setting_of_jax_is_part_of_the_call():
    with calls.answered_by(Replayed(())), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = [str(jnp.zeros(1).dtype)]
        with jax.enable_x64(True):
            kinds.append(str(jnp.zeros(1).dtype))
    assert kinds == ["float32", "float64"]


def test_functions_are_those_of_jax_outside_and_while_jax_traces():
    traced = []

    def function(row):
        traced.append(whole_calls._is_followed())
        return jnp.repeat(row, 2)

    original = jnp.repeat
    with calls.answered_by(Replayed(())):
        assert jnp.repeat is not original
        jax.jit(function)(ROW)
    assert jnp.repeat is original
    assert traced == [False]
