"""Verdicts on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from specverify.base.verdict import Status, Verdict
from specverify.report.prose import SYMBOLS, failure, scope, strength

STYLES = {
    Status.HOLDS: "green",
    Status.DECLARED_BIAS: "cyan",
    Status.REFUTED: "bold red",
    Status.UNKNOWN: "yellow",
    Status.UNUSABLE: "bold red",
    Status.REFUSED: "dim",
    Status.NOT_APPLICABLE: "dim",
}


def print_subject(console: Console, name: str, summary: str, verdicts: Sequence[Verdict], every: bool) -> None:
    """Print one line per verdict; those that do not apply only when ``every`` is set."""
    console.print(f"\n[bold]{escape(name)}[/bold]   {escape(summary)}", highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for verdict in verdicts:
        if verdict.status is Status.NOT_APPLICABLE and not every:
            continue
        told = verdict.status in (Status.HOLDS, Status.DECLARED_BIAS)
        table.add_row(
            Text(f"  {SYMBOLS[verdict.status]} {verdict.status}", style=STYLES[verdict.status]),
            verdict.check,
            escape(strength(verdict)) if told else "",
            escape(scope(verdict) if told else verdict.statement),
        )
        for line in verdict.figures.get("activity", ()) if told else ():
            table.add_row("", "", "", Text(line, style="dim"))
        for note in verdict.figures.get("notes", ()):
            table.add_row("", "", "", Text(note, style="dim"))
    console.print(table)


def print_failures(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print every refutation with its counterexample."""
    refuted = [verdict for verdict in verdicts if verdict.status is Status.REFUTED]
    for number, verdict in enumerate(refuted, start=1):
        console.print(f"\n[bold red]{number}. {escape(verdict.subject)}[/bold red]", highlight=False)
        console.print(Text(failure(verdict, verdicts)), soft_wrap=True)


def print_summary(console: Console, verdicts: Sequence[Verdict], alarm: float, tests: int, seed: int) -> None:
    """Print the counts, and what the statistics of this run were allowed to get wrong."""
    counts = [
        f"{sum(verdict.status is status for verdict in verdicts)} {status}"
        for status in Status
        if any(verdict.status is status for verdict in verdicts) and status is not Status.NOT_APPLICABLE
    ]
    console.print(f"\n{', '.join(counts) or 'nothing was examined'}", highlight=False)
    if tests:
        console.print(
            f"false alarms: at most {alarm:g} in this run, over {tests} planned tests; seed {seed}", highlight=False
        )
