"""An engine that gets no texts with ends: the verdict on its law states that ends were not examined."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.subjects.made_engine import NO_ENDS
from specverify.testing import Made
from test_support.subjects.engine_laws import law_verdict

RNG = np.random.default_rng()


def overlooks_ends(scenario):
    """Return a call that never ends a text."""

    def decode(prompt):
        text = tuple(prompt)
        for _ in range(scenario.horizon):
            text += (int(RNG.choice(scenario.vocabulary, p=scenario.target(text))),)
        return list(text[len(prompt) :])

    return decode


@pytest.mark.parametrize("stops", [False, True])
def test_a_verdict_without_ends_states_that_none_was_examined(stops):
    verdict = law_verdict(lambda scenario: Made(overlooks_ends(scenario), stops=stops), SCENARIOS[:1])
    assert verdict.status is Status.HOLDS
    assert (NO_ENDS in verdict.figures["notes"]) is not stops
