"""Engines with a processor of the last two new tokens: it applies to every draft, across the end of a round."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.deep_scenarios import SIX_TOKENS
from specverify.laws.engine_scenarios import SCENARIOS, SECOND_ROUND
from specverify.subjects.engine_making import Made
from test_support.subjects.engine_laws import law_verdict

pytestmark = pytest.mark.usefixtures("unexplained")

GAMMA = 2


class Engine:
    """Forbids token 0 after two new tokens 1, in p and q; ``fault`` states what is wrong with p.

    * "second": p of the second draft of a round is not processed.
    * "prompt": tokens of the prompt count as new tokens.
    * "residual": a rejected draft is replaced from the residual of the unprocessed p.
    """

    def __init__(self, scenario, fault):
        """Take the models of a scenario."""
        self.scenario, self.fault, self.rng = scenario, fault, np.random.default_rng()

    def row(self, model, prompt, new, fault=""):
        """Return the processed row of ``model`` after the new tokens of a request."""
        row, read = model(prompt + new), (prompt if fault == "prompt" else ()) + new
        if read[-2:] == (1, 1) and row[1:].any() and fault != "unprocessed":
            row = np.where(np.arange(len(row)), row, 0)
        return row / row.sum()

    def draw(self, row):
        """Return a token drawn from ``row``."""
        return int(self.rng.choice(len(row), p=row / row.sum()))

    def plain(self, prompt):
        """Decode without speculation."""
        new = ()
        while len(new) < self.scenario.horizon:
            new += (self.draw(self.row(self.scenario.target, tuple(prompt), new)),)
        return new

    def decode(self, prompt):
        """Decode with speculation."""
        prompt, new = tuple(prompt), ()
        while (left := self.scenario.horizon - len(new)) > 0:
            for place in range(min(GAMMA, left - 1)):
                q = self.row(self.scenario.draft, prompt, new)
                fault = "unprocessed" if (self.fault, place) == ("second", 1) else self.fault
                p, draft = self.row(self.scenario.target, prompt, new, fault), self.draw(q)
                if self.rng.random() * q[draft] >= p[draft]:
                    raw = self.row(self.scenario.target, prompt, new, "unprocessed")
                    rest = np.where(p > 0, np.maximum((raw if self.fault == "residual" else p) - q, 0), 0)
                    new += (self.draw(rest if rest.any() else p),)
                    break
                new += (draft,)
            else:
                new += (self.draw(self.row(self.scenario.target, prompt, new, self.fault)),)
        return new


def status_of(scenarios, fault):
    """Return the verdict on ``scenarios`` alone."""

    def make(scenario):
        engine = Engine(scenario, fault)
        return Made(engine.decode, engine.plain)

    return law_verdict(make, scenarios).status


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("fault", ["second", "prompt", "residual"])
def test_a_processor_of_two_tokens_is_applied_to_every_draft(fault):
    assert status_of([SECOND_ROUND], fault) is Status.REFUTED
    assert status_of({*SCENARIOS} - {SECOND_ROUND, SIX_TOKENS}, fault) is Status.HOLDS


def test_the_right_processor_holds():
    assert status_of([SECOND_ROUND], "") is Status.HOLDS
