"""Write the page of released code of papers from the verdicts on each; rows that were not run again stay."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from specverify.base.verdict import Status, Verdict
from specverify.report.prose import failure
from test_support.shipped.beside import Beside
from test_support.shipped.released import BOUNDARY, LAW, Found, Released, claimed, where

BEGIN, END = "<!-- rows -->\n", "<!-- end of rows -->\n"
HEAD = (
    "| | paper | row of `reference/` | released code | lines | seconds | holds | does not | law beside the rows |\n"
    "|---:|---|---|---|---:|---:|---|---|---|\n"
)
GOOD = {Status.HOLDS, Status.DECLARED_BIAS}
BECAUSE = 2
"""Ways to a wrong outcome that are shown."""


def row(number: int, released: Released, found: Found, seconds: float) -> str:
    """Return the table row of one released program."""
    holds = [verdict for verdict in found.verdicts if verdict.status in GOOD]
    wrong = [verdict for verdict in found.verdicts if verdict.status not in GOOD]
    cells = (
        str(number),
        f"{'control: ' * released.control}{released.paper}",
        claimed(released.row),
        f"{where(released.source)}: {released.what}",
        str(len(inspect.getsource(released.adapter).splitlines())),
        f"{seconds:.0f}",
        ", ".join(_word(verdict) for verdict in holds),
        ", ".join(f"{_word(verdict)}: {_said(verdict)}" for verdict in wrong),
        "; ".join(_beside(released, found)),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def detail(number: int, released: Released, found: Found) -> str:
    """Return the details of one released program for the text below the table; empty if the row says everything."""
    if not released.note and not _explained(released, found):
        return ""
    parts = [f"### {number}. {released.paper}: {released.what}\n"]
    parts += ["\n".join(wrap(released.note, 120, break_long_words=False, break_on_hyphens=False)) + "\n"] * bool(
        released.note
    )
    for verdict, beside in _explained(released, found):
        text = "\n".join(_shortened(failure(verdict), verdict, beside))
        parts.append(f"```\n{text}\n```\n")
    return "\n".join(parts)


def written(page: str, rows: Mapping[int, str], details: Mapping[int, str]) -> str:
    """Return the page with rows and details replaced by new ones of the same numbers."""
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    old_rows = {int(line.split("|")[1]): line for line in table.splitlines() if re.match(r"\| \d+ \|", line)}
    sections = [part for part in re.split(r"^(?=### \d+\. )", after, flags=re.MULTILINE) if part.startswith("### ")]
    old = {int(part.split(".")[0][4:]): part.rstrip() + "\n" for part in sections}
    lines = "".join(f"{line}\n" for _, line in sorted((old_rows | dict(rows)).items()))
    told = [text for _, text in sorted((old | dict(details)).items()) if text]
    return f"{before}{BEGIN}{HEAD}{lines}{END}\n" + "\n".join(told)


def write(path: Path, rows: Mapping[int, str], details: Mapping[int, str]) -> None:
    """Write new rows and details, by number, into the page at ``path``."""
    path.write_text(written(path.read_text("utf-8"), rows, details), "utf-8")


def _word(verdict: Verdict) -> str:
    return verdict.check.replace("_", " ")


def _said(verdict: Verdict) -> str:
    if verdict.status is Status.REFUTED:
        return f"refuted, TV {verdict.figures['tv']:.3g}" if verdict.figures.get("tv") else "refuted"
    return f"{verdict.status.value}, {verdict.statement}"


def _beside(released: Released, found: Found) -> list[str]:
    told = []
    law = next((verdict for verdict in found.verdicts if verdict.check == LAW), None)
    if law is not None:
        told.append(f"`{released.row}`, law of p: {_agreement(law)}")
    for beside, verdict in zip(released.beside, found.besides, strict=True):
        options = ", ".join(f"{name} {value}" for name, value in beside.options.items())
        told.append(f"`{beside.row}`{f' ({options})' if options else ''}: {_agreement(verdict)}")
    return told


def _agreement(verdict: Verdict) -> str:
    if verdict.status in GOOD:
        return f"agrees in {verdict.figures['cases']} cases"
    return f"differs, TV {verdict.figures['tv']:.3g}" if verdict.status is Status.REFUTED else _said(verdict)


def _explained(released: Released, found: Found) -> list[tuple[Verdict, Beside | None]]:
    told: list[tuple[Verdict, Beside | None]] = [(item, None) for item in found.verdicts if item.check != BOUNDARY]
    told += list(zip(found.besides, released.beside, strict=True))
    return [(verdict, beside) for verdict, beside in told if verdict.counterexample is not None]


def _shortened(text: str, verdict: Verdict, beside: Beside | None) -> list[str]:
    """Return a failure in a few lines, without its replay identifier, which is valid in this session only."""
    assert verdict.counterexample is not None
    shown = verdict.counterexample
    let, then, because = shown.let, shown.then, shown.because
    told = (then + ", because" * bool(because), *because[:BECAUSE])
    head = text.splitlines()[0] if beside is None else f"beside `{beside.row}`: {verdict.statement}"
    lines = [head, *_block("Let   ", let), *_block("Then  ", told)]
    return [line for long in lines for line in wrap(long, 118, subsequent_indent=" " * 10)]


def _block(word: str, lines: tuple[str, ...]) -> list[str]:
    return [f"  {word if place == 0 else ' ' * len(word)}{line}" for place, line in enumerate(lines)]
