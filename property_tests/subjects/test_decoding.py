"""Engines that are sampled with seeds: many seeds, equal texts of one seed, and a wrong model."""

from __future__ import annotations

import pytest

from specverify.subjects.decoding import (
    DRAFT_SEED,
    TARGET_SEED,
    Decoding,
    EngineRow,
    decoding_law,
    row_subject,
    seeds_of,
    tiny_llama,
)
from specverify.testing import SpeculationRefuted, check_subject
from test_support.samplers.black_boxes import sampler_of


def test_seeds_are_many_and_repeat():
    assert seeds_of(1, 5) == seeds_of(1, 5) != seeds_of(2, 5)


def test_a_right_engine_holds_and_another_model_is_refuted():
    law, other = (decoding_law(Decoding(horizon=2), tiny_llama(seed)) for seed in (TARGET_SEED, DRAFT_SEED))
    held = check_subject(row_subject("right", "draws the law", EngineRow(sampler_of(law), lambda: law)), sampled=True)
    assert held[0].figures["tv_detectable"] <= 0.05
    agreed = EngineRow(sampler_of(law), plain=sampler_of(law), detect=0.2)
    check_subject(row_subject("right", "draws the law", agreed), sampled=True)
    for row in (
        EngineRow(sampler_of(other), lambda: law),
        EngineRow(sampler_of(other), plain=sampler_of(law), detect=0.2),
    ):
        with pytest.raises(SpeculationRefuted):
            check_subject(row_subject("wrong", "draws the draft's law", row), sampled=True)


def test_texts_of_the_same_seed_are_told_beside_the_verdict():
    law = decoding_law(Decoding(horizon=1))
    row = EngineRow(sampler_of(law), lambda: law, plain=sampler_of(law))
    found = check_subject(row_subject("right", "draws the law", row), sampled=True)
    assert "300 of 300 texts" in str(found[0].figures["activity"])
