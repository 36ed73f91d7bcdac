"""Tree engines whose end token replaces rejected drafts after an accepted one, in the quick plan."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import Made, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

SIBLINGS, DEPTH = 3, 3


class Engine:
    """Tests the most probable drafts at each level.

    ``overlooks``: it does not see an end token that replaces rejected drafts after an accepted one.
    """

    def __init__(self, scenario, *, overlooks):
        """Take the models of a scenario."""
        self.scenario, self.overlooks, self.rng = scenario, overlooks, np.random.default_rng()

    def accepted(self, text, row):
        """Return the accepted draft after ``text``, or None; rejected drafts are removed from ``row``."""
        q = self.scenario.draft(text)
        for draft in np.argsort(-q, kind="stable")[:SIBLINGS].tolist():
            if q[draft] > 0 and row.sum() > 0:
                if self.rng.random() * row.sum() < row[draft]:
                    return draft
                row[draft] = 0
        return None

    def decode(self, prompt):
        """Return the new tokens after ``prompt``."""
        prompt, new = tuple(prompt), ()
        while (left := self.scenario.horizon - len(new)) > 0:
            out, replaced = (), False
            while len(out) < min(DEPTH, left - 1) and not replaced and self.scenario.eos not in out:
                row = self.scenario.target(prompt + new + out).copy()
                token = self.accepted(prompt + new + out, row)
                replaced = token is None
                out += (int(self.rng.choice(len(row), p=row / row.sum())) if token is None else token,)
            if self.scenario.eos not in out and not replaced:
                row = self.scenario.target(prompt + new + out)
                out += (int(self.rng.choice(len(row), p=row)),)
            new += out
            if self.scenario.eos in out and not (self.overlooks and replaced and len(out) > 1):
                return new
        return new


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("overlooks", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_an_end_that_replaces_drafts_after_an_accepted_one_is_seen(overlooks, status):
    def make(scenario):
        return Made(Engine(scenario, overlooks=overlooks).decode, stops=True)

    verdicts = check_engine(make, on_fail=None, quick=True)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS, status}
