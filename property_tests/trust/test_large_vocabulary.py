"""Thirty tokens of 128 256 that come too often or too rarely: a total variation of 0.01."""

from __future__ import annotations

import pytest

from specverify.base.verdict import Status
from specverify.testing import check_sampler
from specverify.trust.large_vocabulary import PLANTED, RIGHT, TV, P, Q, accepted, describe_acceptance, sampler_of, table


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("law", PLANTED.values(), ids=PLANTED)
def test_a_bias_on_thirty_tokens_is_refuted(law):
    assert abs(law - P).sum() / 2 == pytest.approx(TV, rel=1e-6)
    verdicts = check_sampler(sampler_of(law), law=P, draft=Q, most_samples=400_000, tv=0.04, on_fail=None)
    found = {verdict.check: verdict for verdict in verdicts}["samples_fit_law"]
    assert found.status is Status.REFUTED


@pytest.mark.thorough
def test_the_right_one_holds_and_what_each_way_shows_is_printed():
    verdicts = check_sampler(sampler_of(P), law=P, draft=Q, tv=0.04)
    fit = verdicts[1]
    assert fit.figures["tv_at_most"] <= 0.04
    notes = fit.figures["notes"]
    assert [note.partition(":")[0] for note in notes] == [
        "every outcome by itself",
        "by probability",
        "by rank",
        "by token id",
        "by p/q",
    ]
    assert "too many for" in notes[0]
    assert all("would have been refuted" in note for note in notes[1:])


@pytest.mark.thorough
def test_vllm_s_statistics_stand_beside_the_verdicts():
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table().splitlines()[2:]]
    assert [line[0] for line in lines] == [RIGHT, *PLANTED]
    assert [line[1] for line in lines] == ["holds", "refuted", "refuted", "refuted"]
    assert lines[0][3:] == ["accepts"] * 4


def test_what_alarms_on_the_law_itself_is_told():
    law = PLANTED["the last ids are too frequent"]
    assert describe_acceptance("vLLM V1", law, 384) == "alarms, and on the law itself"
    assert describe_acceptance("vLLM V2 wide", law, 384) == "accepts"
    assert not accepted("vLLM V2 wide", PLANTED["thirty likely tokens are too rare"], 400_000)
