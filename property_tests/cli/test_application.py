"""The command line: what it prints, what it exits with, and one sentence for everything that cannot be done."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reference import ALGORITHMS
from specverify import __version__
from specverify.checks import CHECKS
from specverify.cli import app
from specverify.engines import engine_subjects, tables

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3
CHEAP = ("--check", "eos_is_final", "--check", "horizon_is_respected", "--check", "greedy_is_argmax")
ROOT = Path(__file__).parents[2]


def run(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(arguments))


def assert_one_sentence(result):
    """Nothing but one line on standard error, and no traceback."""
    assert result.exit_code == UNUSABLE
    assert result.stderr.startswith("specverify: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


# list


def test_the_list_as_json_names_everything_with_its_claims():
    data = json.loads(run("list", "--json").output)
    claims = {f"reference:{row.name}": sorted(claim.value for claim in row.claims) for row in ALGORITHMS}
    assert {item["name"]: item["claims"] for item in data["algorithms"]} == claims
    biased = {item["name"] for item in data["algorithms"] if item["declared_bias"]}
    assert biased == {f"reference:{row.name}" for row in ALGORITHMS if row.declared_law}
    assert [item["name"] for item in data["checks"]] == [check.name for check in CHECKS]
    assert {item["killed_by"] for item in data["mutants"]} <= {check.name for check in CHECKS}
    assert [item["name"] for item in data["subjects"]] == [*engine_subjects(), *tables()]


def test_the_version_is_printed():
    assert run("--version").output == f"{__version__}\n"


# verify


def test_a_correct_subject_holds():
    result = run("verify", "reference:autoregressive", *CHEAP)
    assert result.exit_code == HOLDS
    assert len(re.findall("✔ holds", result.output)) == 3
    assert "3 holds" in result.output
    assert "refuted" not in result.output


def test_a_declared_bias_is_shown_as_such_and_is_no_failure():
    result = run("verify", "reference:nasd-seed-rule", "--check", "law_is_declared")
    assert result.exit_code == HOLDS
    assert "≈ declared bias" in result.output


def test_a_check_that_does_not_apply_to_any_subject_is_not_a_pass():
    result = run("verify", "reference:autoregressive", "--check", "draft_is_honest")
    assert result.exit_code == UNKNOWN
    assert "nothing was examined" in result.output


def test_a_planted_bug_is_refuted_in_prose_and_its_replay_refutes_again():
    result = run("verify", "mutant:residual-from-target", "--check", "law_is_target", "--check", "greedy_is_argmax")
    assert result.exit_code == REFUTED
    assert "law is target - refuted, exact, TV = " in result.output
    assert re.search(r"^  Let   vocabulary \{0, 1\}", result.output, re.MULTILINE)
    assert re.search(r"^  Then  the new tokens should be .*, because$", result.output, re.MULTILINE)
    identifier = re.search(r"^  Again specverify replay (\S+)$", result.output, re.MULTILINE)[1]
    again = run("replay", identifier)
    assert again.exit_code == REFUTED
    assert again.output.rstrip().endswith(identifier)
    counterexample = result.output[result.output.index("  Then") : result.output.index("  Check")]
    assert counterexample in again.output


def test_several_subjects_are_summed_up_and_the_worst_decides():
    result = run("verify", "reference:autoregressive", "mutant:one-token-too-many", "--check", "horizon_is_respected")
    assert result.exit_code == REFUTED
    assert "1 holds, 1 refuted" in result.output


def test_too_small_a_budget_is_unknown():
    result = run("verify", "reference:speculative-sampling", "--check", "law_is_target", "--runs", "3")
    assert result.exit_code == UNKNOWN
    assert "? unknown" in result.output


# Somebody else's decoder


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", ["correct", "without_eos", "one_round"])
def test_a_correct_function_holds_as_rationals(name):
    result = run("verify", f"decoders:{name}", "--check", "law_is_target", "--check", "program_is_its_draws")
    assert result.exit_code == HOLDS, result.output
    assert "exact, equal as rationals" in result.output


def test_a_float_function_holds_within_rounding():
    result = run("verify", "decoders:float_only", "--check", "law_is_target")
    assert result.exit_code == HOLDS, result.output
    assert "exact, TV " in result.output
    assert "(rounding below" in result.output


@pytest.mark.parametrize("name", ["biased", "one_round_without_residual"])
def test_a_biased_function_is_refuted_and_can_be_replayed(name):
    result = run("verify", f"decoders:{name}", "--check", "law_is_target")
    assert result.exit_code == REFUTED
    assert run("replay", re.search(r"specverify replay (\S+)", result.output)[1]).exit_code == REFUTED


def test_a_function_that_raises_is_unusable_with_its_own_message():
    result = run("verify", "decoders:raises", "--check", "law_is_target")
    assert result.exit_code == UNUSABLE
    assert "RuntimeError: out of luck" in " ".join(result.output.split())


@pytest.mark.thorough
def test_a_function_that_hangs_is_unknown_after_the_time_limit():
    result = run("verify", "decoders:hangs_later", "--check", "law_is_target", "--timeout", "2")
    assert result.exit_code == UNKNOWN
    assert re.search(r"not finished after (2|1\.\d+) s", result.output)  # of a busy machine, loading takes some


@pytest.mark.thorough
def test_a_function_that_hangs_at_once_is_unknown_too():
    command = ["-m", "specverify", "verify", "decoders:hangs", "--check", "law_is_target", "--timeout", "0.5"]
    result = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT / "test_support" / "users",
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert result.returncode == UNKNOWN


def test_a_function_of_something_else_than_its_draws_is_refuted_and_has_no_law():
    result = run("verify", "decoders:hidden", "--check", "program_is_its_draws", "--check", "law_is_target")
    assert result.exit_code == REFUTED
    assert "it is not a function of its draws, so it has no law to compare" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no_sequence", "returned int, expected the new tokens as a sequence of integers"),
        ("fractional_tokens", "expected the new tokens as a sequence of integers"),
        ("empty_round", "a round committed no token"),
    ],
)
def test_what_is_no_answer_is_unusable_in_its_own_words(function, said):
    result = run("verify", f"decoders:{function}", "--check", "law_is_target")
    assert result.exit_code == UNUSABLE
    assert said in " ".join(result.output.split())


def test_an_algorithm_row_of_another_module_is_examined_in_all_its_examples():
    result = run("verify", "reference.algorithms.napd:ALGORITHM", "--check", "greedy_is_argmax")
    assert result.exit_code == HOLDS


# Calls that cannot be carried out


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("x = 1\n1 / 0", "cannot import broken: ZeroDivisionError: division by zero (broken.py:2)"),
        (
            "import no_such_module",
            "cannot import broken: ModuleNotFoundError: No module named 'no_such_module' (broken.py:1)",
        ),
        ("def f(:", "cannot import broken: SyntaxError: invalid syntax (broken.py, line 1)"),
        ("raise RuntimeError", "cannot import broken: RuntimeError (broken.py:1)"),
    ],
)
def test_an_error_of_an_import_has_its_line(tmp_path, monkeypatch, lines, sentence):
    (tmp_path / "broken.py").write_text(lines, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    result = run("verify", "broken:verify")
    assert_one_sentence(result)
    assert result.stderr == f"specverify: {sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["verify"],
            "node_llamacpp:NAME, onnxruntime:NAME, openvino:NAME, vllm:NAME, module:callable, or --all",
        ),
        (["verify", "reference:egga"], "there is no subject 'reference:egga', did you mean reference:egag?"),
        (["verify", "mutant:residual_floor"], "did you mean mutant:residual-floor?"),
        (["verify", "zzz"], "there is no subject 'zzz' (see: specverify list; your own code is module:callable)"),
        (["verify", "reference:egag", "--check", "lossless"], "there is no check 'lossless', expected one of "),
        (["verify", "reference:egag", "--alarm", "2"], "the alarm budget is 2.0, expected a probability"),
        (["verify", "no_such_module:decode"], "cannot import no_such_module: ModuleNotFoundError"),
        (["verify", "decoders:nothing"], "decoders has no attribute 'nothing'"),
        (["verify", "decoders:NOT_CALLABLE"], "decoders:NOT_CALLABLE is a int, expected a function"),
        (["verify", "decoders:other_parameters"], "decoders:other_parameters takes (model, prompt), expected (draws, "),
        (["verify", "decoders:"], "'decoders:' is not a subject: expected package.module:callable"),
        (["replay", "nonsense"], "'nonsense' is not a replay identifier: expected the word a report printed"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, sentence):
    result = run(*arguments)
    assert_one_sentence(result)
    assert sentence in result.stderr


@pytest.mark.parametrize("subject", ["raises", "no_sequence", "biased", "hidden"])
def test_no_traceback_of_a_subject_is_printed(subject):
    result = run("verify", f"decoders:{subject}", "--check", "horizon_is_respected", "--check", "law_is_target")
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
