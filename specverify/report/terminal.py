"""Verdicts printed on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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

NARROW = 40
"""Fewest columns for the statements beside the names of the checks; if there are fewer, each stands below its check."""

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

    Checks that do not apply are printed only if ``every`` is set. There is one line for all checks if none could
    examine the subject, for the same reason.
    """
    console.print(f"\n[bold]{escape(name)}[/bold]   {escape(summary)}", highlight=False)
    lines = _lines([item for item in verdicts if every or item.status is not Status.NOT_APPLICABLE])
    named = max((len(line.status) + len(line.check) for line in lines), default=0)
    if console.width - named - 4 < NARROW:
        for line in lines:
            console.print(Text.assemble(line.status, "  ", line.check), soft_wrap=True)
            say(console, f"    {', '.join(filter(None, line.said))}")
            for note in line.notes:
                say(console, f"    {note}", "dim")
        return
    wide = console.width >= WIDE
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for whole in (True, True, False, False)[: 4 if wide else 3]:
        table.add_column(no_wrap=whole, overflow="fold")
    for line in lines:
        parts = line.said if wide else (", ".join(filter(None, line.said)),)
        table.add_row(line.status, line.check, *map(escape, parts))
        for note in line.notes:
            table.add_row(*[""] * (len(parts) + 1), Text(note, style="dim"))
    console.print(table)


class _Line(NamedTuple):
    status: Text
    check: str
    said: tuple[str, str]
    """Evidence and cases of what holds; "" and the statement of any other verdict."""
    notes: tuple[str, ...]
    """Sentences for lines of their own below."""


def _lines(verdicts: Sequence[Verdict]) -> Sequence[_Line]:
    """Return a line for each of ``verdicts``, or one for all if all are unusable for the same reason."""
    lines = [_line(verdict) for verdict in verdicts]
    reasons = {(verdict.status, first_sentence(verdict)) for verdict in verdicts}
    if (
        len(lines) > 1 == len(reasons)
        and verdicts[0].status is Status.UNUSABLE
        and not any(line.notes for line in lines)
    ):
        return [lines[0]._replace(check=f"all {len(lines)} checks")]
    return lines


def _line(verdict: Verdict) -> _Line:
    holds = verdict.status in (Status.HOLDS, Status.DECLARED_BIAS)
    word = word_of(verdict)
    status = Text(f"  {SYMBOLS[word]} {word}", style=STYLES[word])
    said = (strength(verdict), scope(verdict)) if holds else ("", first_sentence(verdict))
    activity, edges = (verdict.figures.get(name, ()) if holds else () for name in ("activity", "edges"))
    return _Line(status, verdict.check, said, (*activity, *edge_lines(edges), *verdict.figures.get("notes", ())))


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
