"""Bugs of real engines, seen by samples alone: all are refuted, the right decoder never is, and the page says so."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_sampler
from specverify.trust.black_box_mutants import MUTANTS, OF_ACCEPTANCE, P, acceptance, decode, decode_with_counts
from specverify.trust.black_box_page import law, until_refuted

RIGHT = MUTANTS["none: a correct decoder"]
SHARED = MUTANTS["two rows share a stream"]
OF_THE_LAW = {name: bug for name, bug in MUTANTS.items() if bug is not RIGHT and bug is not SHARED}
SUBTLE = {"draft at temperature 0.8, q at 1": 40_000, "lenience 0.9": 12_000}


def test_the_right_decoder_has_the_target_s_law_and_accepts_as_it_should():
    """A planned check of the decoder itself: 400 000 texts, five standard deviations of every cell."""
    found = decode_with_counts(RIGHT, 7, 400_000)
    texts = found["tokens"] @ [len(P), 1]
    for cells, exact in ((texts, np.outer(P, P).ravel()), (found["accepted"], acceptance())):
        share = np.bincount(cells, minlength=len(exact)) / 400_000
        assert (np.abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / 400_000)).all()


def test_the_right_decoder_is_not_refuted_by_60_000_texts():
    assert until_refuted(RIGHT, seed=11) is None


@pytest.mark.parametrize("name", OF_THE_LAW)
def test_a_bug_is_refuted_at_an_alarm_of_one_in_a_million(name):
    until = until_refuted(OF_THE_LAW[name], seed=12)
    assert until is not None
    assert until <= SUBTLE.get(name, 8_000)


def test_rows_that_share_a_stream_have_the_right_law_and_are_refuted_by_the_check_of_rows():
    verdicts = check_sampler(partial(decode, SHARED), law=law(), on_fail=None)
    refuted = [verdict.check for verdict in verdicts if verdict.status is Status.REFUTED]
    assert refuted == ["rows_are_independent"]
    assert verdicts[0].figures["samples"] <= 1000


@pytest.mark.parametrize("name", OF_ACCEPTANCE)
def test_a_bug_of_acceptance_alone_is_refuted_by_its_check_alone(name):
    bug = OF_ACCEPTANCE[name]
    verdicts = check_sampler(
        partial(decode_with_counts, bug), law=law(), returns={"accepted": acceptance()}, tv=0.1, on_fail=None
    )
    refuted = [verdict.check for verdict in verdicts if verdict.status is Status.REFUTED]
    assert refuted == ([] if bug == RIGHT else ["acceptance_fits_law"])
    assert bug != RIGHT or {verdict.status for verdict in verdicts} == {Status.HOLDS}


@pytest.mark.parametrize("name", OF_ACCEPTANCE)
def test_its_texts_alone_hold(name):
    verdicts = check_sampler(partial(decode, OF_ACCEPTANCE[name]), law=law(), tv=0.1, on_fail=None)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
