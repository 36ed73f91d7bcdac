"""Verifiers of batches: a row's law may not depend on its neighbours, and two rows are independent."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.cli import app
from specverify.laws.draws import Tape
from specverify.laws.scenarios import Scenario
from specverify.run.verify import Checklist, run_check
from specverify.subjects.batch_call import accepted_whole, arguments_of, emitted, rejected_at_once, takes_lengths
from specverify.subjects.external import external_subject
from specverify.subjects.forms import BATCHED
from specverify.subjects.subject import Variant
from specverify.subjects.verifier import verifier_subject
from specverify.testing import UnusableSubject, check_verifier
from test_support.verifiers import batched_verifiers, verifiers
from test_support.verifiers.examined import verdict_of

JOINT, OWN = "rows_are_independent", "law_is_target"


def checked(verify, check):
    return verdict_of(verifier_subject(verify, verify.__name__, form=BATCHED), check)


@pytest.mark.thorough(keep=10)
@pytest.mark.parametrize("verify", [batched_verifiers.row_by_row, batched_verifiers.ragged], ids=lambda f: f.__name__)
@pytest.mark.parametrize("check", [OWN, "tokens_are_supported", "acceptance_is_optimal", "greedy_is_argmax", JOINT])
def test_a_correct_verifier_holds_alone_and_in_company(verify, check):
    verdict = checked(verify, check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["cases"] >= 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("verify", "check"),
    [(batched_verifiers.vectorised_ragged, OWN), (batched_verifiers.vectorised, JOINT)],
    ids=["vectorised_ragged", "vectorised"],
)
def test_vectorised_torch_holds(verify, check):
    verdict = checked(verify, check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["tv"] < 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize(
    "verify", [batched_verifiers.shared_coins, batched_verifiers.shared_noise], ids=lambda f: f.__name__
)
def test_what_rows_share_shows_in_their_joint_law_alone(verify):
    joint = checked(verify, JOINT)
    assert joint.status is Status.REFUTED
    assert joint.figures["tv"] > 0.05
    assert "e-1" in joint.statement.partition("alone they are off by ")[2]
    assert joint.counterexample.because
    if verify is batched_verifiers.shared_noise:
        assert checked(verify, OWN).status is Status.HOLDS


@pytest.mark.usefixtures("unexplained")
def test_two_rows_behind_one_that_is_rejected_at_once_are_looked_at_together():
    subject = verifier_subject(batched_verifiers.moved_up, "moved_up", form=BATCHED)
    short = Scenario("generic", 2, (0,), 3)
    joint = run_check(subject._replace(scenarios=(short,)), check_named(JOINT), Checklist(()))
    assert joint.status is Status.REFUTED


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    "verify",
    [
        batched_verifiers.first_residual,
        batched_verifiers.swapped,
        batched_verifiers.padding_verified,
        batched_verifiers.late_bonus,
    ],
    ids=lambda f: f.__name__,
)
def test_a_row_that_is_decided_by_its_neighbours_is_refuted(verify):
    verdict = checked(verify, OWN)
    assert verdict.status is Status.REFUTED
    assert "row 3 of " in verdict.counterexample.let[0]
    assert checked(verify, JOINT).status is Status.REFUTED


def test_a_row_that_is_taken_to_be_as_long_as_its_neighbour_is_found_out():
    verdict = checked(batched_verifiers.length_of_another, OWN)
    assert verdict.status is Status.UNUSABLE
    assert "emitted 2 tokens, expected 1 to 1" in verdict.statement


def test_a_row_behind_one_without_drafts_is_looked_at():
    subject = verifier_subject(batched_verifiers.one_row_of_drafts, "rows", form=BATCHED).with_situations(Variant, ())
    verdict = run_check(subject, check_named(OWN), Checklist(()))
    assert verdict.status is Status.REFUTED
    assert "row 5 of 8 " in verdict.counterexample.let[0]


def test_padding_that_is_emitted_is_answered_in_a_sentence():
    verdict = checked(batched_verifiers.padding_emitted, OWN)
    assert verdict.status is Status.UNUSABLE
    assert "expected nothing but placeholders after the first negative one" in verdict.statement


def test_a_verifier_of_one_row_has_no_rows_to_compare():
    check = verifier_subject(verifiers.in_numpy, "in_numpy")
    assert not any(variant.joint for variant in check.variants)


ROWS = (accepted_whole(2, 3), rejected_at_once(1, 3))


def as_it_is(draws):
    """Answer no draw: these verifiers make none."""
    return nullcontext()


def answer_to_rows(verify):
    return emitted(verify, ROWS, as_it_is, arguments_of(verify, BATCHED))(Tape(0))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([[2, 2, 0]], "it returned 1 rows for a batch of 2, expected one for each"),
        (np.array([2, 2]), r"it returned ndarray of shape \[2\], expected \[2, gamma \+ 1\] or a list of rows"),
        (None, r"it returned NoneType, expected \[2, gamma \+ 1\] or a list of rows"),
        ([[2, 2, 0], 2], "row 2 of 2 returned int, expected a row of integer tokens"),
        ([[2, -1, 0], [2]], r"row 1 of 2 emitted \[2, -1, 0\], expected nothing but placeholders after"),
        ([[2, 2, 0], [-1, -1, -1]], "row 2 of 2 emitted 0 tokens, expected 1 to 2: accepted drafts and one more"),
        ([[2, 2, 0], [0, 1, 2]], "row 2 of 2 emitted 3 tokens, expected 1 to 2"),
        ([[2, 2, math.nan], [2]], "row 1 of 2 emitted nan, expected whole numbers"),
        ({"rows": [[2, 2, 0], [2]]}, r"it returned dict, expected \[2, gamma \+ 1\] or a list of rows"),
        ("2202", r"it returned str, expected \[2, gamma \+ 1\] or a list of rows"),
        ({(2, 2, 0), (2,)}, r"it returned set, expected \[2, gamma \+ 1\] or a list of rows"),
        (
            (np.array([[2, 2, 0], [2, -1, -1]]), np.array([2, 0])),
            r"it returned a tuple of 2 \(ndarray of shape \[2, 3\], ndarray of shape \[2\]\), expected .* of rows: ",
        ),
        (([[2, 2, 0], [2]], [2, 0]), r"it returned a tuple of 2 \(list, list\), expected \[2, gamma \+ 1\]"),
        (
            np.array([[True, True, True]] * 2),
            "row 1 of 2 emitted bools, expected token ids: a mask is no row",
        ),
    ],
)
def test_a_wrong_shape_is_answered_in_one_sentence(answer, sentence):
    with pytest.raises(UnusableSubject, match=sentence):
        answer_to_rows(lambda p, q, draft_tokens, lengths: answer)


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rows", [list, tuple], ids=lambda rows: rows.__name__)
def test_a_sequence_of_rows_may_be_of_different_lengths(kind, rows):
    answer = rows([kind([2, 2, 0]), kind([2])])
    found = answer_to_rows(lambda p, q, draft_tokens, lengths: answer)
    assert found == ((2, 2, 0), (2,))


def test_rows_are_given_and_read_as_documented():
    seen = []

    def verify(p, q, draft_tokens, *, lengths):
        seen.append((p, q, draft_tokens, lengths))
        return np.array([[2, 2, 0], [2, -1, -1]])

    assert takes_lengths(verify)
    assert answer_to_rows(verify) == ((2, 2, 0), (2,))
    p, q, draft_tokens, lengths = seen[-1]
    assert (p.shape, q.shape) == ((2, 3, 3), (2, 2, 3))
    assert np.allclose(p.sum(-1), 1)
    assert np.allclose(q.sum(-1), 1)
    assert draft_tokens.tolist() == [[2, 2], [0, -1]]
    assert lengths.tolist() == [2, 1]


def test_the_form_is_told_by_lengths_or_by_a_word_before_the_name():
    ragged, swapped = (f"test_support.verifiers.batched_verifiers:{name}" for name in ("ragged", "swapped"))
    assert external_subject(ragged).name == ragged
    assert len(external_subject(ragged).variants) == 2
    assert external_subject(f"batched={swapped}").name == f"batched={swapped}"
    assert external_subject(swapped).variants[0].joint is None
    with pytest.raises(UnusableSubject, match="'rows' is not a form of a verifier: expected one of row, batched"):
        external_subject(f"rows={swapped}")


@pytest.mark.thorough
def test_a_failure_on_the_command_line_can_be_repeated():
    name = "batched=test_support.verifiers.batched_verifiers:shared_noise"
    printed = CliRunner().invoke(app, ["verify", name, "--check", JOINT])
    assert printed.exit_code == 1
    assert "Check rows are independent - refuted, exact" in printed.output
    again = CliRunner().invoke(app, ["replay", printed.output.partition("specverify replay ")[2].split()[0]])
    assert again.exit_code == 1
    assert "the rows share random numbers: one draw" in again.output


@pytest.mark.thorough
def test_three_lines_in_somebodys_test_file():
    with pytest.raises(UnusableSubject, match="row 1 of 1 emitted 0 tokens"):
        check_verifier(lambda p, q, draft_tokens: [[]] * len(p), form="batched")
