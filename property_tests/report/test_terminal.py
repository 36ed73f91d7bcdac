"""The terminal shows and counts a note."""

from __future__ import annotations

from io import StringIO

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
    assert "edge: it raises ValueError, when random at it.py:3 gives 0.0: about once in 9e15 drafts" in said
    assert "refuted at an edge" in said
    assert "2 holds, 1 refuted at an edge; 1 beside an edge" in said
