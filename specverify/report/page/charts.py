"""Panels of the report: tables with a small picture in each line, and curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from specverify.report.page.gaps import partings
from specverify.report.page.markup import Content, Markup, element, joined, scrolling, table
from specverify.report.runs.said import EvidencePanel, Level, Levels, Panel, Partings

LONG, HIGH = 240.0, 16.0
"""Width and height of the picture in a line, in pixels."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640.0, 260.0, 64.0, 16.0, 14.0, 40.0
"""Size of a curve and its margins, in pixels."""
TICKS = 5
Place: TypeAlias = Callable[[float], float]


def panel(found: Panel, name: str) -> Markup:
    """Return ``found``, a panel of a report, as HTML: a heading, and a table with small pictures or a curve.

    ``name`` is the id of the HTML element, unique on the page.
    """
    if isinstance(found, Partings):
        body = partings(found)
    else:
        body = levels(found) if isinstance(found, Levels) else evidence(found, name)
    heading = element("h4", found.title, id=name)
    return element("div", heading, element("p", found.said), body, class_="panel")


def levels(found: Levels) -> Markup:
    """Return the HTML table of the panel ``found``; each line has numbers and a picture of them."""
    largest = max((max(_ends(row)) for row in found.rows), default=1.0) or 1.0
    banded = any(row.low is not None for row in found.rows)
    known = any(row.expected is not None for row in found.rows)
    names = [found.seen_as, *[found.expected_as] * known, *["band"] * banded]
    heads: list[Content] = [found.each, *names, _key(found, known, banded)]
    rows: list[Sequence[Content]] = [
        (
            row.label,
            _number(row.seen),
            *([_number(row.expected)] if known else []),
            *([_band(row)] if banded else []),
            _picture(row, largest),
        )
        for row in found.rows
    ]
    return scrolling(found.title, table(found.title, heads, rows, class_="levels"))


def _ends(row: Level) -> tuple[float, ...]:
    return tuple(value for value in (row.seen, row.expected, row.high) if value is not None)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _band(row: Level) -> Markup:
    text = f"{_number(row.low)} to {_number(row.high)}"
    return element("strong", f"{text} ✘ outside") if row.outside else joined((text,))


def _key(found: Levels, known: bool, banded: bool) -> Markup:
    """Return the legend of the pictures in the panel ``found``.

    ``known`` states whether expected values are shown, ``banded`` whether confidence bands are shown.
    """
    signs = [("band", "▬", "band")] * banded + [("seen", "●", found.seen_as)]
    signs += [("expected", "┃", found.expected_as)] * known
    return joined(
        element("span", element("span", sign, class_=f"key-{sort}", aria_hidden="true"), f" {word}")
        for sort, sign, word in signs
    )


def _picture(row: Level, largest: float) -> Markup:
    """Return the picture of ``row``, a line of a panel; ``largest`` is the value at the right end of the picture.

    The picture has no alternative text, because the line itself contains the numbers.
    """

    def place(value: float) -> float:
        return 4 + (LONG - 8) * value / largest

    parts = [element("line", x1=4, x2=LONG - 4, y1=HIGH / 2, y2=HIGH / 2, class_="axis")]
    if row.low is not None and row.high is not None:
        width = max(place(row.high) - place(row.low), 1.0)
        sort = "band outside" if row.outside else "band"
        parts.append(element("rect", x=f"{place(row.low):.1f}", y=4, width=f"{width:.1f}", height=8, class_=sort))
    if row.expected is not None:
        x = f"{place(row.expected):.1f}"
        parts.append(element("line", x1=x, x2=x, y1=0, y2=HIGH, class_="expected"))
    parts.append(element("circle", cx=f"{place(row.seen):.1f}", cy=HIGH / 2, r=4.5, class_="seen"))
    return element("svg", *parts, width=LONG, height=HIGH, viewBox=f"0 0 {LONG:g} {HIGH:g}", aria_hidden="true")


def evidence(found: EvidencePanel, name: str) -> Markup:
    """Return the panel ``found`` as HTML: a curve of the e-value over the number of samples, and a table of its points.

    ``name`` is the id of the curve's HTML element, unique on the page.
    """
    rows = [(str(samples), _power(value)) for samples, value in found.points]
    points = element(
        "details", element("summary", "The points of the curve"), table(found.title, ("samples", "e-value"), rows)
    )
    return joined((scrolling(found.title, _curve(found, name)), points))


def _power(value: float) -> str:
    return "without bound" if math.isinf(value) else f"10^{value:.2f}"


def _curve(found: EvidencePanel, name: str) -> Markup:
    values = [value for _, value in found.points if math.isfinite(value)]
    top, low = max([found.refuted_at, *values]) * 1.08, min([-0.5, *values])
    first, last = math.log(found.points[0][0]), math.log(found.points[-1][0] + 1)

    def across(samples: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(samples) - first) / (last - first)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (min(value, top) - low) / (top - low)

    line = " ".join(f"{across(samples):.1f},{up(value):.1f}" for samples, value in found.points)
    end = found.points[-1]
    said = f"{found.title}: {_power(end[1])} after {end[0]} samples, refuted at {_power(found.refuted_at)}"
    limit = up(found.refuted_at)
    return element(
        "svg",
        element("title", said, id=f"{name}-said"),
        *_down(low, top, up),
        *_along(found.points, across),
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{limit:.1f}", y2=f"{limit:.1f}", class_="limit"),
        element("text", "refuted above", x=LEFT + 6, y=f"{limit - 6:.1f}"),
        element("polyline", points=line, class_="course"),
        element("circle", cx=f"{across(end[0]):.1f}", cy=f"{up(end[1]):.1f}", r=4, class_="seen"),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        class_="curve",
        role="img",
        aria_labelledby=f"{name}-said",
    )


def _down(low: float, top: float, up: Place) -> list[Markup]:
    step = max(1, math.ceil((top - low) / TICKS))
    marks = []
    for value in range(math.ceil(low), math.floor(top) + 1):
        if value % step == 0:
            y = f"{up(value):.1f}"
            marks.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="axis"))
            marks.append(element("text", f"10^{value}", x=LEFT - 6, y=f"{up(value) + 4:.1f}", class_="end"))
    return marks


def _along(points: Sequence[tuple[int, float]], across: Place) -> list[Markup]:
    """Return the labels of the horizontal axis of a curve: some of the numbers of samples in ``points``.

    A point is (number of samples, value). ``across`` maps a number of samples to its horizontal position.
    """
    chosen = sorted({points[round(place * (len(points) - 1) / (TICKS - 1))][0] for place in range(TICKS)})
    marks = [
        element("text", f"{samples:,}", x=f"{across(samples):.1f}", y=HEIGHT - BOTTOM + 18, class_="middle")
        for samples in chosen
    ]
    return [*marks, element("text", "samples", x=WIDTH / 2, y=HEIGHT - 4, class_="middle")]
