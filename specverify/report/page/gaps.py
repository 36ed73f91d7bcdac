"""The panel of near-ties: greedy texts with and without speculation that differ at two nearly equal logits.

For each first difference between two texts it shows two gaps on a logarithmic scale. One is how far the less probable
of the two tokens is below the largest logit; the other is the largest gap that rounding explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from specverify.laws.near_ties import Parting, named
from specverify.report.page.markup import Content, Markup, element, joined, scrolling, table
from specverify.report.runs.said import Partings

LONG, HIGH, EDGE = 240.0, 16.0, 8.0
"""Size of a picture, and the margin at either end."""
LEAST = 1e-12
"""Least value that is drawn; smaller gaps and bounds are drawn at it."""
TIE, BUG = ("≈ near-tie", "unknown"), ("✘ bug", "refuted")
"""Label and colour class of a near-tie, and of a bug."""


def partings(found: Partings) -> Markup:
    """Return the panel ``found`` as a table, with one row for each first difference between two greedy texts."""
    ends = _ends(found.rows)
    signs = (("band", "▬", "rounding"), ("seen", "●", "gap"))
    key = joined(
        element("span", element("span", sign, class_=f"key-{sort}", aria_hidden="true"), f" {word}")
        for sort, sign, word in signs
    )
    heads: list[Content] = [
        "setting",
        "verdict",
        "gap",
        "rounding explains",
        key,
        "new token",
        "alone",
        "speculation",
    ]
    rows: list[Sequence[Content]] = [_row(row, ends) for row in found.rows]
    return scrolling(found.title, table(found.title, heads, rows, class_="levels"))


def _row(row: Parting, ends: tuple[float, float]) -> Sequence[Content]:
    word, colour = TIE if row.near_tie else BUG
    return (
        row.setting,
        element("strong", word, class_=colour),
        _number(row.gap),
        _number(row.bound),
        _picture(row, ends),
        str(row.position),
        named(row.plain),
        named(row.speculative),
    )


def _number(value: float) -> str:
    return "without bound" if math.isinf(value) else f"{value:.3g}"


def _ends(rows: Sequence[Parting]) -> tuple[float, float]:
    """Return the ends, as log10, of the logarithmic scale on which the gaps of all ``rows`` are drawn.

    A row is a first difference between two greedy texts; its gap is that between the logits of the two tokens.
    """
    finite = [math.log10(max(value, LEAST)) for row in rows for value in (row.gap, row.bound) if math.isfinite(value)]
    return min(finite, default=0.0) - 1, max(finite, default=0.0) + 1


def _picture(row: Parting, ends: tuple[float, float]) -> Markup:
    """Return the picture of one row: the gap between two logits as a point, the largest gap from rounding as a band.

    ``ends`` are the ends of the logarithmic scale, as log10. An infinite gap is drawn as an arrow.
    """
    low, high = ends

    def place(value: float) -> float:
        return EDGE + (LONG - 2 * EDGE) * (math.log10(max(value, LEAST)) - low) / (high - low)

    parts = [element("line", x1=EDGE, x2=LONG - EDGE, y1=HIGH / 2, y2=HIGH / 2, class_="axis")]
    if row.bound > 0:
        width = f"{place(row.bound) - EDGE:.1f}"
        parts.append(element("rect", x=EDGE, y=4, width=width, height=8, class_="band"))
    if math.isinf(row.gap):
        right = LONG - 1
        parts.append(element("path", d=f"M{right - 9:g} 2 L{right:g} 8 L{right - 9:g} 14 Z", class_="seen"))
    else:
        parts.append(element("circle", cx=f"{place(row.gap):.1f}", cy=HIGH / 2, r=4.5, class_="seen"))
    return element("svg", *parts, width=LONG, height=HIGH, viewBox=f"0 0 {LONG:g} {HIGH:g}", aria_hidden="true")
