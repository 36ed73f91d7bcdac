"""The plugin of pytest: a shared false-alarm probability, a shared time budget, known failures, and a summary.

    pytest --specverify-alarm 1e-3 --specverify-budget 300 --specverify-xfails xfails.txt

pytest finds the plugin by its entry point, so it is loaded in every test run. It imports other modules of specverify
only after a test has imported them, so a run without tests of specverify costs only this file. ``docs/pytest.md``
explains the options.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from specverify.base.verdict import Verdict
    from specverify.testing.plans import CheckOptions

PROPERTY = "specverify"
"""Under this name a report carries its verdicts, also from one process to another."""
TOLD = ("SpeculationRefuted", "SpeculationUndecided", "UnusableSubject")
"""Errors whose message is the whole report, without a traceback."""
MOST_LINES = 40
"""Subjects in the summary."""
spent = pytest.StashKey[float]()
shares = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of specverify to the command line of pytest."""
    group = parser.getgroup("specverify", "correctness of speculative decoding")
    group.addoption(
        "--specverify-alarm",
        type=_probability,
        metavar="P",
        help="probability that any right subject is refuted by a sample, shared among the tests that sample",
    )
    group.addoption(
        "--specverify-budget",
        type=_seconds,
        metavar="SECONDS",
        help="time of all tests with verdicts together; what is not reached in it is undecided, and fails",
    )
    group.addoption(
        "--specverify-xfails",
        metavar="FILE",
        help="ids of tests that are known to fail, one a line, each with '# why'; one that passes fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the file of known failures, so that an invalid file ends the run before any test."""
    _known_failures(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests ``items`` that are known failures as strict xfails; warn of known failures that match no test.

    This hook runs first, while ``items`` still has the tests that pytest deselects later.
    """
    known = _known_failures(config)
    if not known:
        return
    from specverify.testing.items import FAULTS  # noqa: PLC0415 - only where it is used

    for item in items:
        if item.nodeid in known:
            item.add_marker(pytest.mark.xfail(reason=known[item.nodeid], strict=True, raises=FAULTS))
    if getattr(config, "workerinput", {"workerid": "gw0"})["workerid"] == "gw0":
        _warn_of_unmatched(config, known, items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Divide the alarm, the false-alarm probability of the run, among the tests that sample."""
    alarm = session.config.getoption("--specverify-alarm")
    sampling = sum(check.statistical for check in map(_check_of, session.items) if check is not None)
    if alarm is not None and sampling:
        session.config.stash[shares] = alarm / sampling


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run the test ``item`` with its share of the alarm and the remaining time; attach its verdicts to its report."""
    __tracebackhide__ = True
    if "specverify.testing.judged" not in sys.modules:
        yield
        return
    from specverify.testing.judged import SpeculationUndecided, asked, heard, offered  # noqa: PLC0415 - it is imported

    result: list[Verdict] = []
    called: list[str] = []
    budget, before = item.config.getoption("--specverify-budget"), item.config.stash.get(spent, 0.0)
    if budget is not None and before >= budget and _check_of(item) is not None:
        raise SpeculationUndecided(f"not run: the {budget:g} s of --specverify-budget were over")
    more: CheckOptions = {} if budget is None else {"timeout": max(budget - before, 1e-3)}
    if shares in item.config.stash:
        more["alarm"] = item.config.stash[shares]
    tokens, started = (heard.set(result.append), offered.set(more)), time.perf_counter()
    asking = asked.set(called.append)
    try:
        yield
        if not called and _check_of(item) is not None:
            raise SpeculationUndecided("the test did not call its check, so nothing was examined")
    finally:
        heard.reset(tokens[0])
        offered.reset(tokens[1])
        asked.reset(asking)
        if result:
            item.config.stash[spent] = before + time.perf_counter() - started
            item.user_properties.append((PROPERTY, [_row(verdict) for verdict in result]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """For a failed test of one check of one subject, show only the message of the error, with the counterexample.

    The traceback would contain only the line of the test itself.
    """
    report = yield
    style = item.config.getoption("tbstyle")
    shown = style in {"auto", "long", "short"} and report.failed and _check_of(item) is not None
    if shown and call.excinfo is not None and call.excinfo.typename in TOLD:
        report.longrepr = call.excinfo.getrepr(style="value")
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print for each subject how many checks held and how many did not, and the total variation that samples detect."""
    rows = [
        row
        for reports in list(terminalreporter.stats.values())
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == PROPERTY
        for row in value
    ]
    if rows:
        terminalreporter.section("specverify")
        for line in summary_lines(rows):
            terminalreporter.write_line(line)


def summary_lines(rows: Sequence[tuple[str, str, str, float | None]]) -> list[str]:
    """Return the lines of the summary, one for each subject.

    ``rows`` are (subject, check, status, total variation that the samples detect). If there are many subjects, those
    with a check that did not hold come first; subjects beyond ``MOST_LINES`` are only counted.
    """
    subjects = list(dict.fromkeys(row[0] for row in rows))
    width = min(max(map(len, subjects)), 40)
    lines = []
    for subject in subjects:
        mine = [row for row in rows if row[0] == subject]
        counts = Counter(row[2].replace("holds", "held") for row in mine)
        said = ", ".join(f"{number} {status}" for status, number in counts.items())
        seen = [row[3] for row in mine if row[3] is not None]
        line = f"{subject:<{width}}  {said}{f'; samples detect a TV of {max(seen):.3g}' if seen else ''}"
        lines.append((set(counts) <= {"held", "held beside an edge"}, line))
    if len(lines) <= MOST_LINES:
        return [line for _, line in lines]
    shown = sorted(lines, key=lambda item: item[0])[:MOST_LINES]
    rest = len(lines) - len(shown)
    return [
        *(line for _, line in shown),
        f"and {rest} more subjects; {sum(held for held, _ in lines)} of all {len(lines)} held everything",
    ]


def _row(verdict: Verdict) -> tuple[str, str, str, float | None]:
    from specverify.base.verdict import word_of  # noqa: PLC0415 - there is a verdict, so it is imported

    figures = verdict.figures
    held = verdict.claim == "lossless" and verdict.status == "holds"
    seen = figures.get("tv_detectable", figures.get("tv_at_most")) if held else None
    word = "holds beside an edge" if verdict.status == "holds" and figures.get("edges") else word_of(verdict)
    return verdict.subject, verdict.check, word, None if seen is None else float(seen)


def _check_of(item: pytest.Item) -> Any:
    """Return the check that ``parametrize_with_checks`` gave to the test ``item``; None for any other test."""
    if "specverify.testing.items" not in sys.modules:
        return None
    from specverify.testing.items import CheckOfSubject  # noqa: PLC0415 - it is imported

    check = getattr(getattr(item, "callspec", None), "params", {}).get("check")
    return check if isinstance(check, CheckOfSubject) else None


def _known_failures(config: pytest.Config) -> dict[str, str]:
    """Return id of a test -> reason, from the file of ``--specverify-xfails``.

    Raises ``pytest.UsageError`` with one sentence for an invalid file.
    """
    given = config.getoption("--specverify-xfails")
    if given is None:
        return {}
    file = config.rootpath / given if (config.rootpath / given).exists() else Path(given)
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--specverify-xfails {given} cannot be read: {error}") from None
    known: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name, _, why = (part.strip() for part in line.partition(" # "))
        if not name or name.startswith("#"):
            continue
        if not why or name in known:
            wanted = "each id once" if name in known else "a reason after it: ID # why"
            raise pytest.UsageError(f"line {number} of {given} is {line.strip()!r}, expected {wanted}")
        known[name] = why
    return known


def _warn_of_unmatched(config: pytest.Config, known: Iterable[str], items: Sequence[pytest.Item]) -> None:
    """Warn of the ids in ``known`` that match no test of ``items``.

    An id is skipped if its file exists and was not collected in this run.
    """
    ids, files = {item.nodeid for item in items}, {item.nodeid.partition("::")[0] for item in items}
    for name in known:
        file = name.partition("::")[0]
        if name not in ids and (file in files or not (config.rootpath / file).exists()):
            given = config.getoption("--specverify-xfails")
            said = pytest.PytestWarning(f"{given} names {name}, which is no test")
            try:
                config.issue_config_time_warning(said, stacklevel=2)
            except pytest.PytestWarning:  # warnings are errors here
                raise pytest.UsageError(str(said)) from None


def _probability(text: str) -> float:
    return _number(text, "a probability strictly between 0 and 1", 1.0)


def _seconds(text: str) -> float:
    return _number(text, "a number of seconds above 0", 1e7)


def _number(text: str, expected: str, below: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < below:
        raise argparse.ArgumentTypeError(f"it is {text}, expected {expected}")
    return value
