"""Engines whose keys are made in their calls, or kept and split: they are enumerated as engines of torch are."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import Made, check_engine

KEPT = [jax.random.PRNGKey(3)]
CHECKS = ("program_is_its_draws", "law_is_target", "draws_are_independent")


def toss(key, chance):
    return int(jax.random.categorical(key, jnp.log(jnp.array([1 - chance, chance]))))


def plain():
    seed = np.random.randint(2**31)  # noqa: NPY002 - as scripts have it
    return [toss(key, 0.9) for key in jax.random.split(jax.random.PRNGKey(seed))]


def right():
    KEPT[0], *keys = jax.random.split(KEPT[0], 3)
    return [toss(key, 0.9) for key in keys]


def wrong():
    KEPT[0], *keys = jax.random.split(KEPT[0], 3)
    return [toss(key, chance) for key, chance in zip(keys, (0.9, 0.6), strict=True)]


def forgets_to_split():
    key, KEPT[0] = jax.random.split(KEPT[0])
    return [toss(key, 0.9) for _ in range(2)]


HELD, REFUTED = Status.HOLDS, Status.REFUTED


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (right, [HELD, HELD, HELD]),
        (wrong, [HELD, REFUTED, HELD]),
        (forgets_to_split, [HELD, REFUTED, REFUTED]),
    ],
)
def test_an_engine_of_jax_is_held_or_refuted(engine, said):
    verdicts = check_engine(engine, plain, on_fail=None, checks=CHECKS)
    assert [verdict.status for verdict in verdicts] == said
    assert [verdict.check for verdict in verdicts] == list(CHECKS)


def test_a_factory_may_draw_the_seed_of_its_key():
    class Engine:
        def __init__(self, scenario):
            self.scenario = scenario
            self.key = jax.random.PRNGKey(np.random.randint(2**31))  # noqa: NPY002 - as scripts have it

        def __call__(self, prompt):
            self.key, *keys = jax.random.split(self.key, self.scenario.horizon + 1)
            text = list(prompt)
            for key in keys:
                text.append(int(jax.random.categorical(key, jnp.log(np.asarray(self.scenario.target(tuple(text)))))))
            return text[len(prompt) :]

    checks = CHECKS[:1]
    (verdict,) = check_engine(lambda scenario: Made(Engine(scenario)), quick=True, on_fail=None, checks=checks)
    assert verdict.status is HELD
