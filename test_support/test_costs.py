"""A plugin of pytest that writes what each test takes: CPU seconds, and the memory of its process.

    TEST_COSTS=FILE pytest -p test_support.test_costs ...

FILE gets a line of JSON a test: its name, the CPU seconds of it and of processes that it started and awaited, the
megabytes that its process held afterwards, and those by which the test raised the most that its process ever held. The
first is the CPU time of setup, call and teardown together; a fixture that several tests share counts for the first.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_FILE = os.environ.get("TEST_COSTS", "")
_PAGE = resource.getpagesize()


class TestCost(NamedTuple):
    """What one test took."""

    __test__ = False

    name: str
    seconds: float
    """CPU seconds, those of child processes included."""
    held: float
    """Megabytes of its process after it."""
    raised: float
    """By how many megabytes it raised the peak of its process."""


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _held() -> float:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE / 2**20


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write the line of a test to the file of costs."""
    seconds, peak = _cpu_seconds(), _peak()
    try:
        return (yield)
    finally:
        if _FILE:
            cost = TestCost(item.nodeid, _cpu_seconds() - seconds, _held(), _peak() - peak)
            with Path(_FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps(cost) + "\n")


def read_costs(file: Path) -> list[TestCost]:
    """Return the costs in a file, the most expensive test first."""
    costs = [TestCost(*json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    return sorted(costs, key=lambda cost: (-cost.seconds, cost.name))
