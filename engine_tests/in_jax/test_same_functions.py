"""A traced function with the content of an earlier one is replaced by it, and no other function is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from specverify.intercept.jax import known_results
from specverify.intercept.jax.same_functions import same_functions
from specverify.intercept.run import PROCESS
from test_support.jax.answers import law_of

ROWS = jnp.arange(6.0).reshape(3, 2)


def traced(function, *operands):
    return jax.make_jaxpr(function)(*operands)


def scanned(summand, rows=ROWS):
    """A scan over a function that is defined in every call."""

    def body(total, row):
        return total + row.sum() * summand, row

    return lax.scan(body, jnp.float32(0), rows)


def the_first(closed):
    return same_functions({"jaxpr": closed}, known_results.operand_key)["jaxpr"]


def test_a_local_function_is_the_same_in_every_call():
    first, second = (traced(lambda rows: scanned(2.0, rows), ROWS).eqns[-1].params["jaxpr"] for _ in range(2))
    assert first is not second
    assert the_first(first) is the_first(second)
    assert the_first(first) is the_first(first)


@pytest.mark.parametrize("other", [-2.0, -0.0, 0.0, 2, True, np.float32(2)], ids=repr)
def test_a_function_with_another_constant_is_another(other):
    def parts(summand):
        return traced(lambda rows: scanned(summand, rows), ROWS).eqns[-1].params["jaxpr"]

    one, two = parts(2.0), parts(other)
    alike = str(one) == str(two)
    assert (the_first(one) is the_first(two)) <= alike
    assert the_first(parts(other)) is the_first(two)


def test_functions_of_other_lines_shapes_and_closures_are_others():
    def adding(constants):
        return traced(lambda row: row + constants, ROWS[0])

    def adding_too(constants):
        return traced(lambda row: row + constants, ROWS[0])

    one, two = np.array([1.0, 2.0], np.float32), np.array([1.0, 3.0], np.float32)
    assert the_first(adding(jnp.asarray(one))) is the_first(adding(jnp.asarray(one)))
    different = [adding(jnp.asarray(one)), adding(jnp.asarray(two)), adding_too(jnp.asarray(one)), adding(1.0)]
    assert len({id(the_first(each)) for each in different}) == len(different)
    narrow, wide = traced(jnp.sin, ROWS[0]), traced(jnp.sin, ROWS)
    assert the_first(narrow) is not the_first(wide)


def test_a_function_that_prints_is_never_replaced():
    def printing():
        return traced(lambda row: jax.debug.print("{}", row), ROWS[0])

    one, two = printing(), printing()
    assert the_first(one) is one
    assert the_first(two) is two


def test_a_loop_over_a_local_function_is_examined_without_a_second_compilation():
    def program():
        return float(scanned(2.0)[0]) + int(jax.random.bernoulli(jax.random.PRNGKey(0), 0.25))

    known_results.forget()
    for _ in range(2):
        assert law_of(program) == {30.0: 0.75, 31.0: 0.25}
        assert results_of_scans() == 1


def results_of_scans():
    """Return the number of cached results of scans, which JAX has compiled."""
    applied = [what for _, what, *_ in PROCESS.jax.computed if isinstance(what, tuple)]
    return sum(primitive is lax.scan_p for primitive, *_ in applied)
