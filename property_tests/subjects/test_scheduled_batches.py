"""An engine that serves several requests and verifies the best slots of all: is the schedule blind to the drafts?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import AT_ONCE


def at(pmf, uniform):
    """Return the token at a uniform of the total."""
    return int(np.searchsorted(np.cumsum(pmf) / np.sum(pmf), uniform, side="right"))


def of_its_row(q, token):
    return float(q.max())


def of_its_draft(q, token):
    return float(q[token])


class Scheduled:
    """One draft a request and round, of which a pass verifies ``budget``: those of the largest confidence."""

    def __init__(self, scenario, confidence, budget):
        """Take the models of a scenario."""
        self.target, self.draft, self.horizon = scenario.target, scenario.draft, scenario.horizon
        self.confidence, self.budget, self.rng = confidence, budget, np.random.default_rng()

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        ends = [len(prompt) + self.horizon for prompt in prompts]
        texts = list(map(tuple, prompts))
        while going := [row for row, text in enumerate(texts) if len(text) < ends[row]]:
            room = [row for row in going if len(texts[row]) + 1 < ends[row]]
            drafts = {row: at(self.draft(texts[row]), self.rng.random()) for row in room}
            scores = {row: self.confidence(self.draft(texts[row]), token) for row, token in drafts.items()}
            verified = sorted(drafts, key=lambda row: (-scores[row], row))[: self.budget]
            for row in going:
                texts[row] += self.round(texts[row], drafts[row] if row in verified else None)
        return [text[len(prompt) : end] for text, prompt, end in zip(texts, prompts, ends, strict=True)]

    def round(self, text, token):
        """Return what a request commits."""
        p = self.target(text)
        if token is None:
            return (at(p, self.rng.random()),)
        q = self.draft(text)
        if not self.rng.random() < p[token] / q[token]:
            return (at(np.maximum(p - q, 0), self.rng.random()),)
        return (token, at(self.target((*text, token)), self.rng.random()))


def made(confidence, budget, scenario):
    return Made(Scheduled(scenario, confidence, budget).decode, batched=True)


def verdict_of(confidence, budget=1):
    """Return what is said of the law of the open batches alone."""
    subject = made_subject(partial(made, confidence, budget), "an engine")
    wanted = {requests.name for requests in AT_ONCE[-4:]}
    subject = subject.with_programs(tuple(item for item in subject.programs if item.name in wanted))
    return run_check(subject, check_named("law_is_target"), Checklist(()))


def test_a_schedule_that_is_blind_to_drafts_holds():
    verdict = verdict_of(of_its_row)
    assert (verdict.status, verdict.figures["cases"]) == (Status.HOLDS, 4)


def test_a_schedule_that_sees_drafts_is_refuted():
    verdict = verdict_of(of_its_draft)
    assert verdict.status is Status.REFUTED
    assert " beside " in verdict.counterexample.let[0]


@pytest.mark.parametrize("confidence", [of_its_row, of_its_draft])
def test_with_room_for_every_slot_nothing_is_scheduled(confidence):
    assert verdict_of(confidence, budget=9).status is Status.HOLDS
