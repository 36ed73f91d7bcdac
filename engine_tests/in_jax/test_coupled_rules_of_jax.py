"""Coupled runs find a wrong rule of JAX operations by themselves, and nothing where the rules are right."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from specverify.checks.coupled_runs import coupled
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.jax import calls, known_results, operations
from specverify.intercept.jax.draws import JaxDraws
from specverify.subjects.fresh_generators import with_generator

TABLE = jnp.asarray([0.1, 0.7, 0.2, 0.9, 0.4, 0.6], dtype=jnp.float32)
CONTROL_RUNS, FAULT_RUNS = 8, 120


def clamped(key):
    u, v = jax.random.uniform(key, (2,))
    return bool(lax.clamp(0.3, u, 0.6) > 0.7), bool(lax.clamp(0.3, v, 0.6) < 0.2)


def powers(key):
    return bool(jax.random.uniform(key) ** 3 < 0.2)


def sorted_beside(key):
    return lax.sort_key_val(jax.random.uniform(key, (3,)), jnp.arange(3))[1].tolist()


def window(key):
    u, v = jax.random.uniform(key, (2,))
    bounds = lax.dynamic_slice(TABLE, (jnp.int32(4),), (3,))
    return bool(u < bounds[0]), bool(v < bounds[2])


def slices(key):
    u, v = jax.random.uniform(key, (2,))
    return bool(u < lax.slice(TABLE, (0,), (2,))[1]), bool(v < lax.slice(TABLE, (1,), (3,))[1])


def taken(key):
    return bool(jax.random.uniform(key) < 1 - jnp.take(TABLE, 9))


def splits(key):
    first, second = jax.random.split(key)
    return bool(jax.random.uniform(first) < 0.4), bool(jax.random.uniform(second) < 0.4)


def small_integers(key):
    token = jax.random.categorical(key, jnp.log(TABLE))
    return bool(token.astype(jnp.uint8) * jnp.uint8(100) > 150)


def scanned(key):
    u, v = jax.random.uniform(key, (2,))
    counts = lax.cumsum(jnp.asarray([1, 2, 3]), reverse=True)
    return bool(u * 6 < counts[0]), bool(v * 6 < counts[2])


def _handler(name, change):
    return lambda patch: patch.setitem(calls._HANDLERS, name, change(calls._HANDLERS[name]))


def what_is_sorted_beside_stays(patch):
    real = operations.SEVERAL["sort"]

    def handler(operands, parameters, results):
        return [real(operands, parameters, results)[0], *map(operations.elements_of, operands[1:])]

    patch.setitem(operations.SEVERAL, "sort", handler)


def a_window_out_of_range_begins_at_zero(patch):
    real = operations._inside
    patch.setattr(
        operations, "_inside", lambda start, *more: [0] * len(start) if real(start, *more) != start else start
    )


def a_result_of_other_parameters_is_returned(patch):
    real = known_results.key_of
    patch.setattr(
        known_results, "key_of", lambda primitive, operands, _, equation: real(primitive, operands, {}, equation)
    )


def what_is_out_of_range_is_zero(patch):
    patch.setattr(operations, "filler", lambda _, dtype: np.zeros((), dtype).item())


def two_keys_of_a_split_are_one(patch):
    def draw(self, site, state, way):
        return self._streams.draw(site, ((state[0], 0, *state[2:]), 0), way)

    patch.setattr(JaxDraws, "_draw", draw)


def an_outcome_is_not_cut_to_its_dtype(patch):
    patch.setattr(operations, "typed", lambda function, _, numbers: np.asarray(function(*numbers)).item())


def a_scan_runs_forward(patch):
    real = operations._BY_NUMPY["cumsum"]
    forward = {"reverse": False}
    patch.setitem(operations._BY_NUMPY, "cumsum", lambda parameters, array: real({**parameters, **forward}, array))


FAULTS = {
    "a clamp loses its upper bound": (
        clamped,
        _handler("clamp", lambda real: lambda operands, *more: real([*operands[:2], jnp.float32(9)], *more)),
    ),
    "a cube is a square": (
        powers,
        _handler("integer_pow", lambda real: lambda operands, _, result: real(operands, {"y": 2}, result)),
    ),
    "what is sorted beside stays": (sorted_beside, what_is_sorted_beside_stays),
    "a window out of range begins at zero": (window, a_window_out_of_range_begins_at_zero),
    "a result of other parameters is returned": (slices, a_result_of_other_parameters_is_returned),
    "what is out of range is zero": (taken, what_is_out_of_range_is_zero),
    "two keys of a split are one": (splits, two_keys_of_a_split_are_one),
    "an outcome is not cut to its dtype": (small_integers, an_outcome_is_not_cut_to_its_dtype),
    "a scan runs forward": (scanned, a_scan_runs_forward),
}


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    known_results.forget()
    yield
    known_results.forget()


def runs_of(call, number):
    with_a_key = with_generator(call)

    def program(draws):
        with answered_everywhere(draws):
            return with_a_key()

    return coupled(program, number)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_only_a_wrong_rule_parts_the_runs(name):
    call, plant = FAULTS[name]
    assert runs_of(call, CONTROL_RUNS)._replace(ties=()) == (CONTROL_RUNS, "", (), "")
    known_results.forget()
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert runs_of(call, FAULT_RUNS).parted
