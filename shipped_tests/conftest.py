"""The table of what was found is written where ``--write`` says."""

from __future__ import annotations

from pathlib import Path

import pytest

FOUND: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write", metavar="FILE", help="write the table of verdicts and seconds into this page")


@pytest.fixture
def found() -> list[str]:
    """Rows of the table."""
    return FOUND


def pytest_sessionfinish(session: pytest.Session) -> None:
    name = session.config.getoption("--write")
    if not name or not FOUND:
        return
    page = Path(name)
    before, begin, rest = page.read_text("utf-8").partition("<!-- table -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    head = "| what | adapter | holds | refuted | unknown or unusable | seconds |\n|---|---:|---|---|---|---:|\n"
    page.write_text(before + begin + head + "".join(row + "\n" for row in FOUND) + end + after, "utf-8")
