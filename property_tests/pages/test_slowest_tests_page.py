"""The page of the slowest tests is written from what the plugin measured."""

from __future__ import annotations

import json
import mmap
from types import SimpleNamespace

import pytest

from test_support import test_costs
from test_support.test_costs import TestCost, read_costs
from tools.pages.slowest_tests_page import NUMBER, Measured, page


def test_the_plugin_writes_a_line_for_a_test_also_where_it_fails(tmp_path, monkeypatch):
    file = tmp_path / "costs"
    monkeypatch.setattr(test_costs, "_FILE", str(file))
    for name in ("light", "heavy"):
        hook = test_costs.pytest_runtest_protocol(SimpleNamespace(nodeid=name))
        next(hook)
        if name == "heavy":
            held = mmap.mmap(-1, 64 * 2**20)  # memory that was never held, also where a heap has room
            held[::4096] = b"x" * len(held[::4096])
            sum(range(200_000))
            with pytest.raises(ZeroDivisionError):
                hook.throw(ZeroDivisionError())
        else:
            with pytest.raises(StopIteration):
                hook.send(None)
    held.close()
    first, second = read_costs(file)
    assert (first.name, second.name) == ("heavy", "light")
    assert first.seconds > second.seconds >= 0
    assert first.held > second.held + 50


def test_the_page_has_the_slowest_first_and_says_what_they_are_a_part_of(tmp_path):
    file = tmp_path / "costs"
    costs = [TestCost(f"test_{number}.py::test[a|b]", number / 2, 100.0 + number, 1.0) for number in range(60)]
    file.write_text("".join(json.dumps(cost) + "\n" for cost in costs), "utf-8")
    slowest = read_costs(file)[:NUMBER]
    text = page(Measured(slowest, 60, 885.0, 0.1, "a machine"))
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == NUMBER
    assert rows[0] == "| `test_59.py::test[a/b]` | 29.50 | 295 | 159 | 1 |"
    assert "of 60 that were measured" in text
    assert "Together 862 s of the 885 s" in text
