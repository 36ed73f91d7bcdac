"""An identifier selects its case again; one of another version is converted or refused."""

from __future__ import annotations

import pytest

from property_tests.base.test_identifier import EARLIER, cases_of
from specverify.base.identifier import Replay, pack_replay, unpack_replay
from specverify.checks import Conditions
from specverify.run.catalogue import find_subject
from specverify.run.replays import identifier_of, named_by
from specverify.subjects.engine import engine_subject

ONE, RIGHT = "mutant:residual-from-target", "reference:speculative-sampling"

AN_ENGINE, A_BATCH = "mutant:inclusive-coin", "mutant:count-along-rows"

CALLS = engine_subject(lambda: [0], lambda: [0], "calls")

IN_COMPANY = "gamma=1, row 3 of 3 beside one accepted whole, one rejected at once"


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


@pytest.mark.parametrize(("word", "wanted"), EARLIER.values(), ids=EARLIER)
def test_an_identifier_of_an_earlier_version_is_understood_and_made_again(word, wanted):
    assert unpack_replay(word) == wanted
    assert identifier_of(*named_by(word, find_subject)) == word


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
