"""The statistics run: what is planned, what is printed and when, what is written, and what an interrupt leaves."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from reference import ALGORITHMS
from specverify.cli import app
from specverify.run import stats
from specverify.run.stats import CONTROLS, DENSE, QUICK, THOROUGH, USUAL, in_order, plan_statistics, run_statistics
from specverify.subjects.subject import Method, UnusableSubject

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3
PLAIN = USUAL._replace(finer=None)
TWO = ("--subject", "reference:lenience", "--subject", "reference:autoregressive")


def run(*arguments):
    return CliRunner().invoke(app, ["stats", "--jobs", "1", *arguments])


# The plan


def test_every_row_is_looked_at_finely_and_a_few_run_by_run():
    plan = plan_statistics(1e-6, 0, PLAIN)
    divided = [item for item in plan.settings if item.setting.method is Method.DIVIDED]
    assert [item.subject for item in divided] == [f"reference:{row.name}" for row in ALGORITHMS]
    assert all(item.setting.detect <= 0.002 for item in divided)
    controls = [item for item in plan.settings if item.control]
    assert [item.subject for item in controls] == [f"reference:{name}" for name in CONTROLS]
    assert {item.setting.method for item in controls} == {Method.PLAIN}
    assert len(divided) + len(controls) == len(plan.settings)


def test_dense_rows_take_the_peaked_size():
    dense = {f"reference:{name}" for name in DENSE}
    named = [item.setting.name for item in plan_statistics(1e-6, 0, PLAIN).settings if item.subject in dense]
    assert len(named) == len(DENSE)
    assert all(name.startswith("V=8 T=0.5 horizon=3") for name in named)


def test_the_controls_are_of_every_size_and_kind_of_draft():
    sizes = {item.setting.name.partition(" horizon")[0] for item in plan_statistics(1e-6, 0, PLAIN).settings}
    controls = [item for item in plan_statistics(1e-6, 0, PLAIN).settings if item.control]
    assert {item.setting.name.partition(" horizon")[0] for item in controls} == sizes


def test_the_budget_is_shared_by_every_test_that_may_accuse():
    plan = plan_statistics(1e-6, 0, PLAIN)
    biased = sum(row.declared_law is not None for row in ALGORITHMS)
    assert plan.budget.parts == len(ALGORITHMS) + biased + len(CONTROLS)
    assert plan.budget.each * plan.budget.parts == pytest.approx(1e-6)


def test_no_setting_is_sampled_twice():
    for scope in (PLAIN, QUICK, THOROUGH._replace(finer=None)):
        keys = [
            (item.subject, item.setting.name, item.setting.method) for item in plan_statistics(1e-6, 0, scope).settings
        ]
        assert len(set(keys)) == len(keys)


def test_thorough_takes_every_size_for_every_row():
    plan = plan_statistics(1e-6, 0, THOROUGH._replace(finer=None))
    assert len(plan.settings) == 3 * len(ALGORITHMS) + len(CONTROLS)


def test_a_name_that_cannot_be_sampled_is_refused():
    with pytest.raises(UnusableSubject, match="there is no subject 'reference:nasdd', did you mean reference:nasd"):
        plan_statistics(1e-6, 0, PLAIN, ["reference:nasdd"])
    with pytest.raises(UnusableSubject, match="has no setting to sample"):
        plan_statistics(1e-6, 0, PLAIN, ["mutant:argmax-for-a-draw"])


def test_cheap_settings_come_first_and_rows_are_told_in_the_order_of_the_registry():
    names = ["reference:nasd", "reference:egag", "reference:autoregressive"]
    plan = plan_statistics(1e-6, 0, QUICK, names)
    judged = list(run_statistics(plan, jobs=1))
    assert [plan.settings[item.place].control for item in judged] == [False, False, False, True]
    rows = in_order(judged)
    assert [(row.subject, row.method) for row in rows] == [
        ("reference:nasd", "divided"),
        ("reference:nasd", "run by run"),
        ("reference:egag", "divided"),
        ("reference:autoregressive", "divided"),
    ]
    assert all(row.as_expected for row in rows)


@pytest.mark.thorough
def test_two_processes_find_what_one_finds():
    plan = plan_statistics(1e-6, 0, QUICK, ["reference:lenience", "reference:nasd-seed-rule"])
    assert in_order(list(run_statistics(plan, jobs=2))) == in_order(list(run_statistics(plan, jobs=1)))


def test_twenty_million_samples_tell_two_thousandths():
    """The bias of nasd-seed-rule at this size is far below what a plain sample of seconds could see."""
    (judged,) = run_statistics(plan_statistics(1e-6, 0, PLAIN, ["reference:nasd-seed-rule"]), jobs=1)
    declared, target = judged.rows
    assert declared.samples > 10**7
    assert max(declared.tv_detectable, target.tv_detectable) <= 0.002
    assert (declared.verdict, target.verdict) == ("fits", "refuted")


# The command


def test_rows_are_printed_as_they_are_judged_and_again_in_a_table(tmp_path):
    data, table = tmp_path / "rows.json", tmp_path / "rows.csv"
    result = run(*TWO, "--quick", "--json", str(data), "--csv", str(table))
    assert result.exit_code == HOLDS, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("alarm budget 1e-06 over 3 planned tests: 3.3e-07 each")
    told = [line for line in lines if " left  reference:" in line]
    assert len(told) == 3
    heading = next(index for index, line in enumerate(lines) if line.startswith(" subject "))
    assert all(lines.index(line) < heading for line in told)
    assert [line.split()[0] for line in lines[heading + 1 : heading + 4]] == [
        "reference:lenience",
        "reference:lenience",
        "reference:autoregressive",
    ]
    assert lines[-1] == "3 of 3 rows as they must be"
    report = json.loads(data.read_text("utf-8"))
    assert (report["complete"], report["tests"], len(report["rows"])) == (True, 3, 3)
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert [row["subject"] for row in rows] == [row["subject"] for row in report["rows"]]
    assert [float(row["p_value"]) for row in rows] == [row["p_value"] for row in report["rows"]]


def test_a_planted_bug_is_refuted():
    result = run("--subject", "mutant:residual-from-target")
    assert result.exit_code == REFUTED
    assert "0 of 1 rows as they must be" in result.output


def test_an_interrupt_prints_what_is_done_and_says_so(monkeypatch, tmp_path):
    def interrupted(plan, jobs):
        yield from list(run_statistics(plan, jobs))[:1]
        raise KeyboardInterrupt

    data = tmp_path / "rows.json"
    monkeypatch.setattr(stats, "run_statistics", interrupted)
    result = run(*TWO, "--quick", "--json", str(data))
    assert result.exit_code == UNKNOWN
    assert "interrupted: 1 of 2 settings were examined; the others have no verdict" in result.output
    report = json.loads(data.read_text("utf-8"))
    assert report["complete"] is False
    assert {row["subject"] for row in report["rows"]} <= {"reference:lenience", "reference:autoregressive"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--quick", "--thorough"], "--quick and --thorough were both given, expected one of them"),
        (["--alarm", "0"], "the alarm budget is 0.0, expected a probability strictly between 0 and 1"),
        (["--subject", "reference:nobody"], "there is no subject 'reference:nobody'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == UNUSABLE
    assert result.stderr.startswith(f"specverify: {sentence}")
    assert result.stderr.count("\n") == 1


# The picture


def test_a_picture_without_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    result = run("--subject", "reference:autoregressive", "--quick", "--plot", str(tmp_path / "rows.png"))
    assert result.exit_code == UNUSABLE
    assert result.stderr == 'specverify: a picture needs matplotlib: pip install "specverify-suite[plot]"\n'
