"""Verdicts on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from specverify.base.verdict import Status, Verdict
from specverify.report.prose import SYMBOLS, also_refuted, by_cause, failure, first_sentence, scope, strength
from specverify.report.wrapping import say

WIDE = 120
"""Columns from which on evidence and cases stand beside each other."""

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
    for whole in (True, True, False, False)[: 4 if console.width >= WIDE else 3]:
        table.add_column(no_wrap=whole)
    for verdict in verdicts:
        if verdict.status is Status.NOT_APPLICABLE and not every:
            continue
        told = verdict.status in (Status.HOLDS, Status.DECLARED_BIAS)
        status = Text(f"  {SYMBOLS[verdict.status]} {verdict.status}", style=STYLES[verdict.status])
        said = (strength(verdict), scope(verdict)) if told else ("", first_sentence(verdict))
        parts = said if console.width >= WIDE else (", ".join(filter(None, said)),)
        table.add_row(status, verdict.check, *map(escape, parts))
        beside = [""] * (len(parts) + 1)
        for line in (*(verdict.figures.get("activity", ()) if told else ()), *verdict.figures.get("notes", ())):
            table.add_row(*beside, Text(line, style="dim"))
    console.print(table)


def print_failures(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print every refutation with its counterexample."""
    names = dict.fromkeys(verdict.subject for verdict in verdicts)
    groups = [group for name in names for group in by_cause([item for item in verdicts if item.subject == name])]
    for number, (verdict, *others) in enumerate(groups, start=1):
        console.print(f"\n[bold red]{number}. {escape(verdict.subject)}[/bold red]", highlight=False)
        say(console, failure(verdict, verdicts))
        if others:
            say(console, also_refuted(others))


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
