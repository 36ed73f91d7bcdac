"""Verdicts on wide and narrow terminals, with notes."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from specverify.base.edges import edge_lines, edge_of
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.report.terminal import print_subject, print_summary

NOTE = edge_of("it raises ValueError", "random at it.py:3 gives 0.0", 2.0**-53)

WRONG = Verdict("it", "law_is_target", Status.REFUTED, "TV = 1/2", "lossless", Evidence.EXACT)

EDGE_ONE = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "once", "supported", Evidence.EXACT)

EDGE_ONE = EDGE_ONE._replace(figures={"edge": 2.0**-24})

NOTED = EDGE_ONE._replace(status=Status.HOLDS, statement="; ".join(edge_lines([NOTE])), figures={"edges": [NOTE]})

HOLDS = WRONG._replace(status=Status.HOLDS, check="greedy_is_argmax", statement="fine")


def test_the_terminal_shows_the_note_and_counts_it():
    console = Console(file=StringIO(), width=200)
    print_subject(console, "it", "a verifier", [HOLDS, NOTED, EDGE_ONE], every=False)
    print_summary(console, [HOLDS, NOTED, EDGE_ONE], 1e-6, 0, 0)
    said = console.file.getvalue()
    assert "edge: it raises ValueError, when random at it.py:3 gives 0.0: at most once in 9e15 drafts" in said
    assert "refuted at an edge" in said
    assert "2 holds, 1 refuted at an edge; 1 beside an edge" in said


def shown(verdicts, width):
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    print_subject(console, "it", "a verifier", verdicts, every=False)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 30, 50, 80, 130])
def test_a_narrow_terminal_cuts_no_word(width):
    statement = f"it returned {'long_name_' * 12}, expected the new tokens as a sequence of integers"
    unusable = HOLDS._replace(status=Status.UNUSABLE, statement=statement)
    said = shown([WRONG, unusable, NOTED], width)
    assert "…" not in said
    plain = "".join(said.split())
    assert all("".join(word) in plain for word in ("TV=1/2", "greedy_is_argmax"))
    assert plain.count("long_name_") > 6


def test_a_statement_stands_below_its_check_if_there_is_no_room_beside():
    assert "\n  ✘ refuted  law_is_target\n    TV = 1/2\n" in shown([WRONG, NOTED], 40)


def test_one_reason_why_nothing_was_examined_stands_once():
    unusable = [item._replace(status=Status.UNUSABLE, statement="it exits (a.py:2)") for item in (WRONG, HOLDS)]
    said = shown(unusable, 200)
    assert said.count("it exits (a.py:2)") == 1
    assert "all 2 checks" in said
    assert shown([*unusable, EDGE_ONE], 200).count("it exits (a.py:2)") == 2
