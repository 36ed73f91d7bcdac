"""Every public function of ``jax.random`` has the law that samples of it have, or is refused, or draws nothing."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
from collections import Counter

import jax
import numpy as np
import pytest

from specverify.intercept.refusals import NeedsValue
from specverify.statistics import FitVerdict, confirmed_fit, samples_for, stage_level
from test_support.jax.answers import law_of
from test_support.jax.calls import EXAMPLES, HARMLESS, PUBLIC
from tools.pages.jax_page import calls_on_page, calls_said

ALARM, MISS, SEEN = 1e-6, 1e-3, 0.05
"""False alarms of all samples together, misses of one, and the total variation that it sees."""
ANSWERED = [name for name, example in EXAMPLES.items() if not example.refused]


def test_every_public_function_stands_in_the_table_and_on_the_page():
    assert EXAMPLES.keys() | HARMLESS == PUBLIC
    assert calls_on_page() == calls_said()


@pytest.mark.parametrize("name", ANSWERED)
def test_the_law_is_that_of_samples_of_jax(name):
    call, level = EXAMPLES[name].call, ALARM / len(ANSWERED)
    law = {np.atleast_1d(key).tobytes(): mass for key, mass in law_of(lambda: call(jax.random.key(3))).items()}

    def sample(number, seed):
        found = np.asarray(jax.jit(jax.vmap(call))(jax.random.split(jax.random.key(seed), number)))
        kind = np.atleast_1d(next(iter(law_of(lambda: call(jax.random.key(3)))))).dtype
        return Counter(np.atleast_1d(row).astype(kind).tobytes() for row in found)

    number = samples_for(law, SEEN, stage_level(level), MISS)
    assert confirmed_fit(sample, law, samples=number, false_alarm=level, miss=MISS, seed=0).verdict is FitVerdict.FITS
    first, second, *_ = law
    planted = {**law, first: law[first] + 0.1 * law[second], second: 0.9 * law[second]}
    if 0.1 * law[second] >= SEEN / 2:
        number = samples_for(planted, SEEN / 2, stage_level(level), MISS)
        found = confirmed_fit(sample, planted, samples=number, false_alarm=level, miss=MISS, seed=1)
        assert found.verdict is FitVerdict.REFUTED


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.refused])
def test_what_is_not_answered_is_refused_by_line(name):
    with pytest.raises(NeedsValue, match=EXAMPLES[name].refused) as refused:
        law_of(lambda: EXAMPLES[name].call(jax.random.key(3)))
    assert "calls.py:" in str(refused.value)
