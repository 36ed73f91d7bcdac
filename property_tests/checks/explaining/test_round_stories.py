"""A path as text, round by round."""

from __future__ import annotations

import numpy as np

from property_tests.checks.explaining.test_round_faults import in_scenario, verifier
from specverify.checks.explaining.round_stories import rounds_of_path
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import paths
from specverify.laws.scenarios import Scenario

RNG = np.random.default_rng()

SMALL = Scenario("generic", 2, (0,), 2, seed=0)


def test_a_path_is_told_round_by_round_with_the_right_value_beside_the_wrong_step():
    here = in_scenario(verifier(replace=lambda p, q: p))
    rejected = next(path for path in paths(whole_run(here.decoder, here.prompt)) if path.choices[:2] == (1, 1))
    told = rounds_of_path(here, rejected.choices)
    assert told.startswith("round 1: drafted 1 (q = 0.667), rejected (u >= 0.643, test_round_faults.py:")
    assert "; expected " in told
