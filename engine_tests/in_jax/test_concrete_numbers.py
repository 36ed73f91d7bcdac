"""What NumPy computes in place of a compiled program has the bits, the shape and the type that JAX returns."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from reference import Sampled
from specverify.intercept.jax import calls, known_results, traced, whole_calls
from specverify.intercept.jax.arrays import made_array
from specverify.intercept.jax.operations import computed_by_numpy
from test_support.jax.answers import law_of

RNG = np.random.default_rng(5)
FLOATS = jnp.asarray(RNG.normal(size=(3, 4)).astype(np.float32))
INTS = jnp.asarray(RNG.integers(-9, 9, size=(3, 4), dtype=np.int32))
WORDS = jnp.asarray(RNG.integers(0, 2**32, size=(3, 2), dtype=np.uint32))
ROWS = jnp.asarray([[2, 0], [1, 3]])
CASES = {
    "movement": lambda: (FLOATS.T, FLOATS[::-1], FLOATS[1:, ::2], jnp.concatenate([FLOATS, FLOATS[:1]]), FLOATS[None]),
    "choice": lambda: (jnp.where(INTS > 0, FLOATS, 0.0), jnp.where(INTS > 0, INTS, -1)),
    "gathers": lambda: (FLOATS[jnp.asarray([2, 0])], FLOATS[ROWS[:, 0], ROWS[:, 1]], jnp.take(FLOATS, 9, axis=1)),
    "rows of a batch": lambda: jax.vmap(lambda row, place: row[place])(FLOATS, jnp.asarray([3, -1, 7])),
    "a slice at a place": lambda: lax.dynamic_slice(FLOATS, (jnp.int32(2), jnp.int32(-5)), (2, 2)),
    "counts": lambda: (INTS.sum(1), jnp.cumprod(INTS > 0, 1), jnp.cumsum(INTS, 0), INTS * INTS - 3, INTS.max(0)),
    "conversions": lambda: (INTS.astype(jnp.float32), INTS.astype(bool), (INTS > 0).astype(jnp.int32)),
    "single operations on floats": lambda: (FLOATS - FLOATS[0], FLOATS * 3, jnp.maximum(FLOATS, 0), FLOATS < 0.1),
    "one operand": lambda: (abs(FLOATS), -FLOATS, jnp.square(FLOATS), abs(INTS), -INTS, jnp.square(INTS), ~INTS),
    "orders and scans": lambda: (lax.cummax(INTS, 1), lax.cummin(INTS, 0, reverse=True), jnp.searchsorted(INTS[0], 2)),
    "divisions": lambda: (FLOATS / (FLOATS + 9), FLOATS / (FLOATS[:, :1] + 9), FLOATS / 7, jax.jit(_seventh)(FLOATS)),
    "reductions": lambda: (lax.reduce_or_p.bind(INTS, axes=(0,)), (INTS > 0).all(1), lax.reduce_max(INTS[:, :0], (1,))),
    "words": lambda: (
        WORDS >> 9,
        WORDS >> jnp.uint32(40),
        lax.bitcast_convert_type(WORDS >> 9 | 0x3F800000, jnp.float32),
    ),
    "unstacked": lambda: (*lax.unstack(WORDS), *lax.unstack(FLOATS, axis=1)),
    "subnormal numbers": lambda: (jnp.float32(1e-30) * jnp.float32(1e-12), jnp.float32(-1) * jnp.float32(0)),
}


def _seventh(x):
    return x / 7


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_bits_are_those_of_jax(name, monkeypatch):
    computed = []
    outside = jax.tree.map(np.asarray, CASES[name]())

    def beside(primitive, operands, parameters):
        result = computed_by_numpy(primitive, operands, parameters)
        if result is not None:
            wanted = primitive.bind(*operands, **parameters)
            computed.append(primitive.name)
            pairs = zip(result, wanted, strict=True) if primitive.multiple_results else [(result, wanted)]
            for each, expected in pairs:
                assert each.aval == expected.aval
                assert each.weak_type == expected.weak_type
                assert np.asarray(each).tobytes() == np.asarray(expected).tobytes()
        return result

    monkeypatch.setattr(known_results, "computed_by_numpy", beside)
    known_results.forget()
    with calls.answered_by(None):
        inside = jax.tree.map(np.asarray, CASES[name]())
    assert [each.tobytes() for each in inside] == [each.tobytes() for each in outside]
    assert ("mul" in computed) == (name in {"counts", "single operations on floats"})
    assert ("div" in computed) == (name == "divisions")
    assert computed or name == "subnormal numbers"


INDICES = [0, -1, 5, -7, True, slice(None), slice(3, 0, -2), slice(1, 9), None, Ellipsis, (), (0, 1), (None, 0),
           (Ellipsis, 0), (0, None, slice(0, 2)), (0, 0, 0), (0, jnp.asarray(1)), jnp.asarray(2), jnp.asarray(9),
           jnp.asarray(True), jnp.asarray([True, False, True]), jnp.asarray([0, 1]), jnp.asarray([0, 7]),
           (ROWS[:, 1], ROWS[:, 0]), (ROWS, ROWS), (slice(None), ROWS), (None, ROWS[0], 0), (0, None, ROWS),
           (..., ROWS[:, 0]), (ROWS[:, :1], jnp.asarray([1, -2])), (slice(1, 2), jnp.asarray(-1))]  # fmt: skip
ARRAYS = [FLOATS, INTS, WORDS, FLOATS[0, 0], FLOATS[:, :0], FLOATS > 0, FLOATS.astype(jnp.bfloat16),
          made_array(np.arange(3.0, dtype=np.float32), weak_type=True)]  # fmt: skip


def test_elements_of_concrete_arrays_are_those_that_jax_takes():
    by_numpy = 0
    for array, index in itertools.product(ARRAYS, INDICES):
        result = whole_calls._taken_by_numpy(array, index)
        if result is not None:
            wanted = whole_calls._REWRITING_TAKE(array, index)
            by_numpy += 1
            assert result.aval == wanted.aval
            assert np.asarray(result).tobytes() == np.asarray(wanted).tobytes()
    assert 0 < by_numpy < len(ARRAYS) * len(INDICES)


def test_elements_of_symbolic_arrays_are_those_that_jax_takes():
    by_numpy = []

    def program():
        numbers = jax.random.uniform(jax.random.key(0), (3, 4, 2))
        for index in INDICES:
            found, wanted = numbers[index], whole_calls._REWRITING_TAKE(numbers, index)
            by_numpy.append(whole_calls._elements_at(numbers.elements, index) is not None)
            assert found.aval == wanted.aval
            if isinstance(wanted, jax.core.Tracer):
                assert list(map(id, found.elements.flat)) == list(map(id, wanted.elements.flat))
        return 0

    law_of(program)
    assert True in by_numpy
    assert False in by_numpy


def test_an_index_of_another_type_has_a_result_of_its_own():
    known_results.forget()
    with calls.answered_by(None):
        shapes = [FLOATS[index].shape for index in (1, True, jnp.asarray(1), jnp.asarray(True), (1,), 1)]
        filled = [bool(jnp.isnan(FLOATS.at[jnp.asarray(9)].get(mode="fill")).all()) for _ in range(2)]
    assert shapes == [(4,), (1, 3, 4), (4,), (1, 3, 4), (4,), (4,)]
    assert filled == [True, True]


def test_a_result_that_is_computed_while_the_caches_are_cleared_is_not_used_again():
    """Its key has identities of arrays that later arrays may have."""

    def key():
        return known_results.key_of(jax.lax.neg_p, [FLOATS], {}, None)

    memory = {}
    assert known_results.remembered(memory, key(), lambda: known_results.forget() or [1]) == [1]
    assert known_results.remembered(memory, key(), lambda: [2]) == [2]
    assert known_results.remembered(memory, key(), lambda: [3]) == [2]


def test_laws_are_right_with_caches_of_a_few_entries(monkeypatch):
    def program():
        coins = [jax.random.uniform(key) < FLOATS[0, 0] * 0 + 0.25 for key in jax.random.split(jax.random.PRNGKey(0))]
        return tuple(bool(coin) for coin in coins)

    monkeypatch.setattr(known_results, "_MOST_KNOWN", 3)
    expected = {(True, True): 1 / 16, (True, False): 3 / 16, (False, True): 3 / 16, (False, False): 9 / 16}
    assert law_of(program) == pytest.approx(expected)


def test_the_known_part_of_a_function_is_evaluated_once_and_effects_every_time(monkeypatch):
    computed, called = [], []
    original = known_results.computed_by_numpy

    def counted(primitive, *rest):
        computed.append(primitive.name)
        return original(primitive, *rest)

    @jax.jit
    def function(x, key):
        jax.pure_callback(lambda _: called.append(0) or np.float32(0), jax.ShapeDtypeStruct((), jnp.float32), x)
        return (x > 0).sum() + 0 * jax.random.bits(key, dtype="uint8").astype(jnp.int32)

    monkeypatch.setattr(known_results, "computed_by_numpy", counted)
    known_results.forget()
    for _ in range(3):
        with calls.answered_by(Sampled(np.random.default_rng(0))):
            function(INTS, jax.random.PRNGKey(0))
    assert computed.count("reduce_sum") == 1
    assert len(called) == 3


def test_a_function_with_two_operations_on_floats_is_compiled():
    def fused(a, b):
        return a * b + a

    one, two = (jax.make_jaxpr(function)(FLOATS, FLOATS) for function in (jnp.multiply, fused))
    assert traced.is_exact(one)
    assert not traced.is_exact(two)
    assert not traced.is_exact(jax.make_jaxpr(jnp.log)(FLOATS))
    divided = [jax.make_jaxpr(function)(FLOATS, FLOATS) for function in (jnp.divide, lambda a, b: a / 7)]
    assert list(map(traced.is_exact, divided)) == [True, False]
    assert not traced.is_exact(jax.make_jaxpr(jax.jit(_seventh))(FLOATS[0, 0]))


def aligned(*values):
    """Return an array of NumPy in memory that JAX may share."""
    memory = np.zeros(4 * len(values) + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    result = memory[begin : begin + 4 * len(values)].view(np.float32)
    result[:] = values
    return result


@pytest.mark.parametrize(
    "function",
    [jnp.asarray, jax.device_put, lax.neg, jax.jit(lambda row: row), lambda row: jnp.asarray(row)[:2]],
    ids=["asarray", "device_put", "a primitive", "under jit", "indexed"],
)
def test_what_a_program_writes_into_its_arrays_does_not_change_what_is_kept(function):
    expected = np.asarray(function(aligned(1, 5, 7))).tolist()
    with calls.answered_by(None):
        row = aligned(1, 5, 7)
        function(row)
        row[0] = 2
        assert np.asarray(function(aligned(1, 5, 7))).tolist() == expected
    assert made_array(row, weak_type=False).unsafe_buffer_pointer() != row.ctypes.data
