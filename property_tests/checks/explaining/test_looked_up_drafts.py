"""Drafts that the program looks up in the text, tested by one uniform a round: the message states what it does."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.certain_tables import open_after
from specverify.laws.scenarios import Scenario
from specverify.report.prose import first_sentence
from specverify.testing import check_engine
from test_support.subjects.engine_laws import law_verdict

CERTAIN_BEFORE = Scenario(open_after(7, 10), 3, (2,), 12, seed=36)
"""A draft with p = 1 comes before the draft with p = 0.4 in the round that starts with the sixth new token."""


def looked_up(text, most):
    """Return at most ``most`` tokens that follow the last earlier occurrence of the last token of ``text``."""
    at = next((i for i in reversed(range(len(text) - 1)) if text[i] == text[-1]), None)
    return text[at + 1 : at + 1 + most] if at is not None else ()


def engine(bounds=np.cumprod, kept=lambda number: number):
    """Return the factory of an engine that accepts drafts while the running bound exceeds the uniform of the round.

    ``bounds`` returns the running bounds of the probabilities of the drafts, and ``kept`` the number of drafts that are
    kept, if ``number`` are accepted.
    """

    def make(scenario):
        rng = np.random.default_rng()

        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                drafts = looked_up(text, min(3, end - len(text) - 1))
                rows = [np.array(scenario.target(text + drafts[:i]), float) for i in range(len(drafts) + 1)]
                running = bounds([row[x] for row, x in zip(rows, drafts, strict=False)]) if drafts else np.zeros(0)
                uniform = rng.random()
                number = kept(int((running > uniform).sum()))
                row = rows[number]
                if number < len(drafts):
                    row[drafts[number]] = 0.0
                text += (*drafts[:number], int(rng.choice(len(row), p=row / row.sum())))
            return text[len(prompt) :]

        return decode

    return make


def test_a_draft_is_read_from_the_queries_although_a_certain_one_precedes_it():
    said = first_sentence(law_verdict(engine(kept=lambda number: 1 if number == 2 else number), [CERTAIN_BEFORE]))
    assert said.startswith("new token 7 is ")


def test_bounds_that_are_not_multiplied_are_named():
    said = first_sentence(
        law_verdict(engine(np.minimum.accumulate), [Scenario("point_draft", 3, (0, 1, 0), 3, seed=8)])
    )
    assert said.startswith("drafts are accepted by one random number for all drafts")


def test_the_right_rule_holds():
    check_engine(engine(), quick=True, checks=["law_is_target"])


@pytest.mark.parametrize("length", [2, 3])
def test_drafts_are_tokens_of_the_text(length):
    assert looked_up((0, 1, 2, 0), length) == (1, 2, 0)[:length]
