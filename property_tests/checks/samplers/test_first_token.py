"""The first token of sampled texts whose counts cannot be chance."""

from __future__ import annotations

import numpy as np

from specverify.checks.samplers.first_token import first_wrong_token
from specverify.checks.samplers.tally import Tally

TEXTS = [(a, b) for a in range(2) for b in range(2)]


def tally(seen, texts=TEXTS):
    counts = np.array(seen, float)
    expected = np.full(len(seen), counts.sum() / len(seen))
    return Tally(texts.__getitem__, counts, expected, expected, int(counts.sum()), "the law expects {:.1f}")


def test_the_first_wrong_token_is_named_with_its_shares():
    assert first_wrong_token(tally([400, 400, 100, 100])) == (
        "new token 1 is 1 in 200 of 1000 samples, expected 500.0: shares (0.8, 0.2) instead of (0.5, 0.5)"
    )


def test_a_token_that_never_comes_after_another_is_named():
    assert first_wrong_token(tally([250, 250, 500, 0])) == (
        "new token 2 is never 1 in 500 samples after new token 1, expected 250.0: shares (1, 0) instead of (0.5, 0.5)"
    )


def test_chance_and_outcomes_that_are_no_texts_are_not_named():
    assert first_wrong_token(tally([260, 240, 245, 255])) == ""
    assert first_wrong_token(tally([400, 400, 100, 100], ["a", "b", "c", "d"])) == ""


def test_a_text_that_ends_too_often_is_named():
    said = first_wrong_token(tally([900, 50, 50], [(0,), (0, 0), (0, 1)]))
    assert said == "900 of 1000 texts end after 1 new tokens after new token 0, expected 333.3"
