"""A verifier without bonus tokens may replace the last draft by the same token, which is no acceptance."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.checks.explaining.test_round_faults import drawn, in_scenario
from specverify.checks.explaining.round_faults import fault_of_rounds
from specverify.checks.explaining.round_stories import rounds_of_path
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import paths
from specverify.laws.scenarios import Scenario

RNG = np.random.default_rng()
THREE = Scenario("generic", 3, (0,), 3, seed=2)
OF_REPLACEMENT = "a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0)): in place of draft "


def without_bonus(accept=lambda p, q: p / q, replace=lambda p, q: np.maximum(p - q, 0)):
    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if RNG.random() >= accept(p[i, token], q[i, token]):
                return [*draft_tokens[:i], drawn(replace(p[i], q[i]))]
        return list(draft_tokens)

    return verify


@pytest.mark.parametrize("gamma", [1, 2])
def test_a_replacement_that_equals_the_last_draft_is_not_counted_as_its_acceptance(gamma):
    found = fault_of_rounds(in_scenario(without_bonus(replace=lambda p, q: p), gamma, THREE))
    assert found.sentence.startswith(OF_REPLACEMENT)
    assert found.parts == {"replace"}


def test_the_path_tells_that_the_last_draft_is_rejected():
    here = in_scenario(without_bonus(replace=lambda p, q: p), 1, THREE)
    told = [
        rounds_of_path(here, path.choices).partition("\n")[0] for path in paths(whole_run(here.decoder, here.prompt))
    ]
    assert any("drafted 1 (" in one and "replaced by 1 (probability " in one for one in told)
    assert not any("P(accept)" in one for one in told)


def test_a_wrong_acceptance_without_bonus_is_named():
    found = fault_of_rounds(in_scenario(without_bonus(accept=lambda p, q: (p / q) ** 3), 2, THREE))
    assert found.sentence.startswith("drafts are accepted with probability min(1, (p/q)^3), expected min(1, p/q)")
    assert found.parts == {"accept"}


def test_a_certain_replacement_is_no_draw():
    here = in_scenario(without_bonus(replace=lambda p, q: p == p.max()), 1, THREE)
    assert fault_of_rounds(here).parts == {"replace"}


def test_a_right_verifier_without_bonus_has_no_fault():
    assert fault_of_rounds(in_scenario(without_bonus(), 2, THREE)) is None
