"""Identifiers of cases: every case has one that names it again, and those of earlier versions are understood."""

from __future__ import annotations

import pytest

from specverify.base.identifier import Replay, pack_replay, unpack_replay
from specverify.base.verdict import Status
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions, check_named, checks_named
from specverify.run.catalogue import find_subject
from specverify.run.replays import identifier_of, named_by
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


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("subject", [*map(find_subject, (ONE, RIGHT, AN_ENGINE, A_BATCH)), CALLS], ids=lambda s: s.name)
def test_an_identifier_names_its_case_again(subject):
    words = [identifier_of(case, check, Conditions(seed=5)) for check, case in cases_of(subject)]
    assert len(words) == len(set(words)) > 0
    found = [named_by(word, lambda name: subject) for word in words]
    assert [identifier_of(*one) for one in found] == words
    assert [(one.check, one.case.situation, one.conditions.seed) for one in found] == [
        (check, case.situation, 5) for check, case in cases_of(subject)
    ]


def test_every_kind_of_situation_is_named():
    subjects = (find_subject(ONE), find_subject(AN_ENGINE), CALLS)
    kinds = {type(case.situation) for subject in subjects for _, case in cases_of(subject)}
    assert kinds == {InScenario, EngineProgram, SampledSetting, SampledPair}


@pytest.mark.parametrize(("word", "wanted"), EARLIER.values(), ids=EARLIER)
def test_an_identifier_of_an_earlier_version_is_understood_and_made_again(word, wanted):
    assert unpack_replay(word) == wanted
    assert identifier_of(*named_by(word, find_subject)) == word


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("kind", ["scenario", "program", "rows"])
def test_an_earlier_refutation_is_refuted_again(kind):
    word, _ = EARLIER[kind]
    verdict = run_case(*named_by(word, lambda name: warmed_up(find_subject(name))))
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.again == word


@pytest.mark.parametrize(
    ("replay", "sentence"),
    [
        (Replay(ONE, "no_check"), "the identifier names a check 'no_check', which this version does not have"),
        (Replay(ONE, "law_is_target", "gamma=1", "x-v2"), "no scenario is called 'x-v2'"),
        (Replay(ONE, "law_is_target", "gamma=9", "generic-v2-p0-h2-s0"), f"{ONE} has no variant 'gamma=9' any more"),
        (Replay(ONE, "samples_fit_law", setting="V=9"), f"{ONE} has no setting 'V=9' any more"),
        (
            Replay(ONE, "eos_is_final", "gamma=1", "generic-v2-p0-h2-s0"),
            f"eos_is_final does not examine {ONE} at gamma=1, generic-v2-p0-h2-s0 any more",
        ),
        (
            Replay(AN_ENGINE, "samples_agree", setting="as called"),
            f"samples_agree does not examine {AN_ENGINE} at as called any more",
        ),
        (
            Replay(ONE, "samples_fit_law", "gamma=1", "generic-v2-p0-h2-s0"),
            f"samples_fit_law does not examine {ONE} at gamma=1, generic-v2-p0-h2-s0 any more",
        ),
        (Replay(ONE, "law_is_target"), f"{ONE} has no variant '' any more"),
    ],
)
def test_what_this_version_does_not_examine_is_refused_in_a_sentence(replay, sentence):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared
        named_by(pack_replay(replay), find_subject)
    assert str(refused.value) == sentence


def test_checks_are_found_by_name_in_the_order_they_run():
    assert [check_named(check.name) for check in CHECKS] == list(CHECKS)
    assert checks_named([check.name for check in reversed(EXACT_CHECKS)]) == EXACT_CHECKS
    with pytest.raises(ValueError, match="no check is called 'x'"):
        check_named("x")
