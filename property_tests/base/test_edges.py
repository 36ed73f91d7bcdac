"""An edge is kept apart from a wrong law: in counts, exit status, levels, words, and in what a replay repeats."""

from __future__ import annotations

import json
from xml.etree.ElementTree import fromstring

import pytest
from typer.testing import CliRunner

from specverify.base.default_limits import EDGE
from specverify.base.edges import edge_lines, edge_of, merged_edges, once_in
from specverify.base.figures import merged_figures
from specverify.base.identifier import Replay, pack_replay, unpack_replay
from specverify.base.verdict import Evidence, Status, Verdict, is_edge, word_of
from specverify.cli import app
from specverify.pytest_plugin import _row, summary_lines
from specverify.report.data import as_data
from specverify.report.markdown import verdict_table
from specverify.report.page.document import page
from specverify.report.prose import failure
from specverify.report.runs.as_junit import run_as_junit
from specverify.report.runs.as_markdown import run_as_markdown
from specverify.report.runs.as_sarif import run_as_sarif
from specverify.report.runs.loading import said_of
from specverify.report.runs.said import counted
from specverify.testing import check_verifier

NOTE = edge_of("it raises ValueError", "random at it.py:3 gives 0.0", 2.0**-53)
WRONG = Verdict("it", "law_is_target", Status.REFUTED, "TV = 1/2", "lossless", Evidence.EXACT)
EDGE_ONE = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "once", "supported", Evidence.EXACT)
EDGE_ONE = EDGE_ONE._replace(figures={"edge": 2.0**-24})
NOTED = EDGE_ONE._replace(status=Status.HOLDS, statement="; ".join(edge_lines([NOTE])), figures={"edges": [NOTE]})
HOLDS = WRONG._replace(status=Status.HOLDS, check="greedy_is_argmax", statement="fine")


def test_counts_and_words_are_apart():
    verdicts = [HOLDS, NOTED, WRONG, EDGE_ONE]
    assert counted(verdicts) == {"holds": 2, "refuted": 1, "refuted at an edge": 1}
    assert [word_of(verdict) for verdict in verdicts] == ["holds", "holds", "refuted", "refuted at an edge"]
    assert [is_edge(verdict) for verdict in verdicts] == [False, False, False, True]
    assert failure(EDGE_ONE).startswith("support at boundary draws - refuted at an edge: SUPPORTED")
    assert failure(WRONG).startswith("law is target - refuted: LOSSLESS")


def test_reports_have_levels_of_their_own_for_edges():
    verdicts = [
        WRONG,
        EDGE_ONE._replace(subject="edge"),
        NOTED._replace(subject="note"),
        HOLDS._replace(subject="fine"),
    ]
    run = said_of(json.dumps(as_data(verdicts, 1e-6, 0)), "it")
    results = json.loads(run_as_sarif(run, "run.json"))["runs"][0]["results"]
    levels = {result["message"]["text"].partition(":")[0]: result["level"] for result in results}
    assert levels == {"it": "error", "edge": "warning", "note": "note"}
    root = fromstring(run_as_junit(run).partition("\n")[2])
    assert [failed.get("type") for failed in root.iter("failure")] == ["refuted", "refuted at an edge"]
    assert root.get("failures") == "2"
    assert any("at most once in 9e15 drafts" in (out.text or "") for out in root.iter("system-out"))
    text = run_as_markdown(run)
    assert text.startswith("## specverify: ✔ 2 holds, ✘ 1 refuted, ✘ 1 refuted at an edge")
    assert "1 beside an edge" in text
    assert "refuted at an edge" in page(run)
    table = verdict_table(verdicts, {})
    assert "at most once in 9e15 drafts (note)" in table
    assert "(fine)" not in table


def test_the_plugin_s_summary_tells_them_apart():
    lines = summary_lines([_row(verdict) for verdict in (HOLDS, NOTED, WRONG, EDGE_ONE)])
    assert lines == ["it  1 held, 1 held beside an edge, 1 refuted, 1 refuted at an edge"]


def test_edges_of_one_number_are_one_with_the_likelier_probability():
    likelier = edge_of("nothing comes out", NOTE["when"], 2.0**-50)
    other = edge_of("nothing comes out", "random at it.py:9 gives 0.0", 2.0**-52)
    merged = merged_figures([{"edges": [NOTE]}, {"edges": [likelier, other]}])["edges"]
    assert merged == [{**likelier, "cases": 2}, other]
    many = [edge_of("x", str(place), 2.0**-53) for place in range(5)]
    assert list(edge_lines(merged_edges(many, [])))[-1] == "and 2 less likely edges"


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (2.0**-53, "at most once in 9e15 drafts"),
        (2.0**-24, "at most once in 2e7 drafts"),
        (2.0**-8, "in at most 0.0039 of all drafts"),
    ],
)
def test_a_probability_is_told_in_words(probability, said):
    assert once_in(probability) == said


def test_a_replay_repeats_the_edge_and_the_usual_one_is_not_written():
    usual, own = Replay("it", "check", seed=3), Replay("it", "check", seed=3, edge=0.0)
    assert unpack_replay(pack_replay(own)) == own
    assert unpack_replay(pack_replay(usual)) == usual
    assert usual.edge == EDGE == 1e-9
    assert len(pack_replay(own)) > len(pack_replay(usual))


@pytest.mark.parametrize("edge", [-1e-9, 1, float("nan"), "often", True])
def test_an_edge_that_is_no_probability_is_refused_in_a_sentence(edge):
    with pytest.raises(ValueError, match=r"^edge is .*, expected a probability of at least 0 and below 1$"):
        check_verifier(lambda p, q, draft_tokens: [0], edge=edge)


def test_the_command_line_refuses_it_too():
    done = CliRunner().invoke(app, ["verify", "reference:speculative-sampling", "--edge", "1"])
    assert done.exit_code == 2
    assert "edge is 1" in done.output
