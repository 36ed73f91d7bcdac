"""Engines that draft a tree: after a path that is not the first one is accepted, the cache must hold this path."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.deep_scenarios import RANKED
from specverify.laws.engine_scenarios import CERTAIN_SCENARIOS, SCENARIOS
from test_support.subjects.engine_laws import law_verdict

ONE_TOO_FEW = "the first entry of a moved path is overwritten"


class Engine:
    """Drafts the ``siblings`` most probable tokens of q, and one token after each; rejected siblings leave p.

    With the fault ``ONE_TOO_FEW``, an accepted path of two drafts that is not the first one is moved to the front of
    the cache in a wrong order, so the second entry overwrites the first. The first round is right.
    """

    def __init__(self, scenario, siblings, depth, fault):
        """Take the models of a scenario and the shape of the tree."""
        self.scenario, self.siblings, self.depth, self.fault = scenario, siblings, depth, fault
        self.rng = np.random.default_rng()

    def path(self, text, first, depth):
        """Return the draft ``first`` and the most probable drafts after it."""
        path = (first,)
        while len(path) < depth:
            path += (int(np.argmax(self.scenario.draft(text + path))),)
        return path

    def round(self, text, left):
        """Return (new tokens, index of the accepted path) of one round after ``text``."""
        p, depth = self.scenario.target(text).copy(), min(self.depth, left - 1)
        q = self.scenario.draft(text)
        ranked = [int(token) for token in np.argsort(-q, kind="stable")[: self.siblings] if depth and q[token] > 0]
        for number, first in enumerate(ranked):
            if self.rng.random() * p.sum() < p[first]:
                new = (first,)
                for draft in self.path(text, first, depth)[1:]:
                    row = self.scenario.target(text + new)
                    if self.rng.random() >= row[draft]:
                        row = np.where(np.arange(len(row)) == draft, 0, row)
                        return (*new, int(self.rng.choice(len(row), p=row / row.sum()))), number
                    new += (draft,)
                row = self.scenario.target(text + new)
                return (*new, int(self.rng.choice(len(row), p=row))), number
            p[first] = 0
        return (int(self.rng.choice(len(p), p=p / p.sum())),), 0

    def decode(self, prompt):
        """Return the new tokens after ``prompt``."""
        cache, new = tuple(prompt), ()
        while (left := self.scenario.horizon - len(new)) > 0:
            tokens, number = self.round(cache, left)
            moved = number and len(tokens) == 3 and new and self.fault
            cache += (tokens[1], *tokens[1:]) if moved else tokens
            new += tokens
        return new


def status_of(scenarios, siblings, depth, fault):
    """Return the verdict on ``scenarios`` alone."""
    return law_verdict(lambda scenario: Engine(scenario, siblings, depth, fault).decode, scenarios).status


@pytest.mark.parametrize(("siblings", "depth"), [(2, 2), (2, 3), (3, 3), (4, 5)])
def test_a_path_that_is_not_the_first_one_is_moved_right(siblings, depth):
    assert status_of(RANKED, siblings, depth, ONE_TOO_FEW) is Status.REFUTED
    assert status_of(RANKED, siblings, depth, "") is Status.HOLDS


@pytest.mark.thorough
def test_the_other_scenarios_do_not_show_it():
    assert status_of({*SCENARIOS, *CERTAIN_SCENARIOS} - {*RANKED}, 3, 3, ONE_TOO_FEW) is Status.HOLDS
