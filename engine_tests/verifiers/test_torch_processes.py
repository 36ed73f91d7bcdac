"""Verifiers of torch that do something to their process: named, in somebody's test and on the command line."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.cli import app
from specverify.testing import check_decoder, check_verifier

BODY = Path(__file__).read_text("utf-8").partition("# The verifier\n")[2].partition("# The tests\n")[0]

# The verifier


def accepted_or_replaced(p, q, draft_tokens):
    """Speculative sampling in float64 tensors."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand((), dtype=torch.float64) * q[i, token] < p[i, token]:
            excess = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(excess / excess.sum(), 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[len(draft_tokens)], 1))]


# The tests


def ending(call):
    """Return the verifier, after ``call()``."""

    def verify(p, q, draft_tokens):
        call()
        return accepted_or_replaced(p, q, draft_tokens)

    return verify


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: sys.exit(0), r"it ends the process: SystemExit: 0 \(test_torch_processes.py:\d+\)"),
        (lambda: os._exit(0), r"it calls os._exit\(0\) \(test_torch_processes.py:\d+\)"),
        (lambda: os.chdir("/"), "it changes the working directory to /"),
    ],
)
def test_a_torch_verifier_is_named_inside_a_test(call, sentence):
    first, *_ = check_verifier(ending(call), gammas=(1,), on_fail=None)
    assert first.status is Status.UNUSABLE
    assert re.match(sentence, first.statement), first.statement


@pytest.mark.thorough
def test_a_torch_verifier_is_named_on_the_command_line_and_a_right_one_holds(tmp_path, monkeypatch):
    (tmp_path / "right_torch.py").write_text(f"import torch\n{BODY}", "utf-8")
    crash = "def crash(p, q, draft_tokens):\n    torch.rand(1)\n    ctypes.string_at(0)\n"
    (tmp_path / "wrong_torch.py").write_text(f"import ctypes\nimport torch\n{crash}", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "report.json"
    names = ["wrong_torch:crash", "right_torch:accepted_or_replaced"]
    result = CliRunner().invoke(app, ["verify", *names, "--check", "greedy_is_argmax", "--json", str(file)])
    assert result.exit_code == 2, result.output
    found = [(verdict["status"], verdict["statement"]) for verdict in json.loads(file.read_text("utf-8"))["verdicts"]]
    assert [status for status, _ in found[:-1]] == ["unusable"] * len(found[:-1])
    assert found[0][1].startswith("its process was ended by SIGSEGV at wrong_torch.py:5")
    assert found[-1][0] == "holds"


def test_rows_of_tables_become_tensors_without_a_warning_and_a_write_through_one_is_named():
    def right(draws, target, draft, tokens):
        row = torch.from_numpy(target(tokens)).clone()
        return (draws.categorical(row, ("target",)),)

    def wrong(draws, target, draft, tokens):
        torch.from_numpy(target(tokens))[0] /= 2
        return right(draws, target, draft, tokens)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {verdict.status for verdict in check_decoder(right)} == {Status.HOLDS}
        first, *_ = check_decoder(wrong, on_fail=None)
    assert first.status is Status.UNUSABLE
    assert re.match(
        r"ValueError: the pmf after \(0,\) was modified by the caller after it was returned", first.statement
    )
