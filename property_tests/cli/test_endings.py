"""The exit status and the message if the command line is interrupted or its reader ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # off in a background job
from specverify.cli import main
main()
"""
SLOW = """
import pathlib
import time
pathlib.Path("begun").touch()
time.sleep(60)
"""


def started(folder, *arguments, **streams):
    """Start the command line in ``folder``, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **streams,
    )


@pytest.mark.parametrize(
    "arguments", [("sample", "python:slow:tokens", "--law", "law.json"), ("verify", "slow:verify", "--quick")]
)
def test_an_interrupted_command_says_so_in_one_line(tmp_path, arguments):
    (tmp_path / "slow.py").write_text(SLOW, "utf-8")
    (tmp_path / "law.json").write_text("[0.5, 0.5]", "utf-8")
    with started(tmp_path, *arguments) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=50)
    assert (printed, errors, process.returncode) == ("", "specverify: interrupted\n", 130)


def test_an_interrupted_run_reports_the_checks_that_it_did_not_reach(tmp_path):
    (tmp_path / "slow.py").write_text(
        f"def verify(p, q, draft_tokens):{SLOW.replace(chr(10), chr(10) + '    ')}", "utf-8"
    )
    with started(tmp_path, "verify", "slow:verify", "--quick", "--json", "part.json") as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=50)
    verdicts = json.loads((tmp_path / "part.json").read_text("utf-8"))["verdicts"]
    assert f"specverify: interrupted, {len(verdicts)} of the checks have no verdict" in errors
    assert {verdict["status"] for verdict in verdicts} == {"unknown"}
    assert {verdict["statement"] for verdict in verdicts} == {"not reached: the run was interrupted"}
    assert process.returncode == 3


@pytest.mark.parametrize("arguments", [("list", "algorithms"), ("--version",)])
def test_a_reader_that_ends_is_no_unusable_call(tmp_path, arguments):
    with started(tmp_path, *arguments) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=50) == 141


def test_processes_that_import_ignore_an_interrupt_of_the_group():
    program = """
import json
import os
import signal
from multiprocessing import forkserver
from specverify.run.several import Workers
with Workers(1, 1.0):
    status = open(f"/proc/{forkserver._forkserver._forkserver_pid}/status").read()
ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
print(ignored >> (signal.SIGINT - 1) & 1)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("signals of another process are read from /proc")
    result = subprocess.run(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{program}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("1\n", "")
