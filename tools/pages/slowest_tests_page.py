"""Write ``docs/slowest-tests.md``: the fifty tests that take the most CPU time, with the memory of each.

    TEST_COSTS=costs.jsonl pytest -p test_support.test_costs ...
    python -m tools.pages.slowest_tests_page docs/slowest-tests.md costs.jsonl

The rows are kept in ``slowest_tests.json`` beside this module; without a file of costs the page is written from them.
``nox -s pages -- slowest-tests`` runs both commands.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from test_support.test_costs import TestCost, read_costs

NUMBER, ITERATIONS = 50, 10_000_000
DATA = Path(__file__).with_name("slowest_tests.json")
PAGE = """# The slowest tests

Written by `nox -s pages -- slowest-tests`. The {number} tests that take most CPU time, of {tests:,} that were measured.
CPU seconds include setup, teardown and child processes. A reference loop is {iterations:,} rounds of an empty loop of
CPython, {loop:.3f} s on that machine ({machine}). Memory is that of the test's process after the test, and by how much
the test raised the peak of the process: a test that runs first in its process also pays for its imports.

| test | CPU seconds | reference loops | MB held | MB raised |
|---|---:|---:|---:|---:|
{rows}

Together {together:.0f} s of the {total:.0f} s of all measured tests.
"""


class Measured(NamedTuple):
    """The costs of one run of the tests."""

    slowest: Sequence[TestCost]
    tests: int
    total: float
    """CPU seconds of all tests."""
    loop: float
    machine: str


def _reference_loop() -> float:
    def seconds() -> float:
        started = time.process_time()
        for _ in range(ITERATIONS):
            pass
        return time.process_time() - started

    return min(seconds() for _ in range(3))


def measured_run(costs: Sequence[TestCost]) -> Measured:
    """Return the summary of a test run, given the costs of its tests, the most expensive first."""
    machine = f"{platform.machine()}, CPython {platform.python_version()}"
    rounded = [cost._replace(**{name: round(getattr(cost, name), 2) for name in ("seconds", "held", "raised")})
               for cost in costs[:NUMBER]]  # fmt: skip
    total = round(sum(cost.seconds for cost in costs), 1)
    return Measured(rounded, len(costs), total, round(_reference_loop(), 4), machine)


def kept_run() -> Measured:
    """Return the test run that is stored in ``slowest_tests.json``."""
    kept: dict[str, Any] = json.loads(DATA.read_text("utf-8"))
    return Measured(**{**kept, "slowest": [TestCost(*cost) for cost in kept["slowest"]]})


def page(run: Measured) -> str:
    """Return the text of ``docs/slowest-tests.md`` for a test run."""
    rows = "\n".join(
        f"| `{cost.name.replace('|', '/')}` | {cost.seconds:.2f} | {cost.seconds / run.loop:.0f} | {cost.held:.0f} | "
        f"{cost.raised:.0f} |"
        for cost in run.slowest
    )
    return PAGE.format(
        number=len(run.slowest),
        tests=run.tests,
        iterations=ITERATIONS,
        loop=run.loop,
        machine=run.machine,
        rows=rows,
        together=sum(cost.seconds for cost in run.slowest),
        total=run.total,
    )


if __name__ == "__main__":
    target, *files = sys.argv[1:]
    if files:
        DATA.write_text(json.dumps(measured_run(read_costs(Path(files[0])))._asdict(), indent=0) + "\n", "utf-8")
    Path(target).write_text(page(kept_run()), "utf-8")
