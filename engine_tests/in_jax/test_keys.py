"""PRNG keys of a verifier."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine_tests.in_jax.test_libraries import compiled, of_numpy, with_a_default
from engine_tests.in_jax.test_verifiers import with_arrays_of_jax
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.draws import Tape
from specverify.subjects.array_kinds import arrays_of
from specverify.subjects.batch_call import attempt_of
from specverify.subjects.forms import ROW
from specverify.subjects.fresh_generators import with_generator
from test_support.jax import (
    needs_jax,  # noqa: F401 - it skips the file where JAX is not installed
    verifiers,
)

RIGHT = verifiers.vectorised.right


def given_first(key, p, q, draft_tokens):
    return jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(key)))


def given_by_name(p, q, draft_tokens, *, rng_key):
    return jnp.asarray(rng_key)


def handed_on(p, q, draft_tokens, key):
    return given_first(key, p, q, draft_tokens)


def calls_what_wants_arrays_of_jax(p, q, draft_tokens, key):
    return with_arrays_of_jax(p, q, draft_tokens, key)


@pytest.mark.parametrize("verify", [given_first, given_by_name, compiled, handed_on])
def test_a_key_is_given_to_who_takes_one_and_another_one_in_every_call_and_run(verify):
    called, keys = with_generator(verify), []
    assert not {"key", "rng", "rng_key"} & set(inspect.signature(called).parameters)
    assert called.__name__ == verify.__name__
    assert with_generator(called) is called
    for _ in range(2):
        with answered_everywhere(Tape(0)):
            keys += [np.asarray(called(1, 2, 3)).tobytes() for _ in range(2)]
    keys += [np.asarray(called(1, 2, 3)).tobytes() for _ in range(2)]
    assert len(set(keys)) == 6


def test_no_key_is_passed_to_a_function_that_has_one_or_takes_another_generator():
    for verify in (with_a_default, len):
        assert with_generator(verify) is verify
    assert 0 <= with_generator(of_numpy)(0, 0, 0) < 1


def test_who_does_not_run_on_arrays_of_numpy_is_given_those_of_jax():
    given = {"p": np.ones((2, 2)) / 2, "q": np.ones((1, 2)) / 2, "draft_tokens": np.array([1])}
    for verify in (with_arrays_of_jax, calls_what_wants_arrays_of_jax):
        arrays = arrays_of(with_generator(verify), attempt_of(ROW))(given)
        assert all(isinstance(array, jax.Array) for array in arrays)
