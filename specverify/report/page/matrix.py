"""The kill matrix as an HTML table: one row per planted bug, one column per check."""

from __future__ import annotations

from itertools import groupby

from specverify.report.page.markup import Content, Markup, element, joined, scrolling, with_spoken_text
from specverify.report.runs.said import Matrix, MatrixRow

KILLED = "killed"
SIGNS = {KILLED: "✘", "holds": "·", "declared bias": "≈", "unknown": "?", "unusable": "!", "refused": "-"}
LEGEND = (
    "✘ killed, · holds, ≈ declared bias, ? unknown, ! unusable, - refused; empty where the check does not apply. "
    "Framed: the check that must kill it."
)


def matrix(found: Matrix) -> Markup:
    """Return the kill matrix ``found`` as an HTML table; the cell of the check that must kill a bug is framed."""
    heads = [element("th", word, scope="col") for word in ("planted bug", "class")]
    heads += [_turned(check) for check in found.checks]
    bodies = [
        element("tbody", *(_row(row, found.checks) for row in rows))
        for _, rows in groupby(found.rows, key=lambda row: row.category)
    ]
    caption, head = element("caption", "Checks that kill planted bugs"), element("thead", element("tr", *heads))
    whole = element("table", caption, head, *bodies, class_="matrix")
    return joined((element("p", LEGEND), scrolling("Checks and planted bugs", whole)))


def _turned(check: str) -> Markup:
    return element("th", element("span", check.replace("_", " ")), scope="col", class_="turned")


def _row(row: MatrixRow, checks: tuple[str, ...]) -> Markup:
    told = element("p", row.summary), element("p", row.citation, class_="quiet")
    about = element("details", element("summary", row.name), *told)
    mark: list[Content] = [] if row.as_expected else [" ", element("strong", "survives")]
    cells = [_cell(row, check) for check in checks]
    return element("tr", element("th", about, *mark, scope="row"), element("td", row.category), *cells)


def _cell(row: MatrixRow, check: str) -> Markup:
    said = row.said.get(check, "")
    sign = SIGNS.get(said, "")
    named = "named" if check == row.named else None
    sort = " ".join(filter(None, (named, KILLED if said == KILLED else None))) or None
    return element("td", *([with_spoken_text(sign, said)] if sign else []), class_=sort)
