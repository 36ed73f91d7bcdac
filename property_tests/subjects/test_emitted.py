"""What a verifier does to its arguments and to what it has answered; what counts as a token; the arrays it is given."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.mutants.numpy_verifiers import batch, decided, of_logits, one_row, owed, ragged, softmax_rows
from specverify.run.verify import Checklist, run_check
from specverify.subjects.emitted import emitted_row, no_token
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains
from specverify.subjects.open_rows import ending_of
from specverify.subjects.subject import UnusableSubject
from specverify.testing import Call, check_verifier

CALLS = ("inputs_unchanged", "outputs_are_fresh")


def verdict_of(verify, name, form=None):
    check = check_named(name)
    return run_check(verifier_subject_of(verify, "verify", form_of_chains(form), (2,)), check, Checklist((check,)))


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("verify", "form"), [(one_row, "row"), (batch, "batched"), (ragged, None), (of_logits, None)])
def test_a_right_verifier_leaves_its_arguments_and_answers_alone(verify, form, name):
    verdict = verdict_of(verify, name, form)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["runs"] > 100


@pytest.mark.thorough
def test_what_a_verifier_was_given_when_it_raised_is_told_unless_it_is_much():
    def strict(p, q, draft_tokens):
        raise ArithmeticError("no")

    verdict = verdict_of(strict, "law_is_target", "row")
    assert verdict.status is Status.UNUSABLE
    place, given = (
        r"ArithmeticError: no \(test_emitted\.py:\d+\)",
        r"p = \[.*\], q = \[.*\], draft_tokens = \[\d\]",
    )
    assert re.fullmatch(f"{place}, given {given}", verdict.statement)
    with pytest.raises(UnusableSubject, match=rf"given {given} \(11 other checks say so too\)$"):
        check_verifier(strict)
    large = [Call(np.full((2, 50), 0.02), np.full((1, 50), 0.02), np.array([3]))]
    with pytest.raises(UnusableSubject, match=rf"{place}( \(\d+ other checks? says? so too\))?$"):
        check_verifier(strict, cases=large)


def test_of_much_the_sampling_parameters_alone_are_told():
    def divides(target_logits, draft_logits, draft_tokens, lengths, temperature):
        return [[int(row[0].argmax()) // int(temperature > 0)] for row in target_logits]

    _, found = check_verifier(divides, checks=["greedy_is_argmax"], on_fail=None)
    assert (found.check, found.status) == ("greedy_is_argmax", Status.UNUSABLE)
    assert re.search(r"ZeroDivisionError: .*, given temperature = 0(\.0)?$", found.statement)


# Arguments


def writing(verify, index, value):
    """Return the verifier that then writes into one of its arguments."""

    def changed(*given):
        answer = verify(*given)
        given[index][(0,) * given[index].ndim] = value
        return answer

    return changed


def row(index, value):
    def verify(p, q, draft_tokens):
        return writing(one_row, index, value)(p, q, draft_tokens)

    return verify


def batch_of(index, value):
    def verify(p, q, draft_tokens, lengths):
        return writing(ragged, index, value)(p, q, draft_tokens, lengths)

    return verify


def logits(index, value):
    def verify(target_logits, draft_logits, draft_tokens, temperature):
        def right(*given):
            return of_logits(*given, temperature, target_logits.shape[1], 1.0, 0.0)

        return writing(right, index, value)(target_logits, draft_logits, draft_tokens)

    return verify


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("verify", "said"),
    [
        (row(0, 0.0), "p[0, 0] was 0.3333333333333333 and is 0.0 after the call"),
        (row(1, 0.0), "q[0, 0] was 0.2"),
        (row(2, -1), "draft_tokens[0] was 0 and is -1 after the call"),
        (batch_of(0, 7.0), "p[0, 0, 0] was 0.3333333333333333 and is 7.0 after the call"),
        (batch_of(3, 9), "lengths[0] was 2 and is 9 after the call"),
        (logits(0, 5.0), "target_logits[0, 0] was -"),
        (logits(1, 5.0), "draft_logits[0, 0] was -"),
    ],
)
def test_an_argument_that_is_written_to_is_named_with_the_place(verify, said):
    verdict = verdict_of(verify, "inputs_unchanged")
    assert verdict.status is Status.REFUTED
    assert verdict.statement.startswith(said)
    assert verdict.counterexample.let[-1].startswith("drafted (")
    assert verdict_of(verify, "outputs_are_fresh").status is Status.HOLDS


def test_an_argument_that_is_scaled_in_place_is_named_and_later_calls_are_not_scaled():
    def verify(p, q, draft_tokens):
        p *= 0.5
        return one_row(2 * p, q, draft_tokens)

    verdict = verdict_of(verify, "inputs_unchanged")
    assert verdict.status is Status.REFUTED
    assert verdict.statement.startswith("p[0, 0] was 0.3333333333333333 and is 0.16666666666666666 after the call")
    [law] = check_verifier(verify, gammas=(1,), checks=["law_is_target"], quick=True)
    assert law.status is Status.HOLDS


def test_an_argument_of_another_shape_afterwards_is_named():
    def verify(p, q, draft_tokens):
        answer = one_row(p, q, draft_tokens)
        p.shape = (-1,)
        return answer

    verdict = verdict_of(verify, "inputs_unchanged")
    assert verdict.status is Status.REFUTED
    assert "p was float64[" in verdict.statement


def test_what_is_written_and_put_back_is_unchanged():
    def verify(p, q, draft_tokens):
        p[0, 0], before = 0.0, p[0, 0]
        p[0, 0] = before
        return one_row(p, q, draft_tokens)

    assert verdict_of(verify, "inputs_unchanged").status is Status.HOLDS


# Answers


def buffered():
    """One array for all answers of one row."""
    buffer = np.empty(9, dtype=np.int64)

    def verify(p, q, draft_tokens):
        found = one_row(p, q, draft_tokens)
        buffer[: len(found)] = found
        return buffer[: len(found)]

    return verify


def one_list():
    """One list for all answers, of rows."""
    found = []

    def verify(p, q, draft_tokens, lengths):
        found[:] = ragged(p, q, draft_tokens, lengths)
        return found

    return verify


def one_list_of_logits():
    found = []

    def verify(target_logits, draft_logits, draft_tokens, temperature):
        p, q = (softmax_rows(rows, temperature) for rows in (target_logits, draft_logits))
        found[:] = decided(np.random.default_rng(), p, q, draft_tokens.tolist())
        return found

    return verify


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("make", [buffered, one_list, one_list_of_logits], ids=lambda make: make.__name__)
def test_an_answer_that_the_next_call_overwrites_is_refuted(make):
    verdict = verdict_of(make(), "outputs_are_fresh")
    assert verdict.status is Status.REFUTED
    assert "was emitted, and the same answer holds" in verdict.statement
    assert verdict_of(make(), "inputs_unchanged").status is Status.HOLDS


def test_a_view_of_an_argument_is_said_and_no_fault():
    def verify(p, q, draft_tokens):
        found = one_row(p, q, draft_tokens)
        return found if len(found) > len(draft_tokens) else [*draft_tokens[: len(found) - 1, None], found[-1]]

    verdict = verdict_of(verify, "outputs_are_fresh")
    assert verdict.status is Status.HOLDS
    assert "until its caller's arrays are overwritten" in verdict.statement


def test_an_answer_that_is_written_into_an_argument_is_refuted():
    def verify(p, q, draft_tokens):
        found = one_row(p, q, draft_tokens)
        draft_tokens[: len(found)] = found[: len(draft_tokens)]
        return found if len(found) > len(draft_tokens) else draft_tokens[: len(found)]

    assert verdict_of(verify, "inputs_unchanged").status is Status.REFUTED


def test_a_buffer_that_is_copied_is_an_answer_of_its_own():
    verify = buffered()
    assert verdict_of(lambda p, q, d: verify(p, q, d).copy(), "outputs_are_fresh").status is Status.HOLDS


def test_an_answer_that_can_be_read_only_once_is_not_read_again():
    assert verdict_of(lambda p, q, d: iter(one_row(p, q, d)), "outputs_are_fresh").status is Status.HOLDS
    rows = verdict_of(lambda p, q, d: [map(int, row) for row in batch(p, q, d)], "outputs_are_fresh", "batched")
    assert rows.status is Status.HOLDS


# Tokens


@pytest.mark.parametrize(
    "answer",
    [[1, 2], (1, 2), np.array([1, 2, -1]), np.array([1.0, 2.0, -1.0]), np.float32([1, 2]), [np.int8(1), np.array(2)],
     [1, Fraction(2)], np.array([[1, 2]]), [1.0, 2]],
)  # fmt: skip
def test_whole_numbers_are_tokens(answer):
    found = emitted_row(answer, drafts=2)
    assert found == (1, 2)
    assert {type(token) for token in found} == {int}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.array([True]), "it emitted bools, expected token ids: a mask is no row of tokens"),
        ([True], "it emitted True, one of bools"),
        (np.float16([1]), "it emitted float16, expected a type that holds every token id: it rounds those above 2048"),
        ([float("nan")], "it emitted nan, expected whole numbers"),
        ([float("inf")], "it emitted inf, expected whole numbers"),
        (["1"], "it returned list ['1'], expected a row of integer tokens"),
        (([], np.array([])), "it returned tuple ([], array([], dtype=float64)), expected a row of integer tokens"),
        ([np.array([1, 0]), 2], "it returned list [array([1, 0]), 2], expected a row of integer tokens"),
        ([1j], "it returned list [1j], expected a row of integer tokens"),
        (3, "it returned int, expected a row of integer tokens"),
    ],
)
def test_what_is_no_number_of_a_token_is_said_in_a_sentence(answer, said):
    with pytest.raises(UnusableSubject) as refusal:
        emitted_row(answer, drafts=2)
    assert str(refusal.value).startswith(said)


def test_a_number_that_is_no_token_is_emitted_as_it_is():
    assert emitted_row([1, 1.7, -1], drafts=2) == (1, 1.7)
    assert emitted_row([9], drafts=2) == (9,)
    assert no_token(1.7, 4) == "1.7 is not a whole number"
    assert no_token(4, 4) == "4 is outside the vocabulary of 4"
    assert no_token(3, 4) is None


def test_a_fraction_of_a_token_is_refuted_and_not_cut():
    """As 1 it would be the right token."""
    verify = lambda p, q, draft_tokens: [token + 0.7 * (token == 1) for token in one_row(p, q, draft_tokens)]  # noqa: E731
    for name in ("tokens_are_supported", "law_is_target"):
        assert verdict_of(verify, name).status is Status.REFUTED
    assert "token 1.7 is not a whole number, at position " in verdict_of(verify, "tokens_are_supported").statement


# The arrays it is given, where torch is not needed


def failing(p, q, draft_tokens):
    """Wrong: its own arithmetic fails where a draft is rejected."""
    rng = np.random.default_rng()
    if not rng.random() < p[0, draft_tokens[0]] / q[0, draft_tokens[0]]:
        return [int(rng.random() * (p[0] - q[0]))]
    return one_row(p, q, draft_tokens)


@pytest.mark.thorough
def test_an_error_of_a_numpy_verifier_is_its_own():
    (verdict, *_) = check_verifier(failing, gammas=(1,), on_fail=None)
    assert verdict.status is Status.UNUSABLE
    assert "SymbolicFloat" not in verdict.statement
    assert "Tensor" not in verdict.statement


def with_random(p, q, draft_tokens):
    """The standard library alone."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not random.random() < p[i, token] / q[i, token]:
            return [*draft_tokens[:i], random.choices(range(p.shape[1]), owed(p[i], q[i]))[0]]
    return [*draft_tokens, random.choices(range(p.shape[1]), p[-1])[0]]


@pytest.mark.thorough
def test_a_verifier_of_the_standard_library_holds():
    assert {verdict.status for verdict in check_verifier(with_random, gammas=(1,))} == {Status.HOLDS}


@pytest.mark.parametrize("answer", [np.eye(3, dtype=int), np.zeros((2, 1, 2), dtype=int), np.int64(1)])
def test_an_array_of_several_axes_or_none_is_no_row(answer):
    said = f"it returned {type(answer).__name__} of shape {list(answer.shape)}, expected a row of integer tokens"
    with pytest.raises(UnusableSubject, match=re.escape(said)):
        emitted_row(answer, 8)


def test_a_row_may_have_axes_of_length_one():
    assert emitted_row(np.array([[2, 0, -1]]), 2) == emitted_row(np.array([[2], [0]]), 2) == (2, 0)


@pytest.mark.parametrize("read", [emitted_row, ending_of])
@pytest.mark.parametrize(
    ("tokens", "clause"),
    [
        ([512, 50_256, 7], r" \(-15280 is token 50256 in 16 bits: use int32 or int64\)$"),
        ([50_256, -1, -1], r"emitted 0 tokens, .* \(-15280 is token 50256 in 16 bits: use int32 or int64\)$"),
        ([5, -1, 7], "the first negative one$"),
        ([-100, -1, -1], "accepted drafts and one more$"),
    ],
)
def test_a_token_that_16_bits_do_not_hold_is_named(tokens, clause, read):
    with pytest.raises(UnusableSubject, match=clause):
        read(np.array(tokens).astype(np.int16), 2)
