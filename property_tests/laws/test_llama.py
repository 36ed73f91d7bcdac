"""The forward pass that laws of engines come from, and what makes a law of it; engines themselves are not needed."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.llama import all_logits
from specverify.subjects.decoding import (
    TARGET_SEED,
    VARIED,
    Decoding,
    decoding_law,
    tiny_llama,
    without_ends,
)
from specverify.subjects.subject import UnusableSubject

TOKENS = (3, 1, 2, 3, 1, 0, 4, 4)


def test_what_follows_depends_on_every_token_before():
    for place in range(len(TOKENS)):
        other = (*TOKENS[:place], (TOKENS[place] + 1) % 5, *TOKENS[place + 1 :])
        assert (
            np.abs(
                all_logits(tiny_llama(TARGET_SEED), TOKENS)[-1] - all_logits(tiny_llama(TARGET_SEED), other)[-1]
            ).max()
            > 0.01
        )


@pytest.mark.parametrize("name", ["top-k 2", "an end", "greedy", "repetition penalty 1.3"])
def test_a_law_sums_to_one_and_ends_where_it_must(name):
    decoding = VARIED[name]
    law = decoding_law(decoding)
    assert sum(law.values()) == pytest.approx(1)
    for text in law:
        assert len(text) == decoding.horizon or text[-1] in decoding.eos
        assert not set(text[:-1]) & set(decoding.eos)
    assert len(without_ends(law, decoding.eos)) == len(law)


def test_a_law_that_rounding_could_change_is_refused():
    with pytest.raises(UnusableSubject, match="top-k after"):
        decoding_law(Decoding(eos=(0, 2), top_k=3))
