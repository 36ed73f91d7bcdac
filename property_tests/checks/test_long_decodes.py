"""Random numbers that are used again after many draws: only a text of many tokens shows them."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_engine

GAMMA = 2


class Pool:
    """Uniforms that are drawn in blocks; ``refills`` states whether a block that is used up is drawn anew."""

    def __init__(self, size, refills):
        """Draw the first block of ``size`` numbers."""
        self.rng, self.size, self.refills = np.random.default_rng(), size, refills
        self.block, self.at = self.rng.random(size), 0

    def uniform(self):
        """Return the next number."""
        if self.at == self.size:
            self.at = 0
            if self.refills:
                self.block = self.rng.random(self.size)
        self.at += 1
        return self.block[self.at - 1]

    def drawn(self, weights):
        """Return a token drawn with these weights."""
        sums = np.cumsum(weights)
        return int(min(np.searchsorted(sums, self.uniform() * sums[-1], side="right"), np.flatnonzero(weights)[-1]))


def engine(size, refills, longest=1000):
    """Return the factory of an engine with a pool of ``size`` numbers, for texts of at most ``longest`` tokens."""

    def make(scenario):
        def decode(prompt):
            pool, text, end = Pool(size, refills), list(prompt), len(prompt) + scenario.horizon
            if end > longest:
                raise ValueError("too long")
            while len(text) < end:
                drafts, q = [], []
                for _ in range(min(GAMMA, end - len(text) - 1)):
                    q.append(scenario.draft((*text, *drafts)))
                    drafts.append(pool.drawn(q[-1]))
                p = [scenario.target((*text, *drafts[:place])) for place in range(len(drafts) + 1)]
                kept = 0
                while kept < len(drafts) and pool.uniform() * q[kept][drafts[kept]] < p[kept][drafts[kept]]:
                    kept += 1
                left = np.maximum(p[kept] - q[kept], 0) if kept < len(drafts) else p[kept]
                text += [*drafts[:kept], pool.drawn(left)]
            return text[len(prompt) :]

        return decode

    return make


def verdict_of(make):
    (verdict,) = check_engine(make, quick=True, checks=["draws_are_independent"], on_fail=None)
    return verdict


@pytest.mark.thorough(keep=2)
@pytest.mark.usefixtures("named_checks_alone")
@pytest.mark.parametrize("size", [16, 64])
def test_numbers_that_are_used_again_after_many_draws_are_unknown(size):
    verdict = verdict_of(engine(size, refills=False))
    assert verdict.status is Status.UNKNOWN
    assert "test_long_decodes.py:" in verdict.statement
    assert "in a text of 100 tokens" in verdict.statement
    assert verdict_of(engine(size, refills=True)).status is Status.HOLDS


def test_numbers_that_are_used_again_count_though_a_later_text_is_not_followed():
    make, texts = engine(16, refills=False), []

    def failing(scenario):
        def decode(prompt):
            if scenario.horizon == 100:
                texts.append(prompt)
                if len(texts) == 2:
                    raise ValueError("only once")
            return make(scenario)(prompt)

        return decode

    assert verdict_of(failing).status is Status.UNKNOWN


def test_an_engine_of_short_texts_alone_holds_with_a_note():
    verdict = verdict_of(engine(64, refills=True, longest=90))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["notes"] == ["no text of 100 tokens was followed: ValueError: too long"]
