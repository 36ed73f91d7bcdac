"""Black boxes sampled block by block: ended at any moment, and gone on with, the verdict is the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from test_support.samplers.campaigns import HERE, blocks_in, plan_in, run, stored_so_far


@pytest.fixture(autouse=True)
def _beside_the_programs(monkeypatch):
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))


@pytest.mark.thorough
def test_right_and_wrong_subjects_are_judged_and_nothing_is_sampled_twice(tmp_path):
    plan = plan_in(tmp_path, "right", "biased", tv=0.2)
    code, said = run(plan)
    assert code == 1
    assert "1. python:programs:biased\n" in said
    assert "samples fit law - refuted" in said
    stored = blocks_in(tmp_path)
    assert run(plan) == (code, said)
    assert blocks_in(tmp_path) == stored


@pytest.mark.thorough
def test_options_are_given_to_the_subject(tmp_path):
    plan = plan_in(tmp_path, "with_options", tv=0.2)
    (tmp_path / "law.json").write_text('{"2 2": 0.42857142857142855, "3 3": 0.5714285714285714}', "utf-8")
    options = plan.read_text("utf-8")
    plan.write_text(options + "options = {top_k = 2}\n", "utf-8")
    assert run(plan)[0] == 0
    plan.write_text(options + "options = {top_k = 3}\n", "utf-8")
    assert run(plan)[0] == 1
    plan.write_text(options + "options = 3\n", "utf-8")
    code, said = run(plan)
    assert code == 2
    assert "options of subject 1 is 3, expected a table of sampling options" in said


@pytest.mark.thorough
def test_two_processes_say_what_one_says(tmp_path):
    one, two = plan_in(tmp_path / "one", "right", tv=0.2), plan_in(tmp_path / "two", "right", tv=0.2)
    assert run(one) == run(two, "--jobs", "2")


@pytest.mark.thorough
def test_it_may_be_killed_and_goes_on(tmp_path):
    whole = plan_in(tmp_path / "whole", "right", tv=0.02, blocks=6)
    expected = run(whole)
    killed = plan_in(tmp_path / "killed", "right", tv=0.02, blocks=6)
    with subprocess.Popen(
        [sys.executable, "-m", "specverify", "campaign", str(killed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and len(stored_so_far(tmp_path / "killed")) < 2:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    left = stored_so_far(tmp_path / "killed")
    assert 2 <= len(left) < 6
    assert run(killed) == expected
    assert blocks_in(tmp_path / "killed") == blocks_in(tmp_path / "whole")
    assert blocks_in(tmp_path / "killed")[: len(left)] == left


@pytest.mark.thorough
def test_another_law_prompt_or_seed_is_another_setting(tmp_path):
    run(plan_in(tmp_path, "right", tv=0.2))
    before = len(blocks_in(tmp_path))
    plan = tmp_path / "plan.toml"
    plan.write_text("seed = 5\n" + plan.read_text("utf-8"), "utf-8")
    run(plan)
    assert len(blocks_in(tmp_path)) == 2 * before


def test_dependent_calls_are_seen_across_blocks(tmp_path):
    code, said = run(plan_in(tmp_path, "seed_ignored", tv=0.2))
    assert code == 1
    assert "calls are independent - refuted" in said


def test_a_subject_that_fails_is_named_and_the_others_are_judged(tmp_path):
    code, said = run(plan_in(tmp_path, "raises", "right", tv=0.2))
    assert code == 2
    assert "RuntimeError: no device" in said
    assert "holds" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blocks = 3", "names nothing to sample, expected at least one [[subject]]"),
        ("[[subject]]\nname = 'python:a:b'\nlaw = 'law.json'", "the plan has no 'results'"),
        ("result = 'x'\n[[subject]]\nname = 'a'", "the plan has 'result', expected one of"),
        ("results = 'x'\n[[subject]]\nname = 'a'", "subject 1 has no 'law'"),
        ("results = 'x'\nblock = 3\n[[subject]]\nname = 'a'", "block of the plan is 3, expected a whole number"),
        ("results = 'x'\n[[subject]]\nname = 'a'\nlaw = 'none.json'", "cannot be read"),
        ("results = ", "the plan"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_one_sentence(tmp_path, text, said):
    plan_in(tmp_path, "right")
    (tmp_path / "plan.toml").write_text(text, "utf-8")
    code, found = run(tmp_path / "plan.toml")
    assert code == 2
    assert said in " ".join(found.split())


def test_a_file_that_holds_no_results_is_refused(tmp_path):
    plan = plan_in(tmp_path, "right")
    (tmp_path / "results.sqlite").write_text("these are no results, and long enough to be told from an empty file" * 9)
    code, found = run(plan)
    assert code == 2
    assert "cannot be used: file is not a database" in " ".join(found.split())
