"""The sample consumers: built, run and graded where their toolchain is; with their bug they are refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from specverify.cli import app

pytestmark = pytest.mark.xdist_group("vectors")

ROOT = Path(__file__).parents[2]
HOLDS, REFUTED = 0, 1


class Consumer(NamedTuple):
    """How one is built and run, what it answers, and the group in which its bug shows."""

    tool: str
    file: str
    build: tuple[str, ...]
    groups: tuple[str, ...]
    planted_in: str


CONSUMERS = (
    Consumer(
        "node",
        "consumer.mjs",
        (),
        (
            "verify_chain/inverse-cdf",
            "boundary",
            "stop",
            "tree/greedy",
            "tree/layout",
            "law_of_round/any lossless decoder",
        ),
        "law_of_round/any lossless decoder",
    ),
    Consumer(
        "g++",
        "consumer.cpp",
        ("-std=c++17", "-O0"),
        ("verify_chain/inverse-cdf", "verify_chain/exponential-race", "boundary", "cache_lengths"),
        "boundary/inverse-cdf",
    ),
    Consumer(
        "rustc",
        "consumer.rs",
        ("--edition", "2021"),
        ("verify_chain/inverse-cdf", "verify_chain/block-verification", "boundary", "warp"),
        "verify_chain/block-verification",
    ),
)


def built(consumer, folder):
    """Return the command that runs a consumer; skips where its toolchain is not."""
    source = ROOT / "examples" / "consumers" / consumer.file
    if shutil.which(consumer.tool) is None:
        pytest.skip(f"{consumer.tool} is not installed")
    if not consumer.build:
        return [consumer.tool, str(source)]
    made = folder / "consumer"
    subprocess.run([consumer.tool, *consumer.build, str(source), "-o", str(made)], check=True, cwd=folder)
    return [str(made)]


def graded(command, folder, *more):
    """Return what the grading says of a run."""
    done = subprocess.run([*command, str(ROOT / "vectors"), *more], capture_output=True, text=True, check=True)
    (folder / "results.json").write_text(done.stdout, "utf-8")
    return lambda *groups: CliRunner().invoke(
        app,
        ["vectors", "check", str(folder / "results.json"), *(word for group in groups for word in ("--only", group))],
    )


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: consumer.file)
def test_a_consumer_is_right_and_with_its_bug_refused(consumer, tmp_path):
    command = built(consumer, tmp_path)
    right = graded(command, tmp_path)(*consumer.groups)
    assert right.exit_code == HOLDS, right.output
    wrong = graded(command, tmp_path, "planted")(*consumer.groups)
    assert wrong.exit_code == REFUTED
    assert consumer.planted_in in wrong.output
    done = subprocess.run([*command, "nowhere"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"consumer: nowhere/verify_chain.json cannot be read.*\n", done.stderr)
