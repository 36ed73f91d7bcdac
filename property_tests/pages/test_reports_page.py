"""The example of ``docs/reports.md`` is what the commands say."""

from __future__ import annotations

import re
from pathlib import Path

from specverify.checks import Conditions, checks_named
from specverify.report.data import as_data
from specverify.report.runs.as_markdown import run_as_markdown
from specverify.report.runs.of_verdicts import said_of_verdicts
from specverify.run.catalogue import find_subject
from specverify.run.verify import Checklist, verify_subject

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"


def example():
    checklist = Checklist(checks_named(["law_is_target"]), Conditions())
    found = list(verify_subject(find_subject("mutant:inverted-ratio"), checklist))
    data = as_data(found, 1e-6, 0)
    return run_as_markdown(said_of_verdicts({**data, "specverify": "0.1.0"}))


def test_the_example_is_current():
    text = PAGE.read_text("utf-8")
    shown = re.search(r"<!-- computed: example -->\n\n````markdown\n(.*?)````\n\n<!-- end -->", text, re.DOTALL)
    assert shown is not None
    assert shown[1] == example()
