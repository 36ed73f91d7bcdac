"""The token of a sample that is named is one whose share really differs, and the earliest such one."""

from __future__ import annotations

from collections import Counter

import pytest

from specverify.checks.explaining.sampled_difference import sampled_difference
from specverify.reference import Sampled

LAW = {(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.125, (1, 1): 0.375}


def drawn(law, number=4000, seed=1):
    texts, draws = list(law), Sampled(seed)
    return Counter(texts[draws.categorical(list(law.values()), ("text",))] for _ in range(number))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({(0, 0): 0.1, (0, 1): 0.1, (1, 0): 0.2, (1, 1): 0.6}, "new token 1 is 0 in 0.2"),
        ({(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.375, (1, 1): 0.125}, "new token 2 is 0 in 0.7"),
        ({(0, 0): 0.5, (0, 1): 0.0, (1, 0): 0.125, (1, 1): 0.375}, "new token 2 is 0 in 1"),
    ],
)
def test_the_first_token_with_another_share_is_named(wrong, said):
    sentence = sampled_difference(drawn(wrong), LAW)
    assert sentence.startswith(said)
    assert ("after new token" in sentence) is ("new token 2" in said)


def test_the_probability_after_the_named_tokens_is_stated():
    sentence = sampled_difference(drawn({(0, 0): 0.5, (1, 0): 0.25, (1, 1): 0.25}), LAW)
    assert sentence.endswith(" samples after new token 0, expected 0.5")


def test_an_empty_sample_is_not_described():
    assert sampled_difference({}, LAW) == ""
