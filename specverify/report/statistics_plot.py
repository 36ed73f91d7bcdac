"""The statistics run as a figure: observed and detectable total variations, and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specverify.checks.samples_fit_law import FitRow

LEAST_TV = 1e-6
"""A total variation of 0 is drawn at this value."""


def check_format(file: Path) -> None:
    """Raise ``ValueError`` unless a figure can be written in the format of the suffix of ``file``.

    Raises ``ImportError`` without matplotlib.
    """
    known = sorted(_figure((1, 1)).canvas.get_supported_filetypes())
    if file.suffix[1:].lower() not in known:
        raise ValueError(f"the file of --plot is {str(file)!r}, expected one of the suffixes {', '.join(known)}")


def _figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, needed here alone
    except ImportError as error:
        raise ImportError('a picture needs matplotlib: pip install "specverify-suite[plot]"') from error
    return Figure(figsize=size, layout="constrained")


def write_plot(rows: Sequence[FitRow], file: Path) -> None:
    """Write the figure of the results ``rows`` to ``file``, whose suffix selects the format.

    Left: observed and detectable total variation of each result. Right: sorted p-values, which lie near the diagonal if
    the samples have the expected laws. Raises ``ImportError`` without matplotlib, ``ValueError`` for an unknown suffix.
    """
    figure = _figure((14, max(4.0, 1.5 + 0.16 * len(rows))))
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    places = range(len(rows))
    kinds = (
        ("o", "seen, fits", lambda row: row.as_expected and row.verdict == "fits"),
        ("s", "seen, refuted as it must", lambda row: row.as_expected and row.verdict != "fits"),
        ("rx", "seen, not as it must be", lambda row: not row.as_expected),
    )
    for marker, label, chosen in kinds:
        some = [place for place in places if chosen(rows[place])]
        left.plot([max(rows[place].tv_observed, LEAST_TV) for place in some], some, marker, ms=3, label=label)
    left.plot([row.tv_detectable for row in rows], places, "|", ms=6, color="black", label="detectable")
    left.set_yticks(list(places), [f"{row.subject} {row.against}, {row.method}" for row in rows], fontsize=6)
    left.set(xscale="log", xlabel="total variation", ylim=(len(rows) - 0.5, -0.5))
    left.legend(loc="lower left", fontsize=7)
    p_values = sorted(row.p_value for row in rows if row.verdict == "fits" and row.cells > 1)
    ranks = [(place + 0.5) / len(p_values) for place in range(len(p_values))]
    right.plot(ranks, p_values, "o", ms=3)
    right.plot([0, 1], [0, 1], color="black", lw=0.8)
    right.set(xlabel="uniform", ylabel="p-values of the rows that fit, sorted", aspect="equal")
    figure.savefig(file)
