"""Verdicts printed on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from specverify.base.edges import edge_lines
from specverify.base.verdict import AT_AN_EDGE, Status, Verdict, word_of
from specverify.report.prose import SYMBOLS, also_refuted, by_cause, failure, first_sentence, scope, strength
from specverify.report.runs.said import counted
from specverify.report.wrapping import say

WIDE = 120
"""Terminal width from which on evidence and cases have columns of their own."""

STYLES: Mapping[str, str] = {
    Status.HOLDS: "green",
    Status.DECLARED_BIAS: "cyan",
    Status.REFUTED: "bold red",
    AT_AN_EDGE: "magenta",
    Status.UNKNOWN: "yellow",
    Status.UNUSABLE: "bold red",
    Status.REFUSED: "dim",
    Status.NOT_APPLICABLE: "dim",
}


def print_subject(console: Console, name: str, summary: str, verdicts: Sequence[Verdict], every: bool) -> None:
    """Print on ``console`` the ``name`` and ``summary`` (one line) of a subject, and one line for each of its verdicts.

    Checks that do not apply are printed only if ``every`` is set.
    """
    console.print(f"\n[bold]{escape(name)}[/bold]   {escape(summary)}", highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for whole in (True, True, False, False)[: 4 if console.width >= WIDE else 3]:
        table.add_column(no_wrap=whole)
    for verdict in verdicts:
        if verdict.status is Status.NOT_APPLICABLE and not every:
            continue
        told = verdict.status in (Status.HOLDS, Status.DECLARED_BIAS)
        word = word_of(verdict)
        status = Text(f"  {SYMBOLS[word]} {word}", style=STYLES[word])
        said = (strength(verdict), scope(verdict)) if told else ("", first_sentence(verdict))
        parts = said if console.width >= WIDE else (", ".join(filter(None, said)),)
        table.add_row(status, verdict.check, *map(escape, parts))
        beside = [""] * (len(parts) + 1)
        activity, edges = (verdict.figures.get(name, ()) if told else () for name in ("activity", "edges"))
        for line in (*activity, *edge_lines(edges), *verdict.figures.get("notes", ())):
            table.add_row(*beside, Text(line, style="dim"))
    console.print(table)


def print_failures(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print on ``console`` every refutation among ``verdicts`` with its counterexample."""
    names = dict.fromkeys(verdict.subject for verdict in verdicts)
    groups = [group for name in names for group in by_cause([item for item in verdicts if item.subject == name])]
    for number, (verdict, *others) in enumerate(groups, start=1):
        console.print(f"\n[bold red]{number}. {escape(verdict.subject)}[/bold red]", highlight=False)
        say(console, failure(verdict))
        if others:
            say(console, also_refuted(others))


def print_summary(console: Console, verdicts: Sequence[Verdict], alarm: float, tests: int, seed: int) -> None:
    """Print on ``console`` how many ``verdicts`` have each status.

    ``tests`` is the number of planned statistical tests. If it is not 0, the false-alarm probability ``alarm`` and
    ``seed`` are printed too.
    """
    counts = ", ".join(f"{number} {word}" for word, number in counted(verdicts).items())
    noted = sum(verdict.status is not Status.REFUTED and bool(verdict.figures.get("edges")) for verdict in verdicts)
    beside = f"; {noted} beside an edge" if noted else ""
    console.print(f"\n{counts or 'nothing was examined'}{beside}", highlight=False)
    if tests:
        console.print(
            f"false alarms: at most {alarm:g} in this run, over {tests} planned tests; seed {seed}", highlight=False
        )
