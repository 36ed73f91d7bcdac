"""Black boxes on the command line: functions, programs and servers, right, wrong and misbehaving."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import jsonschema
import programs
import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.report.data import schema

HERE = Path(programs.__file__).parent


@pytest.fixture(scope="module")
def law_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("law") / "law.json"
    file.write_text(json.dumps(programs.law()), "utf-8")
    return str(file)


@pytest.fixture(autouse=True)
def _beside_the_programs(monkeypatch):
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))


def sampled(subject, *options):
    result = CliRunner().invoke(app, ["sample", subject, "--max-tokens", "2", "--tv", "0.2", *options])
    return result.exit_code, " ".join(result.output.split())


def command(kind):
    return f"command:{shlex.quote(sys.executable)} programs.py {kind}"


def test_a_right_function_holds(law_file, tmp_path):
    report = tmp_path / "report.json"
    code, said = sampled("python:programs:right", "--law", law_file, "--json", str(report))
    assert code == 0
    assert "holds samples_fit_law" in said
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, schema())
    verdicts = data["verdicts"]
    assert [item["status"] for item in verdicts] == ["holds"] * 4


def test_a_function_is_given_what_it_asks_for_and_may_print(law_file):
    code, _ = sampled("python:programs:with_prompt", "--law", law_file, "--prompt", "3 1")
    assert code == 0


def test_options_are_arguments_of_a_function(tmp_path):
    file = tmp_path / "law.json"
    file.write_text(json.dumps({"2 2": 3 / 7, "3 3": 4 / 7}), "utf-8")
    assert sampled("python:programs:with_options", "--law", str(file), "--set", "top_k=2")[0] == 0
    assert sampled("python:programs:with_options", "--law", str(file), "--set", "top_k=3")[0] == 1
    code, said = sampled("python:programs:right", "--law", str(file), "--set", "top_k=2")
    assert code == 2
    assert "the function has no parameter 'top_k', which is set" in said
    code, said = sampled("python:programs:right", "--law", str(file), "--temperature", "0.5")
    assert code == 2
    assert "the function has no parameter 'temperature', which is set" in said


def test_a_model_without_a_server_is_refused(law_file):
    code, said = sampled("python:programs:right", "--law", law_file, "--model", "m")
    assert code == 2
    assert said == "specverify: --model is 'm', and only requests to a server (http://...) name a model"


@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        ("nowhere:tokens", "nowhere:tokens cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ("programs:nothing", "cannot be loaded: AttributeError: module 'programs' has no attribute 'nothing'"),
        ("programs:law", "TypeError: law() got an unexpected keyword argument 'seed' (programs:law)"),
    ],
)
def test_an_error_names_the_function_and_no_file_of_ours(law_file, subject, sentence):
    code, said = sampled(f"python:{subject}", "--law", law_file)
    assert code == 2
    assert sentence in said
    assert "importlib" not in said
    assert "callable_answers" not in said


def test_a_program_states_how_many_samples_it_draws_together(law_file):
    code, said = sampled(command("takes-two"), "--law", law_file)
    assert code == 0
    assert "two at a time" in said


@pytest.mark.parametrize(
    ("kind", "check"), [("biased", "samples fit law - refuted"), ("seed-ignored", "calls are independent - refuted")]
)
def test_a_planted_bug_in_a_program_is_refuted(law_file, kind, check):
    code, said = sampled(command(kind), "--law", law_file)
    assert code == 1
    assert check in said


def test_a_program_against_what_it_says_of_itself():
    assert sampled(command("right"), "--logprobs")[0] == 0
    code, said = sampled(command("biased"), "--logprobs", "--tv", "0.1")
    assert code == 1
    assert "samples fit law - refuted" in said


def test_what_follows_forced_tokens_is_judged_for_each_of_them():
    asked = "--logprobs", "--max-tokens", "1", "--after", "1", "--after", "1 2", "--tv", "0.3", "--prompt"
    code, said = sampled(command("follows"), *asked, "3")
    assert code == 0
    assert "at least one in 0." in said  # it tells what it accepted
    code, said = sampled(command("forgets"), *asked, "3")
    assert code == 1
    assert "forgets after (1, 2) (1,) came" in said
    assert said.count("samples fit law - refuted") == 1
    assert "each prefix has its own law" in sampled(command("follows"), *asked, "a text")[1]
    assert "--after is 'x', expected token ids" in sampled(command("follows"), *asked, "3", "--after", "x")[1]


@pytest.mark.parametrize(("kind", "status"), [("rounds", 0), ("tells-two", 3)])
def test_a_program_that_tells_less_than_everything_is_not_accused(kind, status):
    """Logarithms of two decimals, or of the two likeliest tokens alone."""
    code, said = sampled(command(kind), "--logprobs", "--most-samples", "20000", "--tv", "0.08")
    assert code == status
    assert "✘" not in said


def test_a_sample_that_ends_early_is_asked_about():
    code, said = sampled(command("short"), "--logprobs")
    assert code == 2
    assert "ended a sample after 1 of 2 tokens: name the token that ends one" in said


def test_a_program_against_another():
    assert sampled(command("right"), "--reference", "python:programs:right")[0] == 0
    code, said = sampled(command("biased"), "--reference", "python:programs:right")
    assert code == 1
    assert "samples fit reference - refuted" in said


def test_greedy_texts_part_at_a_near_tie_or_not_by_what_the_reference_tells():
    asked = "--reference", command("greedy"), "--temperature", "0", "--prompt", "0"
    code, said = sampled(command("second-likeliest"), *asked)
    assert code == 1
    assert "no tie, their logits are 0.288 apart and rounding explains 0.02" in said
    code, said = sampled(command("second-likeliest"), *asked, "--rounding", "0.2")
    assert code == 3
    assert "a near-tie, their logits are 0.288 apart and rounding explains 0.405" in said
    code, said = sampled("python:programs:second_likeliest", "--reference", "python:programs:greedy")
    assert code == 1
    assert "tie" not in said  # nothing is told


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("tokens", ["ids", "words", "text"])
def test_a_server_against_another(tokens):
    with programs.server(tokens=tokens) as plain:
        assert sampled(plain, "--reference", plain)[0] == 0
        with programs.server(programs.biased, tokens) as wrong:
            code, said = sampled(wrong, "--reference", plain)
    assert code == 1
    assert "samples fit reference - refuted" in said
    assert ("tokens: 0 is" in said) == (tokens != "ids")


def test_a_server_against_its_own_logarithms_and_against_a_law(law_file):
    with programs.server() as right, programs.server(programs.biased) as wrong:
        assert sampled(right, "--logprobs")[0] == 0
        assert sampled(right, "--law", law_file)[0] == 0
        assert sampled(wrong, "--logprobs", "--tv", "0.1")[0] == 1
        assert sampled(wrong, "--law", law_file)[0] == 1


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("dies", "ended with exit status 7 before it answered; its last output: out of device memory"),
        ("killed", "was killed by SIGKILL before it answered"),
        ("hangs", "did not answer within 0.5 s"),
        ("garbage", "answered 'loading ...', expected a JSON object in one line"),
        ("other-shape", "returned 1 sequences, expected 32"),
    ],
)
def test_a_program_that_misbehaves_is_named(law_file, kind, said):
    options = ["--timeout", "0.5"] if kind == "hangs" else []
    code, found = sampled(command(kind), "--law", law_file, *options)
    assert code == 2
    assert said in found


@pytest.mark.parametrize(
    ("subject", "options", "said"),
    [
        ("python:programs:raises", [], "RuntimeError: no device (programs.py:"),
        ("python:programs:nothing", [], "programs:nothing cannot be loaded: AttributeError"),
        ("python:programs:hungry", ["--memory", "2"], "MemoryError"),
        ("command:no-such-program", [], "cannot be started: no such file or directory"),
        ("http://127.0.0.1:9/v1/completions", [], "the request failed: "),
        ("ftp://host", [], "is no black box, expected python:module:callable, command:PROGRAM or http"),
    ],
)
def test_what_cannot_be_sampled_is_said_in_one_sentence(law_file, subject, options, said):
    code, found = sampled(subject, "--law", law_file, *options)
    assert code == 2
    assert said in found
    assert "Traceback" not in found


def test_a_server_that_fails_is_named():
    with programs.server(tokens="no") as url:
        code, said = sampled(url, "--reference", url)
    assert code == 2
    assert "answered with status 500: out of memory" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[0.5, 0.4]", "the law sums to 0.9"),
        ('{"a b": 1.0}', "has the key 'a b', expected token ids with spaces or 'others'"),
        ("3", "is neither a list of probabilities nor an object"),
        ("{", "cannot be read"),
    ],
)
def test_a_file_that_is_no_law_is_refused(tmp_path, text, said):
    file = tmp_path / "law.json"
    file.write_text(text, "utf-8")
    code, found = sampled("python:programs:right", "--law", str(file))
    assert code == 2
    assert said in found


def test_it_is_judged_by_exactly_one_thing(law_file):
    for options in ([], ["--logprobs", "--law", law_file], ["--logprobs"], ["--logprobs", "--temperature", "0.5"]):
        code, said = sampled("python:programs:right", *options)
        assert code == 2
        assert "expected" in said


def test_the_old_name_of_an_option_is_answered_by_the_new_one(law_file):
    code, said = sampled("python:programs:right", "--law", law_file, "--tolerance", "0.1")
    assert code == 2
    assert "there is no option --tolerance, write --tv" in said
