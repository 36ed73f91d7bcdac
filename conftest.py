"""What the default run leaves to ``nox -s thorough``: what is marked so, whole or but for one in ``keep`` of its cases.

``@pytest.mark.thorough`` leaves a test out, ``@pytest.mark.thorough(keep=3)`` runs the first of every three cases. With
``--thorough`` everything is run; ``docs/thorough.md`` lists what that adds.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import count

import pytest

collect_ignore = ["examples/project"]
"""It fails, as its page shows: ``property_tests/pages/test_pytest_page.py`` runs it."""
gc.set_threshold(100_000, 20, 100)
"""Half a million objects live to the end of a run: to look through them as often as usual takes a tenth of it."""
BETWEEN_FREEZES = 8
"""Modules of tests between two times that the results that remain are kept out of searches."""
_MODULES = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--thorough", action="store_true", help="also run what is marked thorough")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what is there when the tests are collected out of searches for generators and of collections of garbage.

    Each check searches everything that is alive, and most of that is the tests themselves. The thorough run keeps
    nothing out, so that every test is also run as a program of a user is.
    """
    if not session.config.getoption("--thorough"):
        from specverify.intercept.cpython.frozen import keep_out  # noqa: PLC0415 - tests have imported it by now

        keep_out()


@pytest.fixture(scope="module", autouse=True)
def _results_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget the laws that checks computed for a module of tests, and keep what remains out of later searches.

    Otherwise the searches of each check, and collections of garbage, visit the results of all tests before.
    """
    yield
    from specverify.checks.forgetting import forget_laws  # noqa: PLC0415 - most modules of tests have imported it
    from specverify.intercept.cpython.frozen import keep_out  # noqa: PLC0415 - likewise

    forget_laws()
    if not request.config.getoption("--thorough") and next(_MODULES) % BETWEEN_FREEZES == 0:
        keep_out()


@pytest.fixture(scope="module")
def modules_searched() -> Iterator[None]:
    """Have a check find the generators and names that modules of tests hold.

    Such modules come first in a run: what a search visits grows with each test.
    """
    from specverify.intercept.cpython.frozen import keep_out  # noqa: PLC0415 - not every run of tests needs it
    from specverify.intercept.cpython.sandbox import look_around  # noqa: PLC0415 - likewise

    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    look_around()
    yield
    if frozen:
        keep_out()


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """Build the commands of each command line once, not for each call of ``CliRunner.invoke``."""
    import typer.testing  # noqa: PLC0415 - processes that only collect need no command line

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))  # noqa: SLF001 - no public name
        yield


@pytest.fixture
def unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the cause of a refuted law out, for tests that read no more of a verdict than its status.

    The laws and their comparison stay as they are; the search for the cause can take many times as long.
    """
    from specverify.base.verdict import Counterexample  # noqa: PLC0415 - most modules of tests have imported it
    from specverify.checks import compared_laws  # noqa: PLC0415

    bare = Counterexample(let=(), then="", because=(), named=True, sure=True)
    for search in ("law_counterexample", "program_counterexample"):
        monkeypatch.setattr(compared_laws, search, lambda *_: bare)


@pytest.fixture
def named_checks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the replays of ``program_is_its_draws`` before the checks that a test names.

    For tests of a law or of a message whose program is plainly a function of its draws. A refuted case is still
    replayed, and a test that names this check still runs it.
    """
    from specverify.run import verify  # noqa: PLC0415 - most modules of tests have imported it

    monkeypatch.setattr(verify, "_grounded", lambda subject, checks: checks)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Deal the tests of ``--dist loadgroup`` to the processes by files."""
    if config.getoption("dist") != "loadgroup":
        return None
    from test_support.scheduling import FileScheduling  # noqa: PLC0415 - pytest-xdist may not be installed

    return FileScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what the default run leaves out; a test that is named by itself is run whatever its marks."""
    items.sort(key=lambda item: "modules_searched" not in getattr(item, "fixturenames", ()))
    if config.getoption("--thorough") or any("::" in argument for argument in config.args):
        return
    seen: Counter[str] = Counter()
    left_out = []
    for item in items:
        mark = item.get_closest_marker("thorough")
        if mark is not None:
            test = item.nodeid.partition("[")[0]
            keep = mark.kwargs.get("keep", 0)
            if not keep or seen[test] % keep:
                left_out.append(item)
            seen[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
