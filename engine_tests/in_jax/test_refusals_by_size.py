"""Calls of JAX of very many numbers or outcomes are refused before anything of that size is built."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import tracemalloc

import jax
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape

KEY = jax.random.key(3)
REFUSED = {
    "permutation": lambda: jax.random.permutation(KEY, 10**9),
    "choice of an order": lambda: jax.random.choice(KEY, 10**9, (2,), replace=False),
    "many choices": lambda: jax.random.choice(KEY, 3, (10**9,)),
    "many uniforms": lambda: jax.random.uniform(KEY, (10**5, 10**4)),
    "many whole numbers": lambda: jax.random.randint(KEY, (10**9,), 0, 5),
    "jit": jax.jit(lambda: jax.random.permutation(KEY, 10**9)),
}


@pytest.mark.parametrize("forced", [None, 0.0])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_very_large_is_refused_before_it_is_built(name, forced):
    tracemalloc.start()
    with pytest.raises(NeedsValue, match="followed") as refused, answered_everywhere(Tape(0), forced):
        REFUSED[name]()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**28
    assert "test_refusals_by_size.py:" in str(refused.value)
