"""Rollouts for reinforcement learning: drafted by an old policy, they must be those of the policy that is trained.

A gradient is unbiased if rollouts have the law of the policy itself. Accepting whatever the old policy likes well
enough is not that, however near the two are.
"""

import numpy as np
import pytest

from specverify.testing import EngineScenario, SpeculationRefuted, check_engine

rng = np.random.default_rng()


def rollout(scenario: EngineScenario, *, lenience: float = 0.0) -> list[int]:
    """Sample ``horizon`` actions of the policy ``scenario.target``; ``scenario.draft`` is the old policy."""
    tokens = list(scenario.prompt)
    while len(tokens) < len(scenario.prompt) + scenario.horizon:
        p, q = scenario.target(tuple(tokens)), scenario.draft(tuple(tokens))
        action = int(rng.choice(len(q), p=q))
        if rng.random() * q[action] >= p[action] + lenience * q[action]:
            rest = np.maximum(p - q, 0)
            rest = rest if rest.any() else p
            action = int(rng.choice(len(p), p=rest / rest.sum()))
        tokens.append(action)
    return tokens[len(scenario.prompt) :]


def test_rollouts_are_the_policys() -> None:
    """Their law is the policy's in every pair of policies."""
    check_engine(lambda scenario: lambda: rollout(scenario), quick=True)


def test_lenience_biases_them() -> None:
    """Old actions are accepted a little more often than p/q allows."""
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_engine(lambda scenario: lambda: rollout(scenario, lenience=0.1), checks=["law_is_target"])
