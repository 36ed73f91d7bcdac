"""The results of ``specverify stats`` as text: a line for each result, the final table, JSON and CSV.

A setting is a subject with its options and models, which is sampled. In all functions of this module the parameter
``row`` is one result: a setting tested against one law.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from specverify import __version__
from specverify.checks.samples_fit_law import FitRow
from specverify.report.data import finite
from specverify.statistics import AlarmBudget


def row_line(row: FitRow) -> str:
    """Return one line of text about ``row``, the result of one sampled subject."""
    return (
        f"{row.subject}  {row.setting}  {row.against}  {row.method}  n={row.samples}  p={row.p_value:.2g}  "
        f"TV {row.tv_observed:.4f}, {row.tv_detectable:.4f} detectable  {_verdict(row)}"
    )


def statistics_table(rows: Sequence[FitRow], seed: int) -> Table:
    """Return the table that ``specverify stats`` prints: one line for each result in ``rows``, and ``seed`` below."""
    table = Table(caption=f"seed {seed}", caption_justify="left", box=None, header_style="bold", padding=(0, 1))
    for column in ("subject", "setting", "law", "drawn"):
        table.add_column(column, overflow="fold", no_wrap=column in {"law", "drawn"})
    for column in ("n", "cells", "pooled", "statistic", "p-value", "TV seen", "TV detectable"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        *figures, verdict = cells(row)
        table.add_row(*map(Text, figures), Text(verdict, style="green" if row.as_expected else "bold red"))
    return table


def cells(row: FitRow) -> tuple[str, ...]:
    """Return the texts of the table cells for ``row``, the result of one sampled subject."""
    return (
        row.subject,
        row.setting.strip(),
        row.against,
        row.method,
        str(row.samples),
        str(row.cells),
        str(row.pooled),
        f"{row.statistic:.1f}",
        f"{row.p_value:.2g}",
        f"{row.tv_observed:.4f}",
        f"{row.tv_detectable:.4f}",
        _verdict(row),
    )


def statistics_data(rows: Sequence[FitRow], budget: AlarmBudget, seed: int, complete: bool) -> dict[str, Any]:
    """Return the results ``rows`` as JSON data.

    ``budget`` is the alarm budget of the run, and ``seed`` its seed. ``complete`` states whether the results include
    every planned setting.
    """
    return {
        "specverify": __version__,
        "alarm": budget.total,
        "tests": budget.parts,
        "seed": seed,
        "complete": complete,
        "rows": [finite(row._asdict()) for row in rows],
    }


def statistics_csv(rows: Sequence[FitRow]) -> str:
    """Return the results ``rows`` as comma-separated values: a line with the names of the fields, a line for each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FitRow._fields)
    writer.writerows(rows)
    return text.getvalue()


def _verdict(row: FitRow) -> str:
    confirmed = f" (again on {row.confirmed_on})" if row.confirmed_on else ""
    return row.verdict + (" as it must" if row.verdict == "refuted" and row.as_expected else "") + confirmed
