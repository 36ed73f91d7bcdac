"""Uses of the command line and of the library that cannot be: each is answered in a sentence that helps."""

from __future__ import annotations

import json
import re

import malformed
import numpy as np
import pytest
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.checks.explaining.engine_paths import describe_draws as told_draws
from specverify.checks.explaining.engine_paths import draws_of
from specverify.cli import app
from specverify.laws.draws import Decision
from specverify.run.catalogue import find_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import (
    SpeculationRefuted,
    calibrate,
    check_decoder,
    check_engine,
    check_verifier,
)

HALVES = [0.5, 0.5]
LAW = "law.json"


def test_a_name_in_a_class_is_taken():
    assert find_subject("malformed:Holder.one_round").summary == "One draft, one verification."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("egag", "there is no subject 'egag', did you mean reference:egag?"),
        ("EGAG", "there is no subject 'EGAG', did you mean reference:egag?"),
        ("egagg", "there is no subject 'egagg', did you mean reference:egag?"),
        ("good", "there is no subject 'good' (see: specverify list; your own code is module:callable)"),
        ("mutant:nope", "there is no subject 'mutant:nope' (see: specverify list)"),
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
        ("row=malformed:one_round", "takes (draws, target, draft, tokens), expected (p, q, draft_tokens), or"),
    ],
)
def test_a_name_that_leads_nowhere(name, sentence):
    with pytest.raises(UnusableSubject, match=r"\A[^\n]+\Z") as caught:
        find_subject(name)
    assert sentence in str(caught.value)


def test_what_calibrate_takes_for_an_answer():
    for answer in (None, True, np.True_):
        assert calibrate(lambda x, answer=answer: answer, HALVES, samples=10, runs=10, runs_of_wrong=10).alarms == 0
    for answer, threshold in ((False, None), (np.False_, None), (np.float32(2), 1), (np.array(2.0), 1), (np.inf, 1)):
        found = calibrate(
            lambda x, answer=answer: answer, HALVES, samples=10, runs=10, runs_of_wrong=10, threshold=threshold
        )
        assert found.alarms == 10


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
    ("text", "sentence"),
    [
        ("", "is no JSON (Expecting value"),
        ('{"verdicts": [{"sub', "is no JSON (Unterminated string"),
        ('{"passed": 3}', "is JSON that no run wrote, expected what verify"),
        ('{"verdicts": 3}', "has verdicts that no run wrote (verdicts is of type int, expected a list), expected"),
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
def test_an_engine_that_is_async_is_run():
    assert check_engine(malformed.awaited, malformed.Awaited(), checks=["law_is_target"])
