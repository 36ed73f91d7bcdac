"""Verifiers of batches of logits: each row has the law of its processed target, whatever stands beside it."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.cli import app
from specverify.laws.draws import Tape
from specverify.subjects.batch_call import BatchRow, arguments_of, company_of, emitted, takes_lengths
from specverify.subjects.external import external_subject, verifier_subject_of
from specverify.subjects.forms import BATCHED_LOGITS
from specverify.subjects.verifier import verifier_subject
from specverify.testing import UnusableSubject, check_verifier
from test_support.verifiers import batched_logits, in_scenarios
from test_support.verifiers.examined import verdict_of

pytestmark = pytest.mark.usefixtures("named_checks_alone")

JOINT, OWN = "rows_are_independent", "law_is_target"
CHECKS = ("acceptance_is_optimal", OWN, JOINT, "tokens_are_supported", "support_at_boundary_draws", "inputs_unchanged")


def checked(verify, check):
    return verdict_of(verifier_subject(verify, verify.__name__, form=BATCHED_LOGITS), check)


@pytest.mark.thorough
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "verify",
    [batched_logits.in_numpy, batched_logits.vectorised, batched_logits.ragged],
    ids=lambda verify: verify.__name__,
)
def test_a_right_one_holds_at_every_setting(verify, check):
    verdict = checked(verify, check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["cases"] >= 4


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("check", [OWN, JOINT])
def test_a_right_one_holds_in_a_few_scenarios(check):
    verdict = in_scenarios.verdict(batched_logits.in_numpy, check, 2, "batched_logits")
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["tv"] < 1e-12


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize(
    ("verify", "check"),
    [
        (batched_logits.forgotten, JOINT),
        (batched_logits.across, OWN),
        (batched_logits.shared_coins, JOINT),
        (batched_logits.padding_processed, OWN),
        (batched_logits.written, "inputs_unchanged"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_wrong_one_is_refuted(verify, check):
    verdict = checked(verify, check)
    assert verdict.status is Status.REFUTED, verdict.statement
    assert verdict.counterexample.let


def certain(target_logits, draft_logits, draft_tokens, lengths, temperature):
    """Answer what is certain of neighbours, and look at what is given."""
    assert target_logits.shape == (4, 4, 5)
    assert draft_logits.shape == (4, 3, 5)
    assert draft_tokens.tolist() == [[4, 4, 4], [0, -1, -1], [1, 2, -1], [-1, -1, -1]]
    assert (lengths.tolist(), temperature) == ([3, 1, 2, 0], 1.5)
    p = batched_logits.softmax(target_logits, temperature)
    for row in (0, 1, 3):
        assert np.isfinite(target_logits[row]).all()
        assert set(p[row, : lengths[row] + 1].ravel()) == {0.0, 1.0}
    return [[4, 4, 4, 0], [4], [1, 2, 3], [0]]


def test_what_it_is_given_is_finite_and_its_neighbours_are_certain_at_the_highest_temperature():
    arguments = arguments_of(certain, BATCHED_LOGITS, (("temperature", 1.5),))
    rows = company_of(BatchRow(np.zeros((3, 5)), np.zeros((2, 5)), (1, 2)), True, arguments.of_pmfs)
    found = emitted(certain, rows, lambda draws: nullcontext(), arguments)(Tape(0))
    assert found == ((4, 4, 4, 0), (4,), (1, 2, 3), (0,))


def test_the_form_is_told_by_lengths_and_parameters_or_named():
    assert (
        external_subject("test_support.verifiers.batched_logits:ragged").name
        == "test_support.verifiers.batched_logits:ragged"
    )
    named = external_subject("batched-logits=test_support.verifiers.batched_logits:in_numpy")
    assert named.name == "batched-logits=test_support.verifiers.batched_logits:in_numpy"
    assert (
        named.name
        == verifier_subject_of(
            batched_logits.in_numpy, "test_support.verifiers.batched_logits:in_numpy", BATCHED_LOGITS
        ).name
    )
    assert named.variants[0].label == "gamma=2 temperature=1.5 top_k=2 top_p=0.8, alone"
    assert [variant.joint is not None for variant in named.variants] == [False, True, False, True, False, False]
    with pytest.raises(UnusableSubject, match=r"expected one of row, .*, did you mean batched-logits\?"):
        external_subject("batch-logits=test_support.verifiers.batched_logits:in_numpy")
    with pytest.raises(ValueError, match="did you mean batched_logits"):
        check_verifier(batched_logits.in_numpy, form="batch_logits")


def test_a_parameter_that_it_needs_is_no_length():
    assert not takes_lengths(batched_logits.in_numpy)
    assert takes_lengths(batched_logits.ragged)


@pytest.mark.thorough
def test_a_refutation_can_be_repeated():
    name = "batched-logits=test_support.verifiers.batched_logits:forgotten"
    printed = CliRunner().invoke(app, ["verify", name, "--check", JOINT])
    assert printed.exit_code == 1
    again = CliRunner().invoke(app, ["replay", printed.output.partition("specverify replay ")[2].split()[0]])
    assert again.exit_code == 1
    assert "row 2, new token 1 is 1 with probability 0.501, expected 0.5007" in again.output


@pytest.mark.thorough
def test_three_lines_in_somebodys_test_file():
    def empty(target_logits, draft_logits, draft_tokens, top_k):
        return [[]] * len(draft_tokens)

    with pytest.raises(UnusableSubject, match="row 1 of 1 emitted 0 tokens"):
        check_verifier(empty, form="batched_logits")
