"""The kill matrix, the statistics of other projects, and the counted false alarms."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.cli import app
from specverify.mutants import mutants, suspects
from specverify.run.catalogue import find_subject
from specverify.run.verify import Checklist, run_check, warmed_up
from specverify.trust import kills, peer_rounds
from specverify.trust.kill_page import OF_PEERS, SYMBOLS, peer_heads
from specverify.trust.kills import (
    KILLED,
    NOT_EXPRESSED,
    NOT_RUN,
    REFUSES_BOTH,
    WIDEST_INTERCEPTED,
    KillMatrix,
    control_row,
    kill_matrix,
    lonely_killers,
    mutant_row,
)
from specverify.trust.peers import PEERS, judged
from test_support.kill_rows import EVERY, few_rows

pytestmark = pytest.mark.xdist_group("kills")

PAGE = Path(__file__).parents[2] / "docs" / "kill-matrix.md"


@pytest.fixture
def rows():
    return few_rows()


@pytest.mark.thorough
def test_a_mutant_is_killed_by_the_check_it_names_and_its_control_is_not(rows):
    assert [row.as_expected for row in rows] == [True, True, True]
    assert [row.killed_by for row in rows] == ["law_is_target", "acceptance_is_optimal", "stop_law"]


def test_a_row_whose_named_check_does_not_kill_is_not_as_expected(rows):
    assert not rows[1]._replace(killed_by="law_is_target").as_expected
    assert not rows[0]._replace(control="refuted").as_expected


@pytest.mark.parametrize("name", ["residual-from-target", "residual-floor", "state-forgets-its-round"])
def test_a_decoder_without_a_counterexample_has_the_same_verdict(name):
    mutant = next(item for item in mutants() if item.name == name)
    check, subject = check_named(mutant.killed_by), warmed_up(mutant.open())
    one, other = (
        run_check(subject, check, Checklist((check,), Conditions(explained=explained))) for explained in (True, False)
    )
    assert one.status is other.status is Status.REFUTED
    assert (one.statement, one.figures) == (other.statement, other.figures)
    assert (one.counterexample is None, other.counterexample is None) == (False, True)


EDGES = PAGE.with_name("edges.md").read_text("utf-8")
NOTES = re.findall(r"`([a-z-]+)`", EDGES.partition("of its bugs are only notes:")[2].partition("\n\n")[0])


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("name", [item.name for item in mutants() if item.killed_by == "support_at_boundary_draws"])
def test_planted_edges_are_notes_by_default_where_the_page_lists_them(name):
    subject = next(item for item in mutants() if item.name == name).open()
    check = check_named("support_at_boundary_draws")
    verdict = run_check(warmed_up(subject), check, Checklist((check,), seconds=300.0))
    assert (verdict.status is Status.HOLDS and bool(verdict.figures["edges"])) == (name in NOTES)
    assert verdict.status is (Status.HOLDS if name in NOTES else Status.REFUTED)


@pytest.mark.thorough
def test_a_lossless_mutant_survives_the_check_of_the_law(rows):
    cells = {cell.check: cell.status for cell in rows[1].cells}
    assert cells["law_is_target"] == "survived"
    assert cells["acceptance_is_optimal"] == KILLED


def test_enough_bugs_are_planted_and_each_says_where_it_was_seen():
    assert len(mutants()) >= 120
    assert all(mutant.citation for mutant in mutants())
    assert len({mutant.name for mutant in mutants()}) == len(mutants())


def test_a_check_that_alone_kills_a_bug_is_known(rows):
    alone = lonely_killers(KillMatrix(rows, ()))
    assert set(alone) == set(EVERY)
    assert alone["acceptance_is_optimal"] == ("always-reject",)


def test_a_suspicious_control_that_is_accused_would_be_seen():
    control = suspects()[0]
    row = control_row(control.name, ("law_is_target", "program_is_its_draws"), Conditions())
    assert row.as_expected
    assert not row._replace(accused_by=("law_is_target",)).as_expected
    assert not row._replace(held=()).as_expected


def test_without_checks_each_bug_is_examined_by_the_check_it_names_alone(monkeypatch):
    first = suspects()[:1]
    monkeypatch.setattr(kills, "suspects", lambda: first)
    matrix = kill_matrix(("always-reject", "eos-ignored-in-block"), None)
    examined = [[cell.check for cell in row.cells] for row in matrix.mutants]
    assert examined == [["acceptance_is_optimal"], ["eos_is_final"]]
    assert all(row.as_expected for row in matrix.mutants)
    assert matrix.controls[0].applied > 1
    assert not mutant_row("always-reject", ("law_is_target",), Conditions()).as_expected


@pytest.mark.thorough
def test_the_matrix_in_two_processes_is_the_one_in_one():
    checks = (check_named("tokens_are_supported"),)
    one, two = (kill_matrix(("residual-floor",), checks, jobs=jobs) for jobs in (1, 2))

    def said(matrix):
        return [(row.name, row.killers, row.control) for row in matrix.mutants], matrix.controls

    assert said(one) == said(two)


# The statistics of other projects

QUICK = [peer for peer in PEERS if peer.vocabulary < 100]


def test_a_peer_that_refuses_the_correct_method_as_well_has_not_killed_the_bug(monkeypatch):
    """Lenience is biased by design, and says so; a test that asks for p refuses it with the bug and without."""
    monkeypatch.setattr(kills, "PEERS", QUICK)
    row = mutant_row("lenient-residual", (), Conditions(), peers=True)
    assert dict(row.peers)["vLLM V2 narrow"] == REFUSES_BOTH
    assert KILLED not in dict(row.peers).values()


@pytest.mark.thorough
def test_a_bug_outside_the_verifier_is_not_expressed_in_a_peers_test():
    row = mutant_row("only-last-token-stops", (), Conditions(), peers=True)
    assert {said for _, said in row.peers} == {NOT_EXPRESSED}


@pytest.mark.thorough
def test_a_sample_that_takes_too_long_or_would_is_not_run(monkeypatch):
    intercepted = dict(mutant_row("count-along-rows", (), Conditions(), peers=True).peers)
    wide = {peer.name for peer in PEERS if peer.vocabulary > WIDEST_INTERCEPTED}
    assert wide == {name for name, said in intercepted.items() if said == NOT_RUN} != set()
    monkeypatch.setattr(peer_rounds, "PROBE_SECONDS", -1)
    with pytest.raises(TimeoutError, match="one round takes 0 s"):
        judged(QUICK[0], find_subject("mutant:inverted-ratio"))
    slow = mutant_row("inverted-ratio", (), Conditions(), peers=True)
    assert {said for _, said in slow.peers} == {NOT_RUN}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", ["inverted-ratio", "lenient-residual", "noise-of-the-round", "hidden-randomness"])
def test_the_committed_page_says_of_the_quick_peers_what_they_say_now(name, monkeypatch):
    monkeypatch.setattr(kills, "PEERS", QUICK)
    page = PAGE.read_text("utf-8")
    assert OF_PEERS in page
    table = [line.strip("| ").split(" | ") for line in page.split(OF_PEERS)[1].splitlines() if line.startswith("| ")]
    assert table[0] == ["mutant", "ours", *peer_heads()]
    told = dict(zip([peer.name for peer in PEERS], next(row for row in table if row[0] == name)[2:], strict=True))
    said = dict(mutant_row(name, (), Conditions(), peers=True).peers)
    assert {peer.name: told[peer.name] for peer in QUICK} == {peer: SYMBOLS[word] for peer, word in said.items()}


# Commands


@pytest.mark.thorough
def test_the_command_prints_and_writes_the_matrix(tmp_path):
    data = tmp_path / "kills.json"
    command = ["mutants", "--class", "K", "--check", "eos_is_final", "--jobs", "1", "--json", str(data)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "eos-ignored-in-block" in result.output
    assert {row["killed_by"] for row in json.loads(data.read_text("utf-8"))["mutants"]} == {"eos_is_final"}


@pytest.mark.parametrize("option", [["--class", "Z"], ["--check", "nothing"]])
def test_an_unknown_class_or_check_is_named(option):
    result = CliRunner().invoke(app, ["mutants", *option])
    assert result.exit_code == 2
    assert re.search(rf"there is no (class|check) '{option[1]}'", result.stderr)


def test_the_alarms_are_counted_by_a_command(tmp_path):
    page = tmp_path / "alarms.md"
    command = ["alarms", "--runs", "10", "--configurations", "5", "--jobs", "1", "--markdown", str(page)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "an exact check refutes: 0 of 5, declared 0" in result.output
    assert "| both stages reject: a refutation | 10 | 0.01 |" in page.read_text("utf-8")
