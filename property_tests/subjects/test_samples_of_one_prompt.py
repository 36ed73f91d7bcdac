"""Batched engines that serve several samples of one prompt must keep the caches of the samples apart."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.subjects.engine_making import Made
from specverify.subjects.request_lists import AT_ONCE, SAMPLES_OF_ONE_PROMPT
from test_support.subjects.engine_laws import law_verdict, one_round

pytestmark = pytest.mark.usefixtures("unexplained")

GAMMA = 2


class Engine:
    """Each row has a text and a cache. ``swaps``: two rows of one prompt swap their caches if these are equally long.

    A beam search that reorders its rows makes this mistake if it moves the caches and not the texts.
    """

    def __init__(self, scenario, *, swaps):
        """Take the models of a scenario."""
        self.scenario, self.swaps, self.rng = scenario, swaps, np.random.default_rng()

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        caches, new = [tuple(prompt) for prompt in prompts], [()] * len(prompts)
        while running := [row for row, tokens in enumerate(new) if len(tokens) < self.scenario.horizon]:
            for row in running:
                left = self.scenario.horizon - len(new[row])
                tokens = one_round(self.scenario, caches[row], min(GAMMA, left - 1), self.rng)
                caches[row], new[row] = caches[row] + tokens, new[row] + tokens
            if self.swaps and prompts[0] == prompts[1] and len(caches[0]) == len(caches[1]):
                caches[:2] = caches[1::-1]
        return new


def status_of(requests, *, swaps):
    """Return the verdict on ``requests`` alone."""
    checked = law_verdict(lambda scenario: Made(Engine(scenario, swaps=swaps).decode, batched=True), requests)
    return checked.status


def test_two_samples_of_one_prompt_that_swap_their_caches_are_refuted():
    assert status_of([SAMPLES_OF_ONE_PROMPT], swaps=True) is Status.REFUTED
    assert status_of([SAMPLES_OF_ONE_PROMPT], swaps=False) is Status.HOLDS


def test_batches_whose_samples_have_equal_texts_do_not_show_it():
    assert status_of(AT_ONCE, swaps=True) is Status.HOLDS
