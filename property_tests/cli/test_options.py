"""Arguments are looked at before any work begins: one sentence, exit status 2, and nothing left behind."""

from __future__ import annotations

import base64
import json
import os
import zlib
from fractions import Fraction
from pathlib import Path

import misbehaving
import numpy as np
import pytest
from typer.testing import CliRunner

from reference import ALGORITHMS
from specverify.base.parallel import WorkerDied, in_parallel
from specverify.cli import app, main
from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.grid import chain_breakpoints, chain_grid_law, grid_law, grid_tables
from specverify.laws.model_strategies import pmf_pairs, pmfs, prompts, table_models, table_pairs, tasks
from specverify.laws.paths import estimated_paths, first_outcomes, paths
from specverify.statistics import (
    calibrated_level,
    confirmed_fit,
    divide_alarm,
    goodness_of_fit,
    partition,
    perturbed,
    samples_for,
    tv_certificate,
)
from specverify.testing import check_decoder, check_engine, check_subject, check_verifier

ONE = "reference:autoregressive"
NAN = float("nan")
LAW = {"a": 0.5, "b": 0.5}


def identifier_of(*fields):
    """Return a replay identifier that holds anything."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(fields).encode())).decode().rstrip("=")


def refused(*arguments):
    """Return the one sentence in which a command is refused."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("specverify: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--timeout", "-1"], "the time limit is -1.0, expected a number of seconds"),
        (["--timeout", "0"], "the time limit is 0.0"),
        (["--timeout", "nan"], "the time limit is nan"),
        (["--timeout", "inf"], "the time limit is inf"),
        (["--runs", "0"], "the number of runs is 0, expected a whole number of at least 1"),
        (["--jobs", "-1"], "the number of processes is -1, expected a whole number from 0 to 1024"),
        (["--seed", "-5"], "the seed is -5, expected a whole number of at least 0"),
        (["--seed", str(2**63)], "expected a whole number of at least 0 and below 2**63"),
        (["--alarm", "0"], "the alarm budget is 0.0, expected a probability"),
        (["--alarm", "nan"], "the alarm budget is nan"),
        (["--check", "law_is_targt"], "did you mean law_is_target?"),
        (["--json", "."], "the file of --json '.' cannot be written: it is a directory, expected a file"),
        (["--json", "no/such/folder/a.json"], "cannot be written: no such file or directory"),
        (["--markdown", "no/such/folder/a.md"], "the file of --markdown 'no/such/folder/a.md' cannot be written"),
        (["--certificate", "no/such/folder/a"], "the file of --certificate 'no/such/folder/a' cannot be written"),
        (["--json", "a.txt", "--markdown", "a.txt"], "--json and --markdown both name 'a.txt', expected two files"),
        ([ONE], f"{ONE} is named twice, expected each subject once"),
        ([""], "the name of subject 2 is empty"),
    ],
)
def test_verify_is_refused_before_it_begins(options, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused("verify", ONE, *options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "=misbehaving:right"], "'' is not a form of a verifier: expected one of row, batched, logits"),
        (["verify", "bathced=misbehaving:right"], "'bathced' is not a form of a verifier"),
        (["verify", ":"], "':' is not a subject: expected package.module:callable"),
        (["verify", "..:right"], "cannot import ..: "),
        (["verify", "hff:all"], "No module named 'hff', did you mean hf:all?"),
        (
            ["list", "algorithms", "tree", "--markdown", "f.md"],
            "--markdown writes the page of all algorithms, expected no",
        ),
        (["sample", "python:a:b", "--law", "no.json"], "the law 'no.json' cannot be read: no such file or directory"),
        (["report", "no.json", "-o", "a.html"], "the run 'no.json' cannot be read: no such file or directory"),
        (["campaign", "no.toml"], "the plan 'no.toml' cannot be read: no such file or directory"),
        (["check-certificate", "no.json"], "the certificate 'no.json' cannot be read: no such file or directory"),
        (
            ["check-certificate", "no.json", "--tables", "-1"],
            "the number of tables is -1, expected a whole number of at",
        ),
        (["vectors", "check", "no.json"], "the results 'no.json' cannot be read: no such file or directory"),
        (["prove", "nasd", "--timeout", "0"], "the time limit is 0.0, expected a number of seconds from 0.001"),
        (["verify", "misbehaving:right", "no_such_module:right"], "cannot import no_such_module"),
        (["replay", ""], "'' is not a replay identifier"),
        (["replay", identifier_of(1, 2, 3, 4, 5, 6)], "is not a replay identifier"),
        (["replay", identifier_of(ONE, "law_is_target", "", "", "", -1)], "is not a replay identifier"),
        (["replay", identifier_of(ONE, "no_check", "", "", "", 0)], "the identifier names a check 'no_check'"),
        (["replay", identifier_of(ONE, "law_is_target", "x", "", "", 0)], "has no variant 'x' any more"),
        (["replay", identifier_of(ONE, "samples_fit_law", "", "", "x", 0)], "has no setting 'x' any more"),
        (["reproduce", identifier_of("a:b", "law_is_target", "", "", "", 0)], "a:b is not a call of transformers"),
        (["reproduce", "a:b", "--check", "no_check"], "there is no check 'no_check'"),
        (
            ["reproduce", "mutant:residual-from-target", "--check", "cache_equals_prefill"],
            "does not examine mutant:resid",
        ),
        (["reproduce", "mutant:residual-from-target", "--check", "law_is_target"], "is not a call of transformers"),
        (
            ["reproduce", identifier_of(ONE, "law_is_target", "", "", "", 0), "--check", "law_is_target"],
            "--check goes with the name of a subject",
        ),
        (["reproduce", "x", "--output", "."], "the file of --output '.' cannot be written: it is a directory"),
        (["mutants", "--class", "Z"], "there is no class 'Z', expected one of A, B"),
        (["mutants", "--jobs", "-3"], "the number of processes is -3"),
        (["prove", "speculative-sampling", "--certificate", "."], "the file of --certificate '.' cannot be written"),
        (["stats", "--quick", "--plot", "rows.foo"], "the file of --plot is 'rows.foo', expected one of the suffixes"),
        (["mutants", "--json", "."], "the file of --json '.' cannot be written"),
        (["alarms", "--runs", "0"], "the number of runs is 0"),
        (["alarms", "--configurations", "0"], "the number of configurations is 0"),
        (["alarms", "--budget", "nan"], "the budget is nan"),
        (["prove", "egag", "--vocab", "1"], "the vocabulary is 1, expected a whole number of at least 2"),
        (["prove", "egag", "--gamma", "-1"], "gamma is -1, expected a whole number of at least 0"),
        (["prove", "egag", "--timeout", "nan"], "the time limit is nan"),
        (["prove", "egag", "--cache", __file__], "cannot be a folder"),
        (["stats", "--seed", "-1"], "the seed is -1"),
        (["stats", "--alarm", "1"], "the alarm budget is 1.0"),
        (["list", "--markdown", "."], "the file of --markdown '.' cannot be written"),
    ],
)
def test_every_command_is_refused_in_one_sentence(arguments, sentence):
    assert sentence in refused(*arguments)


def test_a_file_that_is_there_keeps_what_it_holds_until_the_report_is_written(tmp_path):
    file = tmp_path / "report.json"
    file.write_text("before", "utf-8")
    assert "the number of runs is 0" in refused("verify", ONE, "--json", str(file), "--runs", "0")
    assert file.read_text("utf-8") == "before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_after_all_is_no_verdict():
    result = CliRunner().invoke(app, ["verify", ONE, "--check", "horizon_is_respected", "--json", "/dev/full"])
    assert result.exit_code == 2
    assert "specverify: the file of --json '/dev/full' could not be written: no space left on device" in result.stderr


def test_a_defect_of_ours_is_no_verdict_either(monkeypatch, capsys):
    monkeypatch.setattr("specverify.cli.application.app", lambda: 1 / 0)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "specverify: internal error: ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_a_process_that_shared_work_and_died_is_named():
    with pytest.raises(WorkerDied, match="a process that shared the work ended before it"):
        list(in_parallel([lambda: os._exit(1)] * 2, 2))


def verifier(p, q, draft_tokens):
    """Take what a verifier takes; it is never called."""
    raise AssertionError


def engine():
    """Take what an engine takes; it is never called."""
    raise AssertionError


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_verifier(5), "the verifier is 5, expected something to call"),
        (lambda: check_verifier(verifier, form="bathced"), "form is 'bathced', expected one of 'row'"),
        (lambda: check_verifier(verifier, gammas=()), "gammas is (), expected a sequence of at least one"),
        (lambda: check_verifier(verifier, gammas=3), "gammas is 3, expected a sequence of at least one"),
        (lambda: check_verifier(verifier, gammas="12"), "gammas is '12', expected a sequence"),
        (lambda: check_verifier(verifier, gammas=(0,)), "a gamma of (0,) is 0, expected an integer from 1 to 1024"),
        (lambda: check_verifier(verifier, gammas=(1.5,)), "a gamma of (1.5,) is 1.5, expected an integer"),
        (lambda: check_verifier(verifier, gammas=[True]), "a gamma of (True,) is True, expected an integer"),
        (lambda: check_verifier(verifier, gammas=(10**9,)), "expected an integer from 1 to 1024"),
        (
            lambda: check_verifier(verifier, certificate="/no/such.json"),
            "certificate '/no/such.json' cannot be written",
        ),
        (lambda: check_verifier(verifier, certificate=""), "certificate is '', expected a file to write"),
        (lambda: check_verifier(verifier, gammas=(1, 1)), "gammas is (1, 1), expected each number of drafts once"),
        (
            lambda: check_verifier(verifier, on_fail="wran"),
            "on_fail is 'wran', expected one of 'raise', 'warn', None",
        ),
        (lambda: check_verifier(verifier, on_fail=False), "on_fail is False, expected one of 'raise', 'warn', None"),
        (lambda: check_verifier(verifier, sampled=1), "sampled is 1, expected True or False"),
        (lambda: check_verifier(verifier, timeout=NAN), "timeout is nan, expected a number of seconds"),
        (lambda: check_decoder("a:b"), "the decoder is 'a:b', expected something to call"),
        (lambda: check_decoder(misbehaving.right, timeout=0), "timeout is 0, expected a number of seconds"),
        (lambda: check_subject(misbehaving.right), "expected a Subject, as specverify.subjects makes them"),
        (lambda: check_engine(verifier, engine), "the call with speculation takes (p, q, draft_tokens), expected"),
        (lambda: check_engine(engine, [0, 1]), "the call without speculation is [0, 1], expected something to call"),
        (lambda: check_engine(engine, [0, 1]), "or a law, such as {(0,): 0.25, (1,): 0.75}"),
        (lambda: check_engine(engine, engine), "expected another one than the call with speculation"),
        (lambda: check_engine(engine, {(0,): NAN}), "the law at (0,) is nan, expected a probability"),
        (lambda: check_engine(engine, {(0,): "1"}), "the law at (0,) is '1', expected a probability"),
        (lambda: check_engine(engine, {(0,): 0.5}), "the law sums to 0.5, expected probabilities that sum to 1"),
        (lambda: check_engine(engine, {(0,): 1.5, (1,): -0.5}), "the law at (0,) is 1.5, expected a probability"),
        (lambda: check_engine(engine, {0: 1.0}), "the law has the key 0, expected a non-empty tuple of token ids"),
        (lambda: check_engine(engine, {"01": 1.0}), "the law has the key '01', expected a non-empty tuple"),
        (lambda: check_engine(engine, {(0, -1): 1.0}), "the law has the key (0, -1), expected a non-empty tuple"),
        (lambda: check_engine(engine, {(0.0,): 1.0}), "the law has the key (0.0,), expected a non-empty tuple"),
        (lambda: check_engine(engine, {}), "the law sums to 0, expected probabilities that sum to 1"),
        (lambda: check_engine(engine, lambda: [0], models="gpt2"), "models is 'gpt2', expected a tuple of models"),
        (lambda: check_engine(engine, lambda: [0], models=(1,)), "a model is 1, expected a model of transformers"),
        (lambda: pmfs(0), "the vocabulary is 0, expected an integer of at least 1"),
        (lambda: pmf_pairs(2.0), "the vocabulary is 2.0, expected an integer"),
        (lambda: prompts(2, 0), "the longest prompt is 0, expected an integer of at least 1"),
        (lambda: table_models(True), "the vocabulary is True, expected an integer"),
        (lambda: table_pairs(-1), "the vocabulary is -1, expected an integer of at least 1"),
        (lambda: tasks(2, 3, 1), "the longest horizon is 1, expected an integer of at least 3"),
        (lambda: next(paths(None)), "the program is None, expected something to call"),
        (lambda: program_law(lambda draws: 0, 0), "the budget is 0, expected an integer of at least 1"),
        (lambda: decoder_law(misbehaving.right, (0,)), "expected a Decoder, as an algorithm's build makes it"),
        (lambda: first_outcomes(lambda draws: 0, -1), "the depth is -1, expected an integer of at least 0"),
        (lambda: estimated_paths(lambda draws: 0, probes=0), "the number of probes is 0"),
        (lambda: grid_law(3, []), "the kernel is 3, expected something to call with 1 argument"),
        (lambda: grid_law(np.floor, [[0.5]]), "a breakpoint of uniform 0 is 0.5, expected a Fraction from 0 to 1"),
        (lambda: grid_law(np.floor, [[Fraction(3, 2)]]), "a breakpoint of uniform 0 is Fraction(3, 2)"),
        (
            lambda: grid_law(np.floor, [[Fraction(1, 2)]], budget=0),
            "the budget is 0, expected an integer of at least 1",
        ),
        (lambda: grid_law(np.floor, [[]], margin=0.5), "the margin is 0.5, expected a number above 0 and below 1/8"),
        (lambda: chain_grid_law(lambda p, q, d, u: u, (None, None), (0,), -1), "gamma is -1"),
        (lambda: chain_breakpoints([[1]], [], (0,)), "1 drafts with 1 rows of p and 0 of q, expected a row of each"),
        (lambda: grid_tables(2, 0, 0), "the denominator is 0, expected an integer of at least 1"),
        (lambda: divide_alarm(NAN, 2), "total is nan, expected a probability strictly between 0 and 1"),
        (lambda: divide_alarm("a", 2), "total is 'a', expected a probability"),
        (lambda: calibrated_level([0.1]), "level is [0.1], expected a probability"),
        (lambda: goodness_of_fit([1, 2], LAW), "the counts is [1, 2], expected a mapping"),
        (lambda: goodness_of_fit({"a": -1}, LAW), "the count of 'a' is -1, expected a whole number of at least 0"),
        (lambda: goodness_of_fit({"a": NAN}, LAW), "the count of 'a' is nan, expected a whole number"),
        (lambda: partition([0.5], 10), "the law is [0.5], expected a mapping from outcomes to probabilities"),
        (lambda: partition({"a": "1"}, 10), "the law gives 'a' probability 1, expected a number of at least 0"),
        (lambda: partition(LAW, -10), "samples is -10, expected a whole number of at least 1"),
        (lambda: partition(LAW, 10, NAN), "minimum_expected is nan, expected a positive number of samples"),
        (lambda: perturbed(LAW, "much"), "cannot move the law by a total variation of much"),
        (lambda: samples_for(LAW, NAN, 0.1, 0.1), "tv is nan, expected a probability"),
        (lambda: tv_certificate(NAN, 10, 2, 0.1), "tv_observed is nan, expected a total variation between 0 and 1"),
        (lambda: confirmed_fit(3, LAW, samples=9, false_alarm=0.1, miss=0.1, seed=0), "the sampler is 3, expected"),
    ],
)
def test_every_function_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        call()
    assert sentence in str(caught.value)


def test_right_arguments_of_every_kind_are_taken():
    assert check_decoder(ALGORITHMS[0], timeout=600)
    assert goodness_of_fit({"a": np.int64(50), "b": 50.0}, LAW).samples == 100
    assert partition({"a": Fraction(1, 2), "b": np.float64(0.5)}, 100).cells == 2
