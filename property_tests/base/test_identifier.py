"""Identifiers of cases: every case has one that names it again, and those of earlier versions are understood."""

from __future__ import annotations

import pytest

from specverify.base.identifier import Replay, pack_replay, unpack_replay
from specverify.base.verdict import Status
from specverify.checks import CHECKS, EXACT_CHECKS, check_named, checks_named
from specverify.run.catalogue import find_subject
from specverify.run.replays import named_by
from specverify.run.verify import run_case, warmed_up
from specverify.subjects.engine import engine_subject
from specverify.subjects.subject import EngineProgram, InScenario, SampledPair, SampledSetting

ONE, RIGHT = "mutant:residual-from-target", "reference:speculative-sampling"
AN_ENGINE, A_BATCH = "mutant:inclusive-coin", "mutant:count-along-rows"
CALLS = engine_subject(lambda: [0], lambda: [0], "calls")
IN_COMPANY = "gamma=1, row 3 of 3 beside one accepted whole, one rejected at once"
EARLIER = {
    "scenario": (
        (
            "eNqLVsotLUnMK7EqSi3OTClNzNFNK8rP1S1JLEpPLVHSUVDKSSyPzyyORwikJ-bmJtoagpmpealFmcm6ZUa6BQa6GUa6xQYgYSA2"
            "iAUAeXgcZg"
        ),
        Replay(ONE, "law_is_target", "gamma=1", "generic-v2-p0-h2-s0"),
    ),
    "setting": (
        (
            "eNqLVsotLUnMK7EqSi3OTClNzNFNK8rP1S1JLEpPLVHSUVAqTswtyEktjk_LLInPSSwHCcFwmK2ZiUKIraFCSX5BfLathUJGflFm"
            "VX6erbFCemJubqKtEVCVQSwAh7gfcA"
        ),
        Replay(ONE, "samples_fit_law", setting="V=64 T=1 top_k=8 horizon=3 gamma=2"),
    ),
    "program": (
        "eNqLVsotLUnMK7HKy9ctys_JSUpMzlbSUVBKTE5OLQBKJKfG5ySWg0RgOD8vVaEotbA0tbgEyDWIBQDoMhT1",
        Replay("mutant:no-rollback", "acceptance_law", setting="one request"),
    ),
    "rows": (
        (
            "eNodzN0KwjAMBeBXCb1uYHN3gk8iMmJ75ir2h7a61zfdRQ7k4yR3E79dUr_WfDTOG-cEboA3lsywVSrWkDwKNFIf_pIY5TZb0gIt"
            "lDeNJ1rwID0ncQ6lw9Ox5w_saRVvuGHSdXc43yChBse_C5eJ94XbPFhnevwBrQwx4Q"
        ),
        Replay("mutant:rows-of-one-seed", "rows_are_independent", IN_COMPANY, "generic-v2-p0-h3-s1"),
    ),
}
"""Identifiers that reports of version 0.1.0 printed, and what they named."""


def cases_of(subject, checks=CHECKS):
    """Return some cases of every check that applies."""
    applicable = [check for check in checks if check.obstacle(subject) is None]
    return [(check, case) for check in applicable for case in list(check.cases(subject))[::7]]


def test_an_identifier_is_one_word_and_decodes_to_what_was_encoded():
    replay = Replay("reference:egag", "law_is_target", "gamma_min=1 gamma_max=3", "generic-v2-p0-h1-s0", "", 7)
    assert unpack_replay(pack_replay(replay)) == replay
    assert pack_replay(replay).split() == [pack_replay(replay)]


@pytest.mark.parametrize("word", ["", "x", "näh", "AAAA", pack_replay(Replay("a", "b"))[:-4]])
def test_another_word_is_no_identifier(word):
    with pytest.raises(ValueError, match="is not a replay identifier: expected the word a report printed"):
        unpack_replay(word)


def test_every_kind_of_situation_is_named():
    subjects = (find_subject(ONE), find_subject(AN_ENGINE), CALLS)
    kinds = {type(case.situation) for subject in subjects for _, case in cases_of(subject)}
    assert kinds == {InScenario, EngineProgram, SampledSetting, SampledPair}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("kind", ["scenario", "program", "rows"])
def test_an_earlier_refutation_is_refuted_again(kind):
    word, _ = EARLIER[kind]
    verdict = run_case(*named_by(word, lambda name: warmed_up(find_subject(name))))
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.again == word


def test_checks_are_found_by_name_in_the_order_they_run():
    assert [check_named(check.name) for check in CHECKS] == list(CHECKS)
    assert checks_named([check.name for check in reversed(EXACT_CHECKS)]) == EXACT_CHECKS
    with pytest.raises(ValueError, match="no check is called 'x'"):
        check_named("x")
