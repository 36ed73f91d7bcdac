"""Foreign subjects on the command line: whatever one does to its process, it is named, and the others are examined."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.run import worker
from specverify.run.verify import Checklist
from specverify.run.worker import Began, examine

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3
FIRST, LAW = "program_is_its_draws", "law_is_target"
FAULTS = {
    "exits": r"it ends the process: SystemExit: 0 \(misbehaving.py:\d+\)",
    "exits_at_once": r"it calls os._exit\(0\) \(misbehaving.py:\d+\)",
    "raises_generator_exit": r"it ends the process: GeneratorExit \(misbehaving.py:\d+\)",
    "kills_itself": r"it calls os.kill\(\d+, .*\) \(misbehaving.py:\d+\)",
    "becomes_another": r"it calls os.execv\('/bin/true', \['true'\]\) \(misbehaving.py:\d+\)",
    "runs_out_of_memory": r"MemoryError \(misbehaving.py:\d+\)",
    "crashes": r"its process was ended by SIGSEGV at misbehaving.py:\d+",
    "exits_in_c": "its process ended with exit status 0 and without a word",
    "closes_output": "it closes sys.stdout",
    "closes_errors": "it closes sys.stderr",
    "changes_directory": "it changes the working directory to /",
    "changes_a_handler": "it changes the handler of SIGTERM",
    "leaves_a_timer": r"it leaves a timer running \(ITIMER_REAL, 600 s to go\)",
}


def run(*arguments):
    """Run the command line, its own part in this process."""
    return CliRunner().invoke(app, list(arguments))


def verdicts_in(file):
    """Return (subject, check) -> verdict."""
    found = json.loads(file.read_text("utf-8"))["verdicts"]
    return {(verdict["subject"].removeprefix("misbehaving:"), verdict["check"]): verdict for verdict in found}


@pytest.mark.thorough
def test_every_fault_is_named_for_every_check_and_the_right_subject_between_them_holds(tmp_path):
    names = [f"misbehaving:{name}" for name in (*list(FAULTS)[:6], "right", *list(FAULTS)[6:])]
    files = tmp_path / "report.json", tmp_path / "report.md"
    checks = ("--check", FIRST, "--check", "greedy_is_argmax")
    result = run("verify", *names, *checks, "--json", str(files[0]), "--markdown", str(files[1]))
    assert result.exit_code == UNUSABLE
    assert "Traceback" not in result.output
    found = verdicts_in(files[0])
    assert len(found) == 2 * len(names)
    for name, sentence in FAULTS.items():
        for check in (FIRST, "greedy_is_argmax"):
            assert found[name, check]["status"] == "unusable", name
            assert re.match(sentence, found[name, check]["statement"]), found[name, check]["statement"]
    assert {found["right", check]["status"] for check in (FIRST, "greedy_is_argmax")} == {"holds"}
    page = files[1].read_text("utf-8")
    assert all(f"misbehaving:{name}" in page for name in FAULTS)


def test_what_was_found_before_a_process_died_is_kept_and_the_rest_is_not_passed(tmp_path):
    file = tmp_path / "report.json"
    checks = ("--check", FIRST, "--check", LAW, "--check", "horizon_is_respected", "--check", "stop_law")
    result = run("verify", "misbehaving:dies_of_four_tokens", *checks, "--json", str(file), "--jobs", "1")
    assert result.exit_code == UNUSABLE
    found = {check: (verdict["status"], verdict["statement"]) for (_, check), verdict in verdicts_in(file).items()}
    assert found[FIRST][0] == "holds"
    assert found[LAW] == ("unusable", "its process ended with exit status 3 and without a word")
    assert found["horizon_is_respected"] == ("unusable", f"not reached: its process did not come back from {LAW}")
    assert found["stop_law"][0] == "not applicable"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["loops_in_c", "swallows"])
def test_code_that_no_signal_ends_is_ended_with_its_process(name):
    result = run("verify", f"misbehaving:{name}", "--check", FIRST, "--check", LAW, "--timeout", "0.5")
    assert result.exit_code == UNKNOWN
    said = " ".join(result.output.split())
    assert re.search(r"not finished after 0.5 s, in code that no signal reaches at misbehaving.py:\d+", said)
    assert "2 unknown" in said


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("lines", "code", "sentence"),
    [
        ("import sys\nsys.exit(0)", UNUSABLE, "it ends the process: SystemExit: 0 (at_import.py:2) when it is loaded"),
        ("import os\nos._exit(0)", UNUSABLE, "it calls os._exit(0) (at_import.py:2) when it is loaded"),
        ("import ctypes\nctypes.CDLL(None)._exit(0)", UNUSABLE, "its process ended with exit status 0"),
        ("import ctypes\nctypes.string_at(0)", UNUSABLE, "its process was ended by SIGSEGV at at_import.py:2"),
        ("raise KeyboardInterrupt", UNUSABLE, "it ends the process: KeyboardInterrupt (at_import.py:1) when it is"),
        ("while True:\n    pass", UNKNOWN, "not loaded within 0.5 s: it was at at_import.py:"),
        ("import os\nos.chdir('/')", UNUSABLE, "it changes the working directory to / when it is loaded"),
    ],
)
def test_what_happens_when_a_module_is_imported_is_named_and_the_others_are_examined(
    tmp_path, monkeypatch, lines, code, sentence
):
    body = "from misbehaving import right as one_round\n"
    (tmp_path / "at_import.py").write_text(f"{lines}\n{body}", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    subjects = ["at_import:one_round", "misbehaving:right"]
    timeout = ("--timeout", "0.5") if code == UNKNOWN else ()
    result = run("verify", *subjects, "--check", "greedy_is_argmax", *timeout)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert len(re.findall("✔ holds", result.output)) == 1


def test_a_failure_of_a_foreign_subject_is_replayed_in_a_process_of_its_own(tmp_path, monkeypatch):
    wrong = "def one_round(draws, target, draft, tokens):\n    return (draws.categorical(draft(tokens), ('q',)),)\n"
    (tmp_path / "replayed.py").write_text(wrong, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    result = run("verify", "replayed:one_round", "--check", LAW)
    assert result.exit_code == REFUTED
    identifier = re.search(r"specverify replay (\S+)", result.output)[1]
    assert run("replay", identifier).exit_code == REFUTED
    (tmp_path / "replayed.py").write_text("import os\nos._exit(0)\n", "utf-8")
    again = run("replay", identifier)
    assert again.exit_code == UNUSABLE
    assert "law_is_target unusable now: it calls os._exit(0) (replayed.py:2) when it is loaded" in again.output


# The processes themselves


def test_a_check_under_way_is_told_with_its_cases(monkeypatch):
    monkeypatch.setattr("specverify.run.cases.SECONDS_BETWEEN_CASES", 0.0)
    told = []
    examine("reference:autoregressive", ("horizon_is_respected",), Checklist(()).conditions, True, 600.0, told.append)
    began, number = [answer for answer in told if isinstance(answer, Began)], told[-1].figures["cases"]
    assert number > 1
    assert began[0] == Began("horizon_is_respected")
    assert began[-1] == Began("horizon_is_respected", number - 1, number)


@pytest.mark.parametrize(
    ("subject", "checks"),
    [("reference:autoregressive", ()), ("misbehaving:right", ("--check", LAW, "--check", "greedy_is_argmax"))],
)
def test_quick_examines_some_cases_of_each_exact_check_and_says_so(tmp_path, subject, checks):
    file = tmp_path / "report.json"
    assert run("verify", subject, *checks, "--quick", "--json", str(file)).exit_code == HOLDS
    examined = [found for found in verdicts_in(file).values() if found["status"] == "holds"]
    assert {found["evidence"] for found in examined} <= {"exact", "equal"}
    assert all(found["figures"]["planned"] for found in examined)
    several = [found for found in examined if found["check"] != "long_law_is_target"]  # it has two cases a variant
    assert all(found["figures"]["left_out"] > 0 for found in several)
    assert len(examined) >= (len(checks) // 2 or 4)


def test_what_a_subject_prints_is_kept_apart(tmp_path, monkeypatch):
    code = 'def one_round(draws, target, draft, tokens):\n    print("here")\n'
    code += '    return (draws.categorical(target(tokens), ("target",)),)\n'
    (tmp_path / "printing.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["verify", "printing:one_round", "--check", "greedy_is_argmax"])
    said = re.search(r"what was printed meanwhile is in (\S+)", result.stderr)
    assert "here" not in result.stdout
    assert set(Path(said[1]).read_text("utf-8").split()) == {"here"}
    Path(said[1]).unlink()


def test_of_what_a_subject_prints_without_end_the_beginning_is_kept(tmp_path, monkeypatch):
    code = f'print("x" * {3 * worker.MOST_PRINTED})\ndef one_round(draws, target, draft, tokens):\n'
    code += '    return (draws.categorical(target(tokens), ("target",)),)\n'
    (tmp_path / "shouting.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["verify", "shouting:one_round", "--check", "greedy_is_argmax"])
    assert result.exit_code == 0
    kept = Path(re.search(r"what was printed meanwhile is in (\S+)", result.stderr)[1])
    assert kept.read_text("utf-8") == "x" * worker.MOST_PRINTED + worker.CUT
    kept.unlink()
