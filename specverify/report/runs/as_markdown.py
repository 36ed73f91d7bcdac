"""Results of a run as Markdown, short enough for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from specverify.base.verdict import Verdict
from specverify.report.prose import SYMBOLS, in_full
from specverify.report.runs.said import BY_CLAIM, FAILED, OPEN, SETTLED, RunSaid, by_claim, counted

MOST_TOLD = 20
"""The number of failures that are reported in full."""


def run_as_markdown(run: RunSaid) -> str:
    """Return the Markdown text of a run."""
    counts = [f"{SYMBOLS[word]} {number} {word}" for word, number in counted(run.verdicts).items()]
    lines = [f"## specverify: {', '.join(counts) or 'nothing was examined'}", ""]
    lines += [f"**{plain(sentence)}**\n" for sentence in run.unfinished]
    lines += [f"| {' | '.join(BY_CLAIM)} |", "|---|---:|---:|---:|"]
    for claim, numbers in by_claim(run.verdicts).items():
        lines.append(f"| {plain(claim)} | {' | '.join(map(str, numbers))} |")
    lines += [*_failures(run), *_undecided(run), *_edges(run), "", *_small(run)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return ``text`` on one line with Markdown's special characters escaped."""
    one_line = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]|#~@!])", r"\\\1", escape(one_line, quote=False))


def fenced(text: str) -> str:
    """Return ``text`` as a block of code, with fences that are longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _failures(run: RunSaid) -> Iterator[str]:
    result = [verdict for verdict in run.verdicts if verdict.status in FAILED]
    for verdict in result[:MOST_TOLD]:
        yield f"\n### {SYMBOLS[verdict.status]} {plain(verdict.subject)}: {plain(verdict.check.replace('_', ' '))}\n"
        yield fenced(in_full(verdict))
    if len(result) > MOST_TOLD:
        yield f"\nand {len(result) - MOST_TOLD} failures more."


def _undecided(run: RunSaid) -> Iterator[str]:
    result = [verdict for verdict in run.verdicts if verdict.status in OPEN]
    if result:
        yield f"\n<details><summary>{len(result)} not decided</summary>\n"
        yield from (_line(verdict) for verdict in result)
        yield "\n</details>"


def _edges(run: RunSaid) -> Iterator[str]:
    result = [verdict for verdict in run.verdicts if verdict.status in SETTLED and verdict.figures.get("edges")]
    if result:
        yield f"\n<details><summary>{len(result)} beside an edge</summary>\n"
        yield from (_line(verdict) for verdict in result)
        yield "\n</details>"


def _line(verdict: Verdict) -> str:
    return f"* {plain(verdict.subject)}, {plain(verdict.check.replace('_', ' '))}: {plain(verdict.statement)}"


def _small(run: RunSaid) -> Iterator[str]:
    facts = "; ".join(f"{name} {value}" for name, value in (*run.facts.items(), *sorted(run.versions.items())))
    yield f"<sub>{plain(facts)}</sub>"
    if run.command:
        yield f"\n{fenced(run.command)}"
