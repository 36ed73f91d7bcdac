"""The plugin of pytest and ``parametrize_with_checks``, as somebody's own test run sees them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specverify.pytest_plugin import summary_lines
from test_support.testing.own_run import run_in

MODULE = '''
import numpy as np
from functools import partial
from specverify.testing import check_engine, check_sampler, parametrize_with_checks

rng = np.random.default_rng()

def right(draws, target, draft, tokens):
    """Draw from the target."""
    return (draws.categorical(target(tokens), ("target",)),)

def wrong(draws, target, draft, tokens):
    """Draw from the draft."""
    return (draws.categorical(draft(tokens), ("draft",)),)

def broken(draws, target, draft, tokens):
    """Return nothing."""

def coins(seed, n):
    return [(int(token),) for token in np.random.default_rng(seed).integers(2, size=n)]

HALVES = {(0,): 0.5, (1,): 0.5}
'''
SUBJECTS = "@parametrize_with_checks([right, wrong], checks=['law_is_target', 'greedy_is_argmax'], quick=True)"
TEST = f"{MODULE}\n{SUBJECTS}\ndef test_it(check):\n    check()\n"
FAILS = "test_it.py::test_it[wrong-law_is_target]"


@pytest.fixture
def run(tmp_path):
    """Run pytest on one file with the plugin."""

    def of(text, *options, xfails=None):
        (tmp_path / "test_it.py").write_text(text, "utf-8")
        if xfails is not None:
            (tmp_path / "xfails.txt").write_text(xfails, "utf-8")
            options = (*options, "--specverify-xfails", "xfails.txt")
        return run_in(tmp_path, *options)

    return of


def test_one_item_a_subject_and_check_is_found_by_k(run):
    result = run(TEST, "--collect-only", "-q", "-k", "wrong and law_is_target")
    assert result.out.splitlines()[0] == FAILS
    assert result.shows("1/4 tests collected*")


def test_a_test_that_does_not_call_its_check_fails(run):
    result = run(f"{MODULE}\n{SUBJECTS}\ndef test_it(check):\n    pass\n", "-k", "right")
    assert result.outcomes == dict(failed=2, deselected=2)
    assert "the test did not call its check, so nothing was examined" in result.out


def test_a_failure_is_the_counterexample_alone_and_the_summary_counts(run):
    result = run(TEST)
    assert result.outcomes == dict(passed=2, failed=2)
    told = result.out
    assert "test_it:wrong: draft 1 (1) is accepted with probability 1; expected u <" in told
    assert "Check law is target - refuted" in told
    assert "def test_it" not in told
    assert "judged.py" not in told
    assert result.shows("*= specverify =*", "test_it:right  2 held", "test_it:wrong  2 refuted")


@pytest.mark.thorough
def test_expected_failures_are_strict(run):
    reasons = "expected_failures={'law_is_target': 'draws from q', 'greedy_is_argmax': 'too'}"
    result = run(TEST.replace("checks=[", f"{reasons}, checks=["))
    assert result.outcomes == dict(xfailed=2, failed=2)
    assert not result.shows("*FAILED*wrong*")
    assert result.shows("*XPASS(strict)*draws from q*")


@pytest.mark.thorough
def test_known_failures_stand_in_a_file(run):
    known = f"# of ours\n\n{FAILS} # draws from q\ntest_it.py::test_it[wrong-greedy_is_argmax]  # too\n"
    assert run(TEST, xfails=known).outcomes == dict(passed=2, xfailed=2)


def test_a_known_failure_that_passes_fails_and_one_that_is_no_test_warns(run):
    known = "test_it.py::test_it[right-law_is_target] # not so\ntest_it.py::test_gone # renamed\nother.py::a # later\n"
    result = run(TEST, "-k", "right", "-W", "always", xfails=known)
    assert {"passed": 1, "failed": 1, "deselected": 2}.items() <= result.outcomes.items()
    assert result.shows("*xfails.txt names test_it.py::test_gone, which is no test*")


def test_an_unusable_subject_is_no_refutation_and_no_known_failure(run):
    text = TEST.replace("[right, wrong]", "[broken]").replace(", 'greedy_is_argmax'", "")
    result = run(text, xfails="test_it.py::test_it[broken-law_is_target] # known\n")
    assert result.outcomes == dict(failed=1)
    assert result.shows("test_it:broken: law_is_target is unusable: it returned NoneType, expected *")
    assert "SpeculationRefuted" not in result.out


def test_the_alarm_is_shared_among_the_tests_that_sample(run):
    sampler = "[partial(check_sampler, coins, law=HALVES, tv=0.2), right]"
    result = run(
        TEST.replace("[right, wrong]", sampler).replace("checks=['law_is_target', 'greedy_is_argmax'], ", "")
        + "\ndef test_share():\n    from specverify.testing.judged import offered\n    print(offered.get())\n",
        "--specverify-alarm", "1e-3", "-rP", "-k", "share or coins or law_is_target",
    )  # fmt: skip
    assert result.outcomes == dict(passed=7, deselected=5)
    assert result.shows("{'alarm': 0.00025}", "test_it:coins * 4 held; samples detect a TV of 0.*")


def test_what_the_budget_does_not_reach_is_undecided(run):
    result = run(TEST, "--specverify-budget", "1e-6")
    assert result.outcomes == dict(failed=4)
    assert result.shows("not run: the 1e-06 s of --specverify-budget were over")


def test_a_check_that_is_called_by_itself_is_counted_too(run):
    call = "def test_one():\n    check_decoder(right, quick=True)\n"
    result = run(f"{MODULE}\nfrom specverify.testing import check_decoder\n{call}")
    assert result.outcomes == dict(passed=1)
    assert result.shows("test_it:right  7 held")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--specverify-alarm", "2"), "argument --specverify-alarm: it is 2, expected a probability strictly"),
        (("--specverify-budget", "soon"), "argument --specverify-budget: it is soon, expected a number of seconds"),
        (("--specverify-xfails", "none.txt"), "--specverify-xfails none.txt cannot be read"),
    ],
)
def test_an_option_that_cannot_be(run, options, sentence):
    result = run("def test_it(): pass", *options)
    assert result.code == pytest.ExitCode.USAGE_ERROR
    assert sentence in result.err


@pytest.mark.parametrize(
    ("known", "sentence"),
    [(FAILS, "expected a reason after it: ID # why"), (f"{FAILS} # a\n{FAILS} # b", "expected each id once")],
)
def test_a_file_that_cannot_be(run, known, sentence):
    result = run("def test_it(): pass", xfails=known)
    assert result.code == pytest.ExitCode.USAGE_ERROR
    assert sentence in result.err


def test_who_does_not_use_it_imports_nothing():
    code = (
        "import sys, pytest, specverify.pytest_plugin as plugin\n"
        "sys.exit(str([m for m in sys.modules if m.split('.')[0] in ('numpy', 'scipy', 'torch', 'reference')"
        " or m.startswith('specverify.') and m != plugin.__name__]) if 'numpy' in sys.modules else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_long_summary_shows_first_what_did_not_hold_and_counts_the_rest():
    rows = [(f"right {number}", "law_is_target", "holds", None) for number in range(50)]
    lines = summary_lines([*rows, ("wrong", "law_is_target", "refuted", None)])
    assert lines[0].split() == ["wrong", "1", "refuted"]
    assert len(lines) == 41
    assert lines[-1] == "and 11 more subjects; 50 of all 51 held everything"
    assert len(summary_lines(rows[:40])) == 40
