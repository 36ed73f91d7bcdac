"""The options that all check functions take, and what they raise."""

from __future__ import annotations

import inspect
import random
import sys
from functools import partial

import numpy as np
import pytest

from reference import ALGORITHMS, Claim
from specverify.base.verdict import Status
from specverify.testing import (
    Made,
    SpeculationRefuted,
    SpeculationUndecided,
    SpeculationWarning,
    UnusableSubject,
    check_cache,
    check_decoder,
    check_drafter,
    check_engine,
    check_kernel,
    check_sampler,
    check_subject,
    check_verifier,
    parametrize_with_checks,
    server_sampler,
)
from specverify.testing.plans import DEFAULTS

pytestmark = pytest.mark.usefixtures("named_checks_alone")

EVERY = (
    check_cache,
    check_decoder,
    check_drafter,
    check_engine,
    check_kernel,
    check_sampler,
    check_subject,
    check_verifier,
)


def right(draws, target, draft, tokens):
    """Draw from the target."""
    return (draws.categorical(target(tokens), ("target",)),)


def wrong(draws, target, draft, tokens):
    """Draw from the draft."""
    return (draws.categorical(draft(tokens), ("draft",)),)


@pytest.mark.parametrize("check", EVERY)
def test_every_check_function_shows_the_common_options(check):
    parameters = inspect.signature(check).parameters
    assert set(DEFAULTS) <= set(parameters)
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS


def test_only_the_checks_that_are_named_are_run():
    assert [verdict.check for verdict in check_decoder(right, checks=["greedy_is_argmax"])] == ["greedy_is_argmax"]


def test_a_named_check_that_does_not_apply_is_told():
    with pytest.warns(SpeculationWarning, match="right: rows_are_independent was not examined: it decides one row"):
        verdicts = check_decoder(right, checks=["rows_are_independent", "greedy_is_argmax"])
    assert [verdict.check for verdict in verdicts] == ["greedy_is_argmax"]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"batched": "yes"}, "batched of Made is 'yes', expected True or False"),
        ({"stops": 1}, "stops of Made is 1, expected True or False"),
        ({"allowed": 5}, "allowed of Made is 5, expected a function of the new tokens"),
    ],
)
def test_a_field_of_an_engine_of_another_type_is_named(field, sentence):
    with pytest.raises(UnusableSubject, match=sentence):
        check_engine(lambda scenario: Made(lambda: [0] * scenario.horizon, **field))


@pytest.mark.parametrize(
    ("prompt", "options", "sentence"),
    [
        ((), None, r"prompt is \(\), expected a text, or a non-empty sequence"),
        ((-1,), None, r"prompt is \(-1,\), expected a text, or a non-empty sequence"),
        ((0,), "x", "options is 'x', expected fields of the request"),
    ],
)
def test_what_a_server_cannot_be_asked_is_refused(prompt, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        server_sampler("http://localhost:1/v1/completions", prompt, 1, options=options)


def test_an_engine_whose_making_ends_the_process_is_unusable():
    with pytest.raises(UnusableSubject, match="it was not made: SystemExit: 1"):
        check_engine(lambda scenario: sys.exit(1))


def test_verdicts_come_one_by_one_and_the_first_failure_may_end_it():
    told = []
    check_decoder(wrong, on_fail=None, fail_fast=True, callback=told.append)
    assert [verdict.status for verdict in told] == [Status.HOLDS, Status.REFUTED]


def test_a_warning_in_place_of_an_error():
    with pytest.warns(SpeculationWarning, match="law is target - refuted"):
        check_decoder(wrong, on_fail="warn", checks=["law_is_target"])


@pytest.mark.thorough
def test_an_expected_failure_is_none_and_one_that_holds_is_one():
    wrong_laws = ("law_is_target", "long_law_is_target", "greedy_is_argmax", "tokens_are_supported")
    reasons = dict.fromkeys(wrong_laws, "draws from q")
    check_decoder(wrong, expected_failures=reasons, quick=True)
    with pytest.raises(SpeculationUndecided, match=r"law_is_target was expected to fail \(mended\) and holds"):
        check_decoder(right, expected_failures={"law_is_target": "mended"})
    with pytest.raises(SpeculationRefuted) as raised:
        check_decoder(
            wrong,
            expected_failures={
                "law_is_target": "known",
                "long_law_is_target": "known",
                "horizon_is_respected": "not so",
            },
        )
    assert "law is target - refuted" not in str(raised.value)
    assert "horizon_is_respected was expected to fail (not so) and holds" in str(raised.value)


def test_a_lossless_decoder_may_promise_less():
    assert check_decoder(right, claims={Claim.SUPPORTED}, checks=["tokens_are_supported"])


def test_quick_says_how_many_cases_it_leaves_out():
    found = check_decoder(right, quick=True, checks=["law_is_target"])[0]
    whole = check_decoder(right, checks=["law_is_target"])[0]
    assert found.figures["cases"] + found.figures["left_out"] == whole.figures["cases"]
    assert 0 < found.figures["cases"] <= 32


@pytest.mark.parametrize("gamma", [6, 8, 16])
def test_quick_refutes_what_is_wrong_at_the_largest_number_of_drafts_alone(gamma):
    def verify(p, q, draft_tokens):
        if len(draft_tokens) == gamma:
            return [0] * (gamma + 1)
        for i, token in enumerate(draft_tokens):
            if random.random() * q[i, token] >= p[i, token]:
                left = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], random.choices(range(len(left)), left)[0]]
        return [*draft_tokens, random.choices(range(len(p[-1])), p[-1])[0]]

    with pytest.raises(SpeculationRefuted, match=f"gamma={gamma}"):
        check_verifier(verify, gammas=(gamma,), quick=True, checks=["law_is_target"])


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("shape", [(-1,) * 5, (-1, *range(11))])
def test_what_is_wrong_for_a_whole_tree_alone_is_refuted(shape, quick):
    def verify(p, q, parents, tokens):
        node, emitted = (-2, []) if len(parents) == len(shape) else (-1, [])
        while True:
            emitted.append(random.choices(range(len(p[0])), p[node + 1])[0] if node > -2 else 0)
            below = [i for i, parent in enumerate(parents) if parent == node and tokens[i] == emitted[-1]]
            if not below:
                return emitted
            node = below[0]

    with pytest.raises(SpeculationRefuted):
        check_verifier(verify, form="tree", drafts="top_k", trees=(shape,), quick=quick, checks=["law_is_target"])


def test_quick_refutes_what_is_wrong():
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_decoder(wrong, quick=True)


def labels(*subjects, **how):
    return [item.id for item in parametrize_with_checks(list(subjects), **how).args[1]]


def test_ids_name_subject_and_check():
    assert labels(right, checks=["law_is_target"]) == ["right-law_is_target"]
    assert labels(ALGORITHMS[0], checks=["law_is_target"]) == [f"{ALGORITHMS[0].name}-law_is_target"]
    assert labels(right, right, checks=["law_is_target"]) == ["right1-law_is_target", "right2-law_is_target"]
    one = parametrize_with_checks({"mine": right}, checks=["law_is_target"])
    assert [item.id for item in one.args[1]] == ["mine-law_is_target"]
    engine = partial(check_engine, lambda: [0], {(0,): 1.0}, checks=["law_is_target"])
    assert labels(engine) == ["lambda-law_is_target"]


def test_a_share_of_the_time_is_no_more_than_was_given():
    from specverify.testing.plans import shared

    assert shared({"timeout": 5.0}, {"timeout": 9.0, "alarm": 1e-3}) == {"timeout": 5.0, "alarm": 1e-3}
    assert shared({"alarm": 1e-6}, {"timeout": 9.0, "alarm": 1e-3}) == {"timeout": 9.0, "alarm": 1e-6}
    assert shared({}, {"timeout": 5000.0}) == {"timeout": 5000.0}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_decoder(right, quik=True), "check_decoder has no option 'quik', did you mean quick?"),
        (lambda: check_sampler(right, law={}, claims=[]), "has no option 'claims', which other check functions have"),
        (lambda: check_decoder(right, quick=1), "quick is 1, expected True or False"),
        (lambda: check_decoder(right, fail_fast="x"), "fail_fast is 'x', expected True or False"),
        (lambda: check_decoder(right, timeout="5"), "timeout is '5', expected a number of seconds"),
        (lambda: check_decoder(right, alarm=0), "alarm is 0, expected a probability strictly between 0 and 1"),
        (lambda: check_decoder(right, callback=5), "callback is 5, expected something to call with 1 argument"),
        (lambda: check_decoder(right, checks="law_is_target"), "checks is 'law_is_target', expected names of checks"),
        (lambda: check_decoder(right, checks=[]), "checks is [], expected names of checks"),
        (lambda: check_decoder(right, checks=["law"]), "checks names 'law', expected some of program_is_its_draws, "),
        (lambda: check_decoder(right, checks=["law_is_taget"]), ", did you mean law_is_target?"),
        (lambda: check_decoder(right, expected_failures=["law_is_target"]), "expected reasons by check, such as"),
        (lambda: check_decoder(right, expected_failures={"law_is_target": ""}), "expected reasons by check, such as"),
        (lambda: check_decoder(right, expected_failures={"law": "why"}), "expected_failures names 'law', expected"),
        (
            lambda: parametrize_with_checks(right),
            "expected a list of at least one, such as [my_verifier], or a",
        ),
        (lambda: parametrize_with_checks([]), "subjects is [], expected a list of at least one"),
        (lambda: parametrize_with_checks({5: right}), "the name of a subject is 5, expected a string"),
        (lambda: parametrize_with_checks([check_engine]), "what it is called with too: partial(check_engine, ...)"),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as raised:
        call()
    assert sentence in str(raised.value)
