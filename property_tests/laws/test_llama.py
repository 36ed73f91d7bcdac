"""The forward pass that laws of engines come from, and what makes a law of it; engines themselves are not needed."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.llama import all_logits
from specverify.subjects.decoding import (
    DRAFT_SEED,
    TARGET_SEED,
    VARIED,
    Decoding,
    Row,
    decoding_law,
    row_subject,
    seeds_of,
    tiny_llama,
    without_ends,
)
from specverify.subjects.subject import UnusableSubject
from specverify.testing import SpeculationRefuted, check_subject
from test_support.samplers.black_boxes import sampler_of

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


def test_seeds_are_many_and_repeat():
    assert seeds_of(1, 5) == seeds_of(1, 5) != seeds_of(2, 5)


def test_a_right_engine_holds_and_another_model_is_refuted():
    law, other = (decoding_law(Decoding(horizon=2), tiny_llama(seed)) for seed in (TARGET_SEED, DRAFT_SEED))
    held = check_subject(row_subject("right", "draws the law", Row(sampler_of(law), lambda: law)), sampled=True)
    assert held[0].figures["tv_detectable"] <= 0.05
    agreed = Row(sampler_of(law), plain=sampler_of(law), detect=0.2)
    check_subject(row_subject("right", "draws the law", agreed), sampled=True)
    for row in (Row(sampler_of(other), lambda: law), Row(sampler_of(other), plain=sampler_of(law), detect=0.2)):
        with pytest.raises(SpeculationRefuted):
            check_subject(row_subject("wrong", "draws the draft's law", row), sampled=True)


def test_texts_of_the_same_seed_are_told_beside_the_verdict():
    law = decoding_law(Decoding(horizon=1))
    row = Row(sampler_of(law), lambda: law, plain=sampler_of(law))
    found = check_subject(row_subject("right", "draws the law", row), sampled=True)
    assert "300 of 300 texts" in str(found[0].figures["activity"])
