"""A run as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from specverify.report.runs.as_junit import run_as_junit
from test_support.report import runs


def test_junit_counts_what_does_not_hold():
    root = ET.fromstring(run_as_junit(runs.run_of("verdicts")))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "9",
        "failures": "3",
        "errors": "1",
        "skipped": "2",
    }
    cases = {
        (case.get("classname")[:8], case.get("name")): [item.tag for item in case] for case in root.iter("testcase")
    }
    assert cases["<script>", "greedy_is_argmax"] == ["failure"]
    assert cases["<script>", "eos_is_final"] == ["error"]
    assert cases["referenc", "law_is_target"] == ["system-out"]
    assert "Again specverify replay eNabc_-" in next(root.iter("failure")).text
