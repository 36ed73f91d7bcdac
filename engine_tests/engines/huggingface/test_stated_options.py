"""generate() without speculation against what its options say: a processor that is broken is refuted by its row."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.engines.huggingface import stated_options as stated


def masses(step, logits=(2.0, 1.0, 0.0, -1.0), text=(3, 1, 2, 3), new=1):
    return step(np.array(logits), text, new).tolist()


INF = float("inf")


@pytest.mark.parametrize(
    ("step", "logits"),
    [
        (stated.temperature(2.0), [1, 0.5, 0, -0.5]),
        (stated.greedy(), [2, -INF, -INF, -INF]),
        (stated.most_likely(2), [2, 1, -INF, -INF]),
        (stated.above(0.1), [2, 1, -INF, -INF]),
        (stated.above(0.9), [2, -INF, -INF, -INF]),
        (stated.above_either(0.2), [2, 1, -INF, -INF]),
        (stated.within_entropy(0.7), [2, 1, -INF, -INF]),
        (stated.within_entropy(0.01), [2, -INF, -INF, -INF]),
        (stated.typical(0.2), [-INF, 1, -INF, -INF]),
        (stated.repeated(2.0), [2, 0.5, 0, -2]),
        (stated.of_new_tokens(stated.repeated(2.0)), [2, 1, 0, -2]),
        (stated.of_the_prompt(2.0), [2, 2, 0, -0.5]),
        (stated.no_repeated_ngram(2), [2, -INF, 0, -1]),
        (stated.no_repeated_ngram(1, of_prompt=True), [2, -INF, -INF, -INF]),
        (stated.biased(((2,), 1.5), ((2, 3, 0), -1.0), ((1, 3, 1), 9.0)), [1, 1, 1.5, -1]),
        (stated.forbidden((1,), (3, 2)), [2, -INF, -INF, -1]),
        (stated.at_first(stated.greedy()), [2, 1, 0, -1]),
        (stated.no_end_before((0, 3), new_tokens=2), [-INF, 1, 0, -INF]),
        (stated.no_end_before((0,), length=4), [2, 1, 0, -1]),
        (stated.end_at(2, 3), [-INF, -INF, -INF, -1]),
        (stated.sooner_ended(0, 3.0, 3), [2, 1, 0, 1]),
    ],
)
def test_options_do_what_they_say_on_four_logits(step, logits):
    assert masses(step) == logits


def test_guidance_moves_away_from_the_text_without_its_prompt():
    seen = []

    def model(tokens):
        seen.append(tokens)
        return np.zeros(4)

    pmf = np.exp(masses(stated.guided(2.0, model)))
    plain = np.exp([2.0, 1.0, 0.0, -1.0])
    assert seen == [(2, 3)]
    assert pmf / pmf.sum() == pytest.approx(plain**2 / (plain**2).sum())
    masses(stated.guided(2.0, model, (1, 1)))
    assert seen[1] == (1, 1, 3)
