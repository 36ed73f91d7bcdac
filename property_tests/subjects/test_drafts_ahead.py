"""Engines whose drafts of a later round are wrong: made ahead after a guess of the bonus token, or drawn again."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.deep_scenarios import AFTER_A_BONUS
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject

pytestmark = pytest.mark.usefixtures("unexplained")


class Engine:
    """Drafts the next round ahead; after all drafts are accepted, these drafts are tested whatever the bonus is.

    ``again`` is whether their q is computed again with the bonus, although they were drawn after the guess.
    """

    def __init__(self, scenario, gamma, *, again):
        """Take the models of a scenario."""
        self.scenario, self.gamma, self.again, self.rng = scenario, gamma, again, np.random.default_rng()

    def drafted(self, text):
        """Return (drafts, their pmfs) after ``text``."""
        drafts, pmfs = (), []
        for _ in range(self.gamma):
            pmfs.append(self.scenario.draft(text + drafts))
            drafts += (int(self.rng.choice(len(pmfs[-1]), p=pmfs[-1])),)
        return drafts, pmfs

    def decode(self, prompt):
        """Return the new tokens after ``prompt``."""
        text, end, ahead = tuple(prompt), len(prompt) + self.scenario.horizon, None
        while (left := end - len(text)) > 0:
            drafts, pmfs = ahead or self.drafted(text)
            drafts, pmfs = drafts[: left - 1], pmfs[: left - 1]
            if self.again:
                pmfs = [self.scenario.draft(text + drafts[:place]) for place in range(len(drafts))]
            guess = int(np.argmax(self.scenario.draft(text + drafts)))
            ahead = self.drafted((*text, *drafts, guess))
            for place, (draft, q) in enumerate(zip(drafts, pmfs, strict=True)):
                p = self.scenario.target(text + drafts[:place])
                if q[draft] == 0 or self.rng.random() * q[draft] < p[draft]:
                    continue
                rest = np.maximum(p - q, 0)
                text, ahead = (*text, *drafts[:place], int(self.rng.choice(len(p), p=rest / rest.sum()))), None
                break
            else:
                p = self.scenario.target(text + drafts)
                text = (*text, *drafts, int(self.rng.choice(len(p), p=p)))
        return text[len(prompt) :]


class Redrafting:
    """Draws the drafts of a round again if ``is_late(round)`` and p of the first draft is below 0.1."""

    def __init__(self, scenario, gamma, is_late):
        """Take the models of a scenario."""
        self.scenario, self.gamma, self.is_late, self.rng = scenario, gamma, is_late, np.random.default_rng()

    def drafted(self, text, number):
        """Return (drafts, their pmfs) after ``text``."""
        drafts, pmfs = (), []
        for _ in range(number):
            pmfs.append(self.scenario.draft(text + drafts))
            drafts += (int(self.rng.choice(len(pmfs[-1]), p=pmfs[-1])),)
        return drafts, pmfs

    def decode(self, prompt):
        """Return the new tokens after ``prompt``."""
        text, end, number = tuple(prompt), len(prompt) + self.scenario.horizon, 0
        while (left := end - len(text)) > 0:
            number, wanted = number + 1, min(self.gamma, left - 1)
            drafts, pmfs = self.drafted(text, wanted)
            if drafts and self.is_late(number) and self.scenario.target(text)[drafts[0]] < 0.1:
                drafts, pmfs = self.drafted(text, wanted)
            for place, (draft, q) in enumerate(zip(drafts, pmfs, strict=True)):
                p = self.scenario.target(text + drafts[:place])
                if self.rng.random() * q[draft] >= p[draft]:
                    rest = np.maximum(p - q, 0)
                    text = (*text, *drafts[:place], int(self.rng.choice(len(p), p=rest / rest.sum())))
                    break
            else:
                p = self.scenario.target(text + drafts)
                text = (*text, *drafts, int(self.rng.choice(len(p), p=p)))
        return text[len(prompt) :]


def verdict_of(make):
    """Return the verdict on the scenarios with a random bonus token and a random draft after it."""
    subject = made_subject(lambda scenario: make(scenario).decode, "an engine")
    names = {scenario.name for scenario in AFTER_A_BONUS}
    programs = tuple(program for program in subject.programs if program.name in names)
    assert all(program.in_quick for program in programs)
    return run_check(subject.with_programs(programs), check_named("law_is_target"), Checklist(()))


@cache
def right_status(gamma):
    """Return the status of the engine that draws no drafts again."""
    return verdict_of(lambda scenario: Redrafting(scenario, gamma, lambda number: False)).status


@pytest.mark.parametrize("gamma", [3, 4, 5])
def test_q_of_drafts_made_ahead_must_be_the_one_they_were_drawn_from(gamma):
    assert verdict_of(lambda scenario: Engine(scenario, gamma, again=True)).status is Status.REFUTED
    assert verdict_of(lambda scenario: Engine(scenario, gamma, again=False)).status is Status.HOLDS


@pytest.mark.parametrize("gamma", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("is_late", [lambda number: number > 1, lambda number: number % 2 == 0], ids=["later", "even"])
def test_drafts_of_a_later_round_must_not_be_drawn_again(gamma, is_late):
    assert verdict_of(lambda scenario: Redrafting(scenario, gamma, is_late)).status is Status.REFUTED
    assert right_status(gamma) is Status.HOLDS
