"""Black boxes judged by their samples: right ones hold, wrong ones are refuted by the check that is theirs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.statistics import perturbed
from specverify.testing import SpeculationRefuted, UnusableSubject, check_sampler
from test_support.samplers import black_boxes as boxes
from test_support.samplers.black_boxes import LAW, P, right, sampler_of
from test_support.statistics.statistical import at_most

QUICK = {"tv": 0.1, "on_fail": None}


def statuses(verdicts):
    return {verdict.check: verdict.status for verdict in verdicts}


def test_three_lines_in_somebodys_test_file():
    def sample(seed, n):
        rng = np.random.default_rng(seed)
        return [(int(a), int(b)) for a, b in rng.choice(4, (n, 2), p=P)]

    check_sampler(sample, law=LAW, tv=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_right_sampler_holds_in_every_respect(seed):
    verdicts = check_sampler(right, law=LAW, tv=0.1, seed=seed)
    assert statuses(verdicts) == dict.fromkeys(
        ["samples_are_supported", "samples_fit_law", "rows_are_independent", "calls_are_independent"], Status.HOLDS
    )
    fit = verdicts[1]
    assert fit.figures["tv_at_most"] <= 0.1
    assert any("every outcome by itself: 16 cells" in note for note in fit.figures["notes"])
    assert any("a seed gives the same samples again" in note for note in verdicts[3].figures["notes"])


@pytest.mark.parametrize(
    ("sample", "check", "within"),
    [
        (boxes.biased, "samples_fit_law", 4000),
        (boxes.one_uniform_for_both, "samples_fit_law", 512),
        (boxes.impossible_sometimes, "samples_are_supported", 1000),
        (boxes.two_rows_share_a_stream, "rows_are_independent", 1000),
        (boxes.all_rows_alike, "rows_are_independent", 1000),
        (boxes.rows_use_one_number_in_two_ways, "rows_are_independent", 1000),
        (boxes.both_halves_alike, "rows_are_independent", 2000),
        (boxes.seed_ignored, "calls_are_independent", 1000),
        (boxes.neighbours_by_seed_and_row, "calls_are_independent", 1000),
    ],
)
def test_a_planted_bug_is_refuted_by_its_check(sample, check, within):
    verdicts = check_sampler(sample, law=LAW, **QUICK)
    found = {verdict.check: verdict for verdict in verdicts}
    assert found[check].status is Status.REFUTED
    assert found["samples_fit_law"].figures["samples"] <= within
    with pytest.raises(SpeculationRefuted, match=check.replace("_", " ")):
        check_sampler(sample, law=LAW, tv=0.1)


@pytest.mark.parametrize("start", range(40))
def test_dependent_samples_accuse_no_law(start):
    """Thirty-two samples again and again look like another law, and soon."""
    found = statuses(check_sampler(lambda seed, n: right(start, n), law=LAW, **QUICK))
    assert found["calls_are_independent"] is Status.REFUTED
    assert found["samples_fit_law"] is Status.UNKNOWN
    assert found["samples_are_supported"] is Status.UNKNOWN


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sample", [boxes.all_rows_alike, boxes.rows_use_one_number_in_two_ways])
def test_rows_that_share_all_their_numbers_accuse_no_law(sample, seed):
    found = statuses(check_sampler(sample, law=LAW, **QUICK, seed=seed))
    assert found["rows_are_independent"] is Status.REFUTED
    assert {status for check, status in found.items() if check != "rows_are_independent"} <= {
        Status.UNKNOWN,
        Status.NOT_APPLICABLE,
    }


def test_calls_that_differ_are_named():
    """The shares of the two calls differ, and no two rows of a call are alike more often than others."""
    verdicts = check_sampler(boxes.rows_use_one_number_in_two_ways, law=LAW, **QUICK)
    refuted = next(verdict for verdict in verdicts if verdict.status is Status.REFUTED)
    assert "the shares of tokens in two calls differ by 0." in refuted.statement
    assert refuted.statement.endswith("the rows of a call share a random number, or calls have different laws")


def test_no_wrong_sampler_holds_whose_law_is_beyond_the_tv():
    """Just beyond: whatever is said, it is not that it holds."""
    for seed in range(10):
        sample = sampler_of(perturbed(LAW, 0.06))
        found = statuses(check_sampler(sample, law=LAW, tv=0.05, seed=seed, on_fail=None))
        assert found["samples_fit_law"] is not Status.HOLDS


def test_too_few_samples_are_unknown_and_say_what_they_leave_open():
    verdict = check_sampler(right, law=LAW, tv=0.01, most_samples=500, on_fail=None)[1]
    assert verdict.status is Status.UNKNOWN
    assert "500 samples do not refute it, but leave a TV of 0." in verdict.statement
    assert verdict.statement.endswith("tv is 0.01: give a larger most_samples or tv")


@pytest.mark.parametrize("largest", [1, 3])
def test_calls_of_few_rows_are_judged_like_others(largest):
    options = {"law": LAW, "most_samples": 3000, "tv": 0.2, "largest_call": largest}
    found = statuses(check_sampler(right, **options))
    assert ("rows_are_independent" in found) == (largest > 1)
    wrong = statuses(check_sampler(boxes.every_second_call_repeats(), **options, on_fail=None))
    assert wrong["calls_are_independent"] is Status.REFUTED
    assert wrong["samples_fit_law"] is Status.UNKNOWN


def test_a_reference_in_place_of_a_law():
    verdicts = check_sampler(right, law=right, tv=0.1)
    assert statuses(verdicts)["samples_fit_reference"] is Status.HOLDS
    wrong = check_sampler(boxes.biased, law=right, **QUICK)[0]
    assert (wrong.check, wrong.status) == ("samples_fit_reference", Status.REFUTED)
    assert "expected p = " in wrong.counterexample.fault
    assert "came" in wrong.counterexample.rows[0]


def test_a_reference_that_repeats_itself_accuses_nobody():
    verdict = check_sampler(right, law=boxes.seed_ignored, most_samples=4000, **QUICK)[0]
    assert verdict.status is Status.UNKNOWN
    assert "of the reference, rows of two calls are dependent" in verdict.statement


def test_long_sequences_are_told_apart_by_their_margins():
    """Every sequence is unique, and so is every one of the reference."""

    def sequences(pmf):
        return lambda seed, n: np.random.default_rng(seed).choice(8, (n, 20), p=pmf)

    plain, wrong = np.full(8, 1 / 8), np.array([0.25, 0.05, 0.05, 0.13, 0.13, 0.13, 0.13, 0.13])
    found = check_sampler(sequences(wrong), law=sequences(plain), most_samples=3000, on_fail=None)[0]
    assert found.status is Status.REFUTED
    same = check_sampler(sequences(plain), law=sequences(plain), most_samples=3000, on_fail=None)[0]
    assert same.status is Status.UNKNOWN


def test_the_unnamed_rest_of_a_law_is_bounded_by_its_mass():
    known = {(0,): 0.6, (1,): 0.3, "others": 0.1}
    full = {(0,): 0.6, (1,): 0.3, (2,): 0.05, (3,): 0.05}
    assert statuses(check_sampler(sampler_of(full), law=known, tv=0.2))["samples_fit_law"] is Status.HOLDS
    unknown = check_sampler(sampler_of(full), law=known, tv=0.1, most_samples=5000, on_fail=None)[1]
    assert unknown.status is Status.UNKNOWN
    assert unknown.statement.endswith("give a larger tv")


def test_a_law_of_one_outcome_has_nothing_that_could_depend():
    found = statuses(check_sampler(lambda seed, n: [(5, 5)] * n, law={(5, 5): 1.0}))
    assert found["samples_fit_law"] is Status.HOLDS
    assert "rows_are_independent" not in found
    wrong = check_sampler(lambda seed, n: [(5, 5)] * (n - 1) + [(5, 6)], law={(5, 5): 1.0}, on_fail=None)
    assert statuses(wrong)["samples_are_supported"] is Status.REFUTED


def test_what_the_sampler_raises_or_returns_is_named():
    def raises(seed, n):
        raise RuntimeError("no device")

    for sample, said in [
        (raises, r"raises\(seed=\d+, n=32\) raised RuntimeError: no device \(.*test_samplers.py:\d+"),
        (lambda seed, n: [(0, 0)] * (n - 1), r"\(seed=\d+, n=32\) returned 31 sequences, expected 32"),
        (lambda seed, n: "text", "expected 32 sequences of token ids"),
        (lambda seed, n: [("a", "b")] * n, "expected token ids, each a whole number of at least 0"),
        (lambda seed, n: [(0, -1)] * n, "expected token ids"),
        (lambda seed, n: None, "returned None"),
    ]:
        with pytest.raises(UnusableSubject, match=said):
            check_sampler(sample, law=LAW)
    with pytest.raises(UnusableSubject, match=r"raises\(seed"):
        check_sampler(right, law=raises)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"law": None}, "law is None, expected a pmf, probabilities by token sequence, laws by prefix, or another"),
        ({"reference": right}, "no option 'reference': write law=..., which takes a reference sampler"),
        ({"law": LAW, "tolerance": 0.1}, "check_sampler has no option 'tolerance': write tv=..."),
        ({"law": {(): [0.5, 0.5], (1,): 1.0}}, r"law after \(1,\) is 1.0, expected a law"),
        ({"law": lambda: 0}, "the reference sampler given as law takes"),
        ({"law": {(0,): 0.5}}, "the law sums to 0.5, expected probabilities that sum to 1"),
        ({"law": {"a": 1.0}}, "the law has the key 'a', expected a tuple of token ids"),
        ({"law": [[0.5], [0.5]]}, "expected a mapping from tuples of token ids to probabilities"),
        ({"law": [0.5, math.nan]}, "the law gives token 1 the probability nan"),
        ({"law": LAW, "tv": 0}, "tv is 0, expected a probability"),
        ({"law": LAW, "most_samples": 3}, "most_samples is 3, expected a whole number of at least 64"),
        ({"law": LAW, "on_fail": "wran"}, "on_fail is 'wran'"),
    ],
)
def test_what_cannot_be_is_refused_before_any_sample(given, said):
    with pytest.raises(ValueError, match=said):
        check_sampler(right, **given)


@pytest.mark.thorough
@pytest.mark.parametrize("judged_by", ["law", "reference"])
def test_right_samplers_are_refuted_no_more_often_than_declared(judged_by):
    """Every check together, after every batch, at an alarm high enough that there is something to count."""
    by = {"law": LAW if judged_by == "law" else right}
    refuted = sum(
        any(
            verdict.status is Status.REFUTED
            for verdict in check_sampler(right, **by, alarm=0.3, most_samples=1000, seed=seed, on_fail=None)
        )
        for seed in range(150)
    )
    assert at_most(refuted, 150, 0.3)
