"""A penalty counts the tokens of the round too: a prompt that lacks a token shows whether it does."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.deep_scenarios import NEW_TOKENS, QUICK_OF_ENGINES
from specverify.testing import Made
from test_support.subjects.engine_laws import law_verdict

RNG = np.random.default_rng()
GAMMA = 2


def penalised(row, text):
    """Return ``row`` with a smaller weight for each token that ``text`` has; of these the two largest, as by top-k."""
    weights = np.array([mass**1.3 if token in text else mass for token, mass in enumerate(row)])
    weights[np.argsort(weights)[:-2]] = 0
    weights[weights < 0.05 * weights.sum()] = 0
    return weights / weights.sum()


def drawn(row):
    return int(RNG.choice(len(row), p=row))


def plain(scenario):
    def decode(prompt):
        text = tuple(prompt)
        for _ in range(scenario.horizon):
            text += (drawn(penalised(scenario.target(text), text)),)
        return text[len(prompt) :]

    return decode


def speculative(unseen):
    """Return an engine whose penalty does not see the last ``unseen`` tokens at a bonus token."""

    def make(scenario):
        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                begin = text
                while len(text) < min(len(begin) + GAMMA, end):
                    q, p = penalised(scenario.draft(text), text), penalised(scenario.target(text), text)
                    draft = drawn(q)
                    if RNG.random() * q[draft] >= p[draft]:
                        left = np.maximum(p - q, 0)
                        text += (drawn(left / left.sum()),)
                        break
                    text += (draft,)
                else:
                    if len(text) < end:
                        text += (drawn(penalised(scenario.target(text), text[: len(text) - unseen])),)
            return text[len(prompt) :]

        return Made(decode, plain(scenario))

    return make


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("unseen", "status"), [(0, Status.HOLDS), (1, Status.REFUTED)])
def test_a_penalty_counts_the_last_draft_at_a_bonus_token(unseen, status):
    assert law_verdict(speculative(unseen), [NEW_TOKENS]).status is status


def test_quick_runs_have_such_a_prompt():
    assert NEW_TOKENS in QUICK_OF_ENGINES
