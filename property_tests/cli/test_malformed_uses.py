"""Uses of the command line and of the library that cannot be: each is answered in a sentence that helps."""

from __future__ import annotations

import json
import re
from functools import partial

import malformed
import numpy as np
import pytest
from malformed import always, round_of
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.checks.explaining.engine_paths import draws_of
from specverify.checks.explaining.engine_paths import told as told_draws
from specverify.cli import app
from specverify.laws.draws import Decision
from specverify.run.campaign_plans import campaign_of
from specverify.run.catalogue import find_subject
from specverify.subjects.external import decode_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import (
    Observer,
    SpeculationRefuted,
    calibrate,
    check_decoder,
    check_engine,
    check_kernel,
    check_sampler,
    check_verifier,
)

HALVES = [0.5, 0.5]
LAW = "law.json"
SUBJECT = f'[[subject]]\nname = "python:malformed:sample"\nlaw = "{LAW}"\n'
RESULTS = 'results = "results.sqlite"\n'


def test_a_name_in_a_class_is_taken():
    assert find_subject("malformed:Holder.one_round").summary == "One draft, one verification."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("egag", "there is no subject 'egag', did you mean reference:egag?"),
        ("EGAG", "there is no subject 'EGAG', did you mean reference:egag?"),
        ("egagg", "there is no subject 'egagg', did you mean reference:egag?"),
        ("Reference:egag", "there is no subject 'Reference:egag', did you mean reference:egag?"),
        ("reference:EGAG", "there is no subject 'reference:EGAG', did you mean reference:egag?"),
        ("residual-floor", "did you mean mutant:residual-floor?"),
        ("malformed.one_round", "did you mean malformed:one_round? (module:callable)"),
        ("malformed.py", "that is a file, expected a function of its module: malformed:FUNCTION"),
        ("malformed.py:one_round", "'malformed.py' is a file, expected its module: malformed:one_round"),
        ("run/malformed.py:two", "'run/malformed.py' is a file, expected its module: malformed:two, in the folder run"),
        ("malformed:__name__", "is a str, expected a function: a round, a whole decode or a verifier"),
        ("malformed:one_rond", "malformed has no attribute 'one_rond', did you mean one_round?"),
        ("malformed:one_round:x", "malformed has no attribute 'one_round:x', did you mean one_round?"),
        ("malformed:Holder.one", "malformed has no attribute 'Holder.one'"),
        ("malformed:awaited", "and is not async"),
        ("batched=malformed:awaited", "and is not async"),
        ("bathced=malformed:batches", "'bathced' is not a form of a verifier: expected one of row, batched, logits"),
        ("bathced=malformed:batches", ", did you mean batched?"),
        ("malformed:Kept", "malformed:Kept takes (strict=True), expected (draws, "),
        ("malformed:Kept", "min_p]), or an instance that takes them"),
        (
            "malformed:Kept.verify",
            "takes (self, p, q, draft_tokens), the method of a class, expected that of an instance",
        ),
        ("row=malformed:one_round", "takes (draws, target, draft, tokens), expected (p, q, draft_tokens): missing"),
    ],
)
def test_a_name_that_leads_nowhere(name, sentence):
    with pytest.raises(UnusableSubject, match=r"\A[^\n]+\Z") as caught:
        find_subject(name)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_verifier(malformed.awaited), "and is not async"),
        (lambda: check_verifier(malformed.Awaited()), "and is not async"),
        (lambda: check_decoder(malformed.awaited), "and is not async"),
        (lambda: check_engine(malformed.awaited), "and is not async"),
        (lambda: check_kernel(malformed.awaited), "and is not async"),
        (lambda: check_sampler(malformed.awaited, law=HALVES), "and is not async"),
        (lambda: calibrate(malformed.awaited, HALVES, samples=10), "and is not async"),
        (lambda: check_verifier(malformed.two), "takes (p, q), expected (p, q, draft_tokens): too many positional"),
        (lambda: check_verifier(malformed.four), "takes (p, q, draft_tokens, more), expected (p, q, draft_tokens)"),
        (lambda: check_verifier(len), "expected (p, q, draft_tokens): too many positional arguments"),
        (
            lambda: check_verifier(always(0), claims="lossles"),
            "expected a collection of at least one Claim, such as {C",
        ),
        (
            lambda: check_verifier(always(0), claims=["lossless"]),
            "a claim is 'lossless', expected one of Claim.SUPPORT",
        ),
        (lambda: check_sampler(malformed.sample, law=HALVES, timeout=0), "timeout is 0, expected a number of seconds"),
        (lambda: check_sampler(malformed.sample, law="x"), "the law is 'x', expected a mapping from tuples"),
        (lambda: check_sampler(malformed.sample, law=5), "the law is 5, expected a mapping from tuples"),
        (lambda: check_sampler(malformed.sample, law=HALVES, draft=5), "the draft's law is 5, expected a mapping"),
        (lambda: check_kernel(lambda p, q, d, u, r: d, seed=-1), "the seed is -1, expected a whole number"),
        (lambda: Observer((0,), draft=5), "draft is 5, expected something to call with 1 argument"),
        (
            lambda: calibrate(lambda x: 0.3, HALVES, samples=10),
            "returned is 0.3, expected True, False or None, or a th",
        ),
        (lambda: calibrate(lambda x: "no", HALVES, samples=10), "what the statistic returned is 'no', expected True"),
        (lambda: calibrate(lambda x: "no", HALVES, samples=10, threshold=1), "returned is 'no', expected a number, to"),
        (
            lambda: calibrate(lambda x: np.nan, HALVES, samples=10, threshold=1),
            "returned is nan, expected a number, to",
        ),
        (lambda: calibrate(lambda x: (1, 2), HALVES, samples=10, threshold=1), "returned is (1, 2), expected a number"),
        (lambda: calibrate(lambda x: x, HALVES, samples=10, threshold=1), "expected a number, to compare with the"),
    ],
)
def test_an_argument_that_cannot_be(call, sentence):
    with pytest.raises((ValueError, UnusableSubject), match=r"\A[^\n]+\Z") as caught:
        call()
    assert sentence in str(caught.value)


def test_what_calibrate_takes_for_an_answer():
    for answer in (None, True, np.True_):
        assert calibrate(lambda x, answer=answer: answer, HALVES, samples=10, runs=10, runs_of_wrong=10).alarms == 0
    for answer, threshold in ((False, None), (np.False_, None), (np.float32(2), 1), (np.array(2.0), 1), (np.inf, 1)):
        found = calibrate(
            lambda x, answer=answer: answer, HALVES, samples=10, runs=10, runs_of_wrong=10, threshold=threshold
        )
        assert found.alarms == 10


@pytest.mark.thorough(keep=15)
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_verifier(always(None)), "it returned NoneType, expected a row of integer tokens"),
        (lambda: check_verifier(always("ab")), "it returned str 'ab', expected a row of integer tokens"),
        (lambda: check_verifier(always(["1", "0"])), "it returned list ['1', '0'], expected a row of integer tokens"),
        (lambda: check_verifier(always([[0]])), "it returned list [[0]], expected a row of integer tokens"),
        (lambda: check_verifier(always(([0], 2))), "it returned tuple ([0], 2), expected a row of integer tokens"),
        (lambda: check_verifier(always({0: 1})), "it returned dict {0: 1}, expected a row of integer tokens"),
        (lambda: check_verifier(always({0})), "it returned set {0}, expected a row of integer tokens"),
        (
            lambda: check_verifier(malformed.batches),
            "It fails on a row and answers a batch of one: is it to be given f",
        ),
        (lambda: check_verifier(lambda p, q, draft_tokens: {"n": [*draft_tokens]}), "it returned dict {'n': ["),
        (lambda: check_decoder(round_of(())), "a round committed no token, expected at least one"),
        (lambda: check_decoder(round_of(None)), "it returned NoneType, expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of("ab")), "it returned str 'ab', expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of(["a"])), "it returned list ['a'], expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of([True])), "it returned list [True], expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of({0: 1})), "it returned dict {0: 1}, expected the new tokens as a sequence of"),
    ],
)
def test_an_answer_that_is_none_is_told_once(call, sentence):
    with pytest.raises(UnusableSubject) as caught:
        call()
    told = str(caught.value)
    assert told.count(sentence) == 1
    assert " other checks say so too)" in told
    assert "emitted.py" not in told
    assert "external.py" not in told


def test_options_behind_three_arguments_make_a_verifier_and_no_round():
    def verify(p, q, draft_tokens, epsilon=1e-9):
        """Emit one token."""
        return [0]

    assert decode_subject(verify, "verify").intercepted
    assert decode_subject(partial(verify, epsilon=0.0), "verify").summary == "Emit one token."
    assert not decode_subject(malformed.one_round, "round").intercepted


@pytest.mark.thorough
def test_an_end_of_an_iterator_is_told_where_it_is_met_and_not_where_it_arrives():
    """Python makes a RuntimeError of a StopIteration that passes through a generator, with the generator's line."""

    def verify(p, q, draft_tokens):
        return [next(iter(()))]

    verdicts = check_verifier(verify, quick=True, on_fail=None)
    said = {verdict.statement.partition(", given")[0] for verdict in verdicts if verdict.status is Status.UNUSABLE}
    assert len(said) == 1, said
    assert re.fullmatch(r"StopIteration \(test_malformed_uses\.py:\d+\)", said.pop())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "answer", [None, 0, "ab", ["a"], [None], [[["a"]]], [True], [0.5], {0: 1}, {0}, np.array([True]), np.array([0.5])]
)
def test_an_engine_that_returns_no_tokens_is_held_to_be_nothing(answer):
    with pytest.raises(UnusableSubject) as caught:
        check_engine(lambda: answer, lambda: answer)
    assert "is unusable: it " in str(caught.value)
    assert "expected" in str(caught.value)
    assert "engine.py" not in str(caught.value)


@pytest.mark.thorough
@pytest.mark.parametrize("answer", [(1, 0), np.array([1, 0]), [np.int64(1), 0.0]])
def test_an_engine_may_return_token_ids_of_any_kind(answer):
    assert check_engine(lambda: answer, {(1, 0): 1.0})


def test_a_lambda_is_not_promised_to_be_found_again():
    wrong = lambda draws, target, draft, tokens: (0,)  # noqa: E731 - that it has no name is the matter
    with pytest.raises(SpeculationRefuted) as told:
        check_decoder(wrong)
    assert "replay" not in str(told.value)


def test_a_site_of_nothing_leaves_no_blank():
    assert told_draws(draws_of([Decision((), (0.25, 0.75), 1)])) == "drew 1 from (0.25, 0.75)"
    assert told_draws(draws_of([Decision(("x", 2), (0.25, 0.75), 1)])) == "drew 1 from (0.25, 0.75)"
    assert told_draws(draws_of([Decision(("x", "row.py:13"), (0.5, 0.5), 1)])) == "drew 1 from (0.5, 0.5) (row.py:13)"
    assert told_draws(draws_of([Decision(("x", "row.py:13"), (0, 1), 1)])) == "without any draw"


def test_the_comparisons_of_one_uniform_are_one_interval():
    """A second question is about what the first one left: below 0.31, then in the upper half of that."""
    uniform = ("torch.rand", "row.py:13", 0)
    first = Decision((*uniform, "below", 1), (0.31, 0.69), 0)
    second = Decision((*uniform, "below", 2), (0.5, 0.5), 1)
    again = Decision((*uniform, "below", 1), (0.4, 0.6), 1)
    other = Decision(("torch.multinomial", "row.py:14", 0, "between", 1), (0.25, 0.75), 1)
    assert told_draws(draws_of([first, second, again, other])) == (
        "0.155 <= u < 0.31 (row.py:13), u >= 0.4 (row.py:13), drew a token with probability 0.75 (row.py:14)"
    )


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (RESULTS + SUBJECT + SUBJECT, "subject 2 is the same as subject 1, expected each once"),
        (RESULTS, "names nothing to sample, expected at least one [[subject]]"),
        (SUBJECT, "the plan has no 'results'"),
        ("result = 'a'\n" + SUBJECT, "the plan has 'result', expected one of results, "),
        (RESULTS + "block = '64'\n" + SUBJECT, "block of the plan is '64', expected a whole number"),
    ],
)
def test_a_plan_that_is_none(plan, sentence, tmp_path):
    (tmp_path / LAW).write_text('[{"tokens": [0], "probability": 1.0}]', "utf-8")
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        campaign_of(tmp_path / "plan.toml")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no JSON (Expecting value"),
        ('{"verdicts": [{"sub', "is no JSON (Unterminated string"),
        ('{"passed": 3}', "is JSON that no run wrote, expected what verify"),
        ('{"verdicts": 3}', "has verdicts that no run wrote ('int' object is not iterable), expected"),
        (
            json.dumps({"verdicts": [{"subject": "a"}]}),
            "has verdicts that no run wrote (no 'counterexample'), expected",
        ),
    ],
)
def test_a_run_that_is_none(text, sentence, tmp_path):
    (tmp_path / "run.json").write_text(text, "utf-8")
    result = CliRunner().invoke(app, ["report", str(tmp_path / "run.json"), "--markdown", str(tmp_path / "page.md")])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert sentence in result.stderr


@pytest.mark.parametrize("name", ["malformed:sample", "a.b:c"])
def test_a_black_box_without_its_kind(name, tmp_path):
    (tmp_path / LAW).write_text('{"0": 1.0}', "utf-8")
    result = CliRunner().invoke(app, ["sample", name, "--law", str(tmp_path / LAW)])
    assert result.exit_code == 2
    assert f"did you mean python:{name}?" in " ".join(result.output.split())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # Python says it too
def test_a_verifier_that_returns_a_coroutine_is_told_how_to_call_it():
    with pytest.raises(UnusableSubject, match="a coroutine, expected the tokens: call it through asyncio"):
        check_verifier(lambda p, q, draft_tokens: malformed.awaited())


@pytest.mark.thorough
def test_an_engine_that_is_async_is_run():
    assert check_engine(malformed.awaited, malformed.Awaited(), checks=["law_is_target"])
