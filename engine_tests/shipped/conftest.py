"""The tables of what was found are written where ``--write`` says, however many processes found it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.pages import released_page

BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
HEAD = "| what | lines | holds | refuted | unknown | seconds |\n|---|---:|---|---|---|---:|\n"
ROWS: dict[int, str] = {}
RELEASED: dict[int, tuple[str, str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write", metavar="FILE", help="write the table of verdicts and seconds into this page")
    parser.addoption("--write-released", metavar="FILE", help="write what was found of papers' releases into this page")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    ROWS.update(dict(value for name, value in report.user_properties if name == "row"))
    RELEASED.update({value[0]: value[1:] for name, value in report.user_properties if name == "released"})


def pytest_sessionfinish(session: pytest.Session) -> None:
    name = session.config.getoption("--write")
    if name and ROWS and not hasattr(session.config, "workerinput"):
        page = Path(name)
        before, rest = page.read_text("utf-8").split(BEGIN)
        table = "".join(f"{ROWS[place]}\n" for place in sorted(ROWS))
        page.write_text(before + BEGIN + HEAD + table + END + rest.partition(END)[2], "utf-8")
    page = session.config.getoption("--write-released")
    if page and RELEASED and not hasattr(session.config, "workerinput"):
        rows, details = ({place: told[which] for place, told in RELEASED.items()} for which in (0, 1))
        released_page.write(Path(page), rows, details)
