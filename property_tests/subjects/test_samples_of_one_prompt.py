"""Batched engines that serve several samples of one prompt must keep the caches of the samples apart."""

from __future__ import annotations

import numpy as np

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import Made, made_subject
from specverify.subjects.requests import AT_ONCE, SAMPLES_OF_ONE_PROMPT
from specverify.subjects.subject import EngineProgram

GAMMA = 2


class Engine:
    """Each row has a text and a cache. ``swaps``: two rows of one prompt swap their caches if these are equally long.

    A beam search that reorders its rows makes this mistake if it moves the caches and not the texts.
    """

    def __init__(self, scenario, *, swaps):
        """Take the models of a scenario."""
        self.scenario, self.swaps, self.rng = scenario, swaps, np.random.default_rng()

    def round(self, text, left):
        """Return the new tokens of one round after ``text``."""
        drafts = ()
        for _ in range(min(GAMMA, left - 1)):
            p, q = (model(text + drafts) for model in (self.scenario.target, self.scenario.draft))
            draft = int(self.rng.choice(len(q), p=q))
            if self.rng.random() * q[draft] >= p[draft]:
                rest = np.maximum(p - q, 0)
                return (*drafts, int(self.rng.choice(len(p), p=rest / rest.sum())))
            drafts = (*drafts, draft)
        p = self.scenario.target(text + drafts)
        return (*drafts, int(self.rng.choice(len(p), p=p)))

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        caches, new = [tuple(prompt) for prompt in prompts], [()] * len(prompts)
        while running := [row for row, tokens in enumerate(new) if len(tokens) < self.scenario.horizon]:
            for row in running:
                tokens = self.round(caches[row], self.scenario.horizon - len(new[row]))
                caches[row], new[row] = caches[row] + tokens, new[row] + tokens
            if self.swaps and prompts[0] == prompts[1] and len(caches[0]) == len(caches[1]):
                caches[:2] = caches[1::-1]
        return new


def status_of(requests, *, swaps):
    """Return the verdict on ``requests`` alone."""
    subject = made_subject(lambda scenario: Made(Engine(scenario, swaps=swaps).decode, batched=True), "an engine")
    names = {each.name for each in requests}
    programs = tuple(program for program in subject.programs if program.name in names)
    checked = run_check(subject.with_situations(EngineProgram, programs), check_named("law_is_target"), Checklist(()))
    return checked.status


def test_two_samples_of_one_prompt_that_swap_their_caches_are_refuted():
    assert status_of([SAMPLES_OF_ONE_PROMPT], swaps=True) is Status.REFUTED
    assert status_of([SAMPLES_OF_ONE_PROMPT], swaps=False) is Status.HOLDS


def test_batches_whose_samples_have_equal_texts_do_not_show_it():
    assert status_of(AT_ONCE, swaps=True) is Status.HOLDS
