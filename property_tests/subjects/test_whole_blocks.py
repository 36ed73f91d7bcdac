"""An engine that keeps whole blocks of its cache for later requests, and faults that full blocks alone show."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.subjects.request_lists import WHOLE_BLOCKS
from test_support.subjects.engine_laws import law_verdict, one_round

GAMMA, RNG = 3, np.random.default_rng()


def by_blocks(size, fault=""):
    """Return the factory of an engine that keeps the entries of whole blocks of ``size`` tokens for later requests."""

    def make(scenario):
        blocks = {}

        def decode(prompt):
            held = max((n for n in range(0, len(prompt) + 1, size) if tuple(prompt[:n]) in blocks), default=0)
            entries = blocks.get(tuple(prompt[:held]), ()) + tuple(prompt[held:])
            if fault == "the last token is read twice" and held == len(prompt):
                entries += tuple(prompt[-1:])
            new = ()
            while len(new) < scenario.horizon:
                new += one_round(scenario, entries + new, min(GAMMA, scenario.horizon - len(new) - 1), RNG)
            text, kept = (*prompt, *new), entries[: len(prompt)] + new
            if fault == "the last token has no entry yet":
                kept = (*kept[:-1], 0)
            blocks.update({text[:n]: kept[:n] for n in range(size, len(text) + 1, size)})
            return new

        return decode

    return make


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("fault", ["", "the last token is read twice", "the last token has no entry yet"])
def test_blocks_of_whole_prompts_and_texts_show_their_faults(size, fault):
    assert law_verdict(by_blocks(size, fault), WHOLE_BLOCKS).status is (Status.REFUTED if fault else Status.HOLDS)
