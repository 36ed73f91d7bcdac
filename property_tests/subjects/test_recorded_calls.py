"""Calls at the caller's own size: what is refused, what is made here, and what a row of logits means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from specverify.laws.call_rule import added_up, reached
from specverify.laws.law_of_call import edges
from specverify.laws.rounding import FLOAT32
from specverify.mutants.numpy_verifiers import of_logits, one_row, ragged
from specverify.subjects.recorded_calls import batch_rows, rows_of
from specverify.testing import BatchedCall, Call, LogitsCall, SpeculationUndecided, check_verifier, hard_calls

pytestmark = pytest.mark.usefixtures("named_checks_alone")

P = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
Q = np.array([[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]])
DRAFTS = np.array([1, 0])
GOOD = Call(P, Q, DRAFTS)
LOGITS = LogitsCall(np.log(P), np.log(np.where(Q > 0, Q, 1e-9)), DRAFTS)
BATCH = BatchedCall(np.stack([P, P]), np.stack([Q, Q]), np.stack([DRAFTS, DRAFTS]))


def with_entry(array, place, value):
    found = array.copy()
    found[place] = value
    return found


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (GOOD._replace(p=P[:2]), "p has 2 rows for 2 drafts, expected one more than drafts"),
        (GOOD._replace(q=Q[:1]), "q has 1 rows for 2 drafts, expected one for each"),
        (GOOD._replace(q=np.full((2, 4), 0.25)), "p has 3 tokens and q has 4, expected one vocabulary"),
        (GOOD._replace(p=P[0]), r"p has the shape \[3\], expected \[rows, vocabulary\]"),
        (GOOD._replace(p=P.tolist()), "p is a list, expected an array of NumPy or torch"),
        (GOOD._replace(p=P.astype(int)), "p holds int64, expected float64, float32, float16 or bfloat16"),
        (GOOD._replace(p=with_entry(P, (1, 2), np.nan)), r"p\[1, 2\] is NaN, expected numbers"),
        (GOOD._replace(q=with_entry(Q, (0, 0), -0.25)), r"q\[0\]\[0\] is -0.25, expected probabilities >= 0"),
        (GOOD._replace(p=P * 1.01), r"p\[0\] sums to 1.01, expected probabilities of float64 that sum to 1"),
        (
            GOOD._replace(draft_tokens=np.array([1, 3])),
            r"draft_tokens\[1\] is 3, expected a token of the vocabulary of 3",
        ),
        (GOOD._replace(draft_tokens=np.array([2, 0])), r"draft_tokens\[0\] is 2, which q\[0\] gives probability 0"),
        (
            GOOD._replace(draft_tokens=np.array([1.0, 0.0])),
            r"draft_tokens is .*, expected a row of at least one token id",
        ),
        (
            GOOD._replace(draft_tokens=np.array([[1, 0]])),
            r"draft_tokens is .*, expected a row of at least one token id",
        ),
        (LOGITS._replace(temperature=-1.0), "temperature is -1.0, expected a number >= 0"),
        (LOGITS._replace(top_k=0), "top_k is 0, expected at least 1"),
        (LOGITS._replace(target_logits=np.full((3, 3), -np.inf)), r"the largest of target_logits\[0\] is -inf"),
    ],
)
def test_a_call_that_is_none_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        check_verifier(one_row, cases=[call])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (BATCH._replace(q=Q), r"q has the shape \[2, 3\], expected \[batch, rows, vocabulary\]"),
        (BATCH._replace(draft_tokens=DRAFTS), "expected as many rows in each"),
        (
            BATCH._replace(lengths=[2, 3]),
            r"lengths is \[2, 3\], expected a number of drafts from 0 to 2 for each of 2 rows",
        ),
    ],
)
def test_a_batch_that_is_none_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_verifier(ragged, cases=[call])


class Something(NamedTuple):
    """No call."""

    name: str = "something"


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ([], r"cases is \[\], expected at least one call"),
        ("hard", "cases is 'hard', expected calls"),
        (GOOD, r"cases is one Call, expected a sequence of calls, such as \[call\]"),
        ([Something()], "a case is Something.*, expected a Call, a LogitsCall, a BatchedCall or one of hard_calls"),
    ],
)
def test_cases_that_are_none_are_refused(cases, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_verifier(one_row, cases=cases)


def test_cases_tell_the_form_and_a_parameter_must_be_taken():
    with pytest.raises(ValueError, match="cases are given with form, gammas or sampled"):
        check_verifier(one_row, cases=[GOOD], gammas=(2,))
    verdicts = check_verifier(one_row, cases=[LOGITS._replace(top_k=2)], on_fail=None)
    assert "the call has top_k=2, expected a verifier with a parameter top_k" in verdicts[0].statement


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((63,), "the vocabulary is 63, expected an integer of at least 64"),
        ((100, 0), "gamma is 0, expected an integer from 1 to 64"),
        ((100, 2, "int8"), "the dtype is 'int8', expected one of 'float64', 'float32', 'float16', 'bfloat16'"),
    ],
)
def test_hard_calls_of_no_size_are_refused(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        hard_calls(*values)


# What is made here


@pytest.mark.parametrize("form", ["row", "logits"])
@pytest.mark.parametrize("size", [64, 100, 8191, 8192, 8193])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_hard_calls_are_calls_and_the_same_in_every_run(size, dtype, form):
    for spec in hard_calls(size, 3, dtype, form=form):
        call, again = spec.call(), spec.call()
        rows = rows_of(call)
        assert all(np.array_equal(one, other) for one, other in zip(call[:3], again[:3], strict=True))
        assert call[0].dtype == dtype
        assert (rows.vocabulary, len(rows.drafts)) == (size, 3)


def test_together_they_reach_every_number_of_drafts_and_have_weight_at_the_edges():
    size, at, drafted = 20_000, np.array(edges(20_000)), set()
    reach, weight = np.zeros(5), np.zeros(len(at))
    for spec in hard_calls(size, 4):
        rows = rows_of(spec.call())
        drafted |= set(rows.drafts)
        reach = np.maximum(reach, [each.low for each in reached(rows, added_up(FLOAT32, size))])
        for p, q in zip(rows.p, rows.q, strict=False):
            weight = np.maximum(weight, np.maximum(p.pmf - q.pmf, 0)[at])
    assert (reach > 0.05).all()
    assert (weight > 1e-4).all()
    assert size - 1 in drafted


def test_the_shapes_are_what_they_are_called():
    calls = {spec.shape: rows_of(spec.call()) for spec in hard_calls(8193, 2, "float64")}
    assert (calls["padded"].p[0].pmf[8192:] == 0).all()
    assert (calls["equal"].p[0].pmf == calls["equal"].q[0].pmf).all()
    apart = np.abs(calls["apart by rounding"].p[0].pmf / calls["apart by rounding"].q[0].pmf - 1)
    assert 0 < apart.max() < 1e-8
    assert all(np.count_nonzero(row.pmf) == 1 for row in calls["points"].p)
    assert 0.04 < np.mean(calls["mostly zero"].p[0].pmf > 0) < 0.06
    left = np.maximum(calls["small residual"].p[0].pmf - calls["small residual"].q[0].pmf, 0)
    assert left.max() < 2**-11
    assert np.count_nonzero(left) > 8000


@pytest.mark.thorough
def test_the_rows_of_a_batch_have_their_own_lengths():
    first, second = batch_rows(BATCH._replace(lengths=[1, 2]))
    assert (len(first.p), len(first.q), len(second.p)) == (2, 1, 3)
    assert check_verifier(ragged, cases=[BATCH._replace(lengths=np.array([1, 2]))])


# Logits


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7, "top_k": 20}, {"top_p": 0.9}, {"min_p": 0.1}, {"temperature": 0.0}]
)
def test_a_verifier_of_logits_is_judged_with_its_parameters(options):
    given = hard_calls(600, 2, "float64", form="logits")[1].call()._replace(**options)
    drafts = [int(row.argmax()) for row in np.asarray(given.draft_logits)]
    given = given._replace(draft_tokens=np.array(drafts))
    assert all(verdict.status == "holds" for verdict in check_verifier(of_logits, cases=[given]))

    def another(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p):
        return of_logits(target_logits, draft_logits, draft_tokens, temperature or 1.0, 600, 1.0, 0.0)

    if set(options) & {"top_k", "top_p", "min_p"} or options.get("temperature") == 0:
        verdicts = check_verifier(another, cases=[given], on_fail=None)
        assert any(verdict.status == "refuted" for verdict in verdicts)


@pytest.mark.thorough
def test_a_verifier_of_one_vocabulary_is_judged_at_five_drafts_too():
    """It runs on no smaller rows, so those with three possible tokens are as wide, and as many."""

    def fixed(p, q, draft_tokens):
        if p.shape != (6, 600):
            raise ValueError(f"made for 5 drafts of 600 tokens, not for {p.shape}")
        return one_row(p, q, draft_tokens)

    verdicts = check_verifier(fixed, cases=hard_calls(600, 5, "float64")[:2])
    assert {verdict.status for verdict in verdicts} == {"holds"}


def drawn_in_two_steps(weights, blocks, rng):
    """Return a token: first one of ``blocks`` blocks of 16 tokens is drawn, then a token of the block."""
    sums = np.array([weights[16 * block : 16 * block + 16].sum() for block in range(blocks)])
    block = int(rng.choice(blocks, p=sums / sums.sum()))
    inside = weights[16 * block : 16 * block + 16]
    return 16 * block + int(rng.choice(len(inside), p=inside / inside.sum()))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_law_that_cannot_be_followed_is_not_left_out_of_the_quick_plan(lost):
    """The last block is lost if ``lost`` is 1; only the rows with one certain token show the law of two draws."""
    rng = np.random.default_rng()

    def verify(p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if rng.random() * q[place, token] >= p[place, token]:
                rest = np.maximum(p[place] - q[place], 0)
                rest = rest if rest.any() else p[place]
                return [*draft_tokens[:place], drawn_in_two_steps(rest, 129 - lost, rng)]
        return [*draft_tokens, drawn_in_two_steps(p[-1], 129 - lost, rng)]

    calls = [call for call in hard_calls(2056, 1, "float64") if call.shape in {"points", "at edges"}]
    with pytest.raises(SpeculationUndecided, match=r"if .* is drawn at .*: only draws of at most 32"):
        check_verifier(verify, cases=calls, quick=True)
