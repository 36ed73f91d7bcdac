"""Whatever ends a campaign, it says so in a sentence, loses nothing, and goes on to what an undisturbed one says."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from joblib.externals.loky import get_reusable_executor

from specverify.run import campaigns as campaigns_of_runs
from test_support.samplers.campaigns import HERE, blocks_in, found_in, plan_in, run, stored_so_far

SPACE = 49_152
"""Bytes that hold the tables of a campaign and some of its blocks, but not three."""


@pytest.fixture(autouse=True)
def _beside_the_programs(monkeypatch, tmp_path):
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))
    monkeypatch.setenv("BLACK_BOX_FLAG", str(tmp_path / "flag"))
    yield
    get_reusable_executor().shutdown(wait=True, kill_workers=True)  # the next ones take this environment for theirs


def undisturbed(folder, **plan):
    """Run the right subject to the end; return what it said and found."""
    said = run(plan_in(folder / "whole", "right", **plan))
    return said, found_in(folder / "whole")


def told(said):
    return " ".join(said.split())


def alike(sample):
    """Return what samples one block alone, and says of all what it said: what is asked is where that is kept."""
    said = []
    return lambda campaign, subject, index: said[0] if said else said.append(sample(campaign, subject, 0)) or said[0]


@contextmanager
def files_of_at_most(size):
    """Let no file grow larger: to whoever writes, the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_said_and_what_was_stored_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(campaigns_of_runs, "sample_block", alike(campaigns_of_runs.sample_block))
    plan = {"tv": 0.01, "blocks": 3, "block": 64}
    expected = undisturbed(tmp_path, **plan)
    full = plan_in(tmp_path / "full", "right", **plan)
    with files_of_at_most(SPACE):
        code, said = run(full)
    left = blocks_in(tmp_path / "full")
    assert code == 3
    assert 0 < len(left) < 3
    assert f"block {len(left) + 1} could not be stored" in told(said)
    assert f"{len(left)} blocks are stored: run it again to go on" in told(said)
    assert (run(full), found_in(tmp_path / "full")) == expected


@pytest.mark.thorough
def test_a_subject_that_hangs_is_named_and_goes_on_later(tmp_path):
    plan = {"tv": 0.01, "blocks": 2, "block": 64, "timeout": 2}
    _, expected = undisturbed(tmp_path, **plan)
    hanging = plan_in(tmp_path / "hanging", "hangs_once", **plan)
    code, said = run(hanging)
    assert code == 2
    assert "python:programs:hangs_once" in said
    assert "2 s" in told(said)
    assert run(hanging)[0] == 3
    assert found_in(tmp_path / "hanging") == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("stops_who_asks", "for 8 s nothing was finished: a process that shared the work hangs"),
        ("kills_who_asks", "a process that shared the work ended before it"),
    ],
)
def test_a_worker_that_hangs_or_dies_is_said_and_what_was_stored_stays(tmp_path, name, why):
    plan = {"tv": 0.01, "blocks": 4, "block": 64}
    _, expected = undisturbed(tmp_path, **plan)
    disturbed = plan_in(tmp_path / "disturbed", name, "right", more="block_seconds = 8", **plan)
    code, said = run(disturbed, "--jobs", 2)
    assert code == 3
    assert why in told(said)
    assert "blocks are stored: run it again to go on" in told(said)
    assert [row for row in blocks_in(tmp_path / "disturbed") if row[0].endswith("right")]
    assert run(disturbed, "--jobs", 2)[0] == 3
    assert found_in(tmp_path / "disturbed") == 2 * expected


@pytest.mark.thorough
def test_killed_at_fifty_random_moments_it_says_what_the_undisturbed_one_says(tmp_path):
    plan = {"tv": 0.001, "blocks": 150, "block": 64}
    expected = undisturbed(tmp_path, **plan)
    killed, rng, grown = plan_in(tmp_path / "killed", "right", **plan), random.Random(0), 0
    for _ in range(50):
        before = len(stored_so_far(tmp_path / "killed"))
        killed_after(killed, blocks=rng.choice((None, 0, 1, 2)), seconds=rng.uniform(0, 0.2))
        grown += len(stored_so_far(tmp_path / "killed")) > before
    assert grown > 10
    assert len(stored_so_far(tmp_path / "killed")) < 150
    assert (run(killed), found_in(tmp_path / "killed")) == expected


def killed_after(plan, blocks, seconds):
    """Start the campaign and kill it so many seconds after so many blocks more are stored, or after its start."""
    wanted = len(stored_so_far(plan.parent)) + (blocks or 0)
    command = [sys.executable, "-m", "specverify", "campaign", str(plan)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while blocks is not None and len(stored_so_far(plan.parent)) < wanted and process.poll() is None:
            time.sleep(0.01)
        time.sleep(seconds if blocks else 8 * seconds)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
