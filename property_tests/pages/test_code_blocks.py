"""Every block of Python on the pages that are written by hand is executed, or a reason stands here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from specverify.checks import CHECKS
from specverify.promises import PROMISED
from tools.pages.starts import text_of, written

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/check-your-code.md", "docs/api/reference.md", "docs/checks.md", "docs/glossary.md")
DEFINED_ALONE = {
    "def test_my_rejection_sampler": "a right sampler takes tens of seconds: the page of shipped verifiers counts them",
    "def test_verify": "called in test_readme.py, with its message",
    "def make(scenario)": "MyEngine is the reader's; property_tests/subjects/test_made_engine.py makes engines so",
    "def test_my_server": "called in test_readme.py, with what it prints",
    "def one_round": "called in test_readme.py, with what it prints",
}
"""Blocks that are executed and whose functions are not called, by a line of theirs."""


def blocks():
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
            yield pytest.param(block, id=f"{page} {number}")


def stand_ins():
    """Return what the reader brings: two models, and an engine that is right."""
    half = np.array([0.5, 0.5])
    return {"target": lambda _: half, "draft": lambda _: half, "prompt": (0,)}


@pytest.mark.parametrize("block", tuple(blocks()))
def test_a_block_is_executed(block):
    scope = stand_ins()
    exec(compile(block, "<block>", "exec"), scope)
    if any(line in block for line in DEFINED_ALONE):
        return
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    engine = text_of("engine-author").replace("else drawn(p))", "else drawn([max(a - b, 0) for a, b in zip(p, q)]))")
    with written(engine):
        from engine import fast, plain

        scope["decode"] = lambda _, draft=None: fast() if draft else plain()
        for test in tests:
            test()


def test_every_reason_is_of_a_block():
    for line in DEFINED_ALONE:
        assert any(line in block.values[0] for block in blocks())


def test_the_page_of_checks_has_a_row_for_each():
    text = (ROOT / "docs" / "checks.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", text, flags=re.MULTILINE)
    promised = [(name, evidence.value) for name, evidence in PROMISED.items()]
    assert rows == [*((check.name, check.evidence.value) for check in CHECKS), *promised]
