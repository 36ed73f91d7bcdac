"""Situations of a call: an observer keeps the processors of a row."""

from __future__ import annotations

from specverify.engines.huggingface.generation import GenerateCall
from specverify.engines.huggingface.situations import with_a_counting_processor, with_arguments


def test_who_looks_on_does_not_replace_the_processors_of_a_row():
    engine = GenerateCall((None,), lambda speculative=True, **given: given["logits_processor"], (0,), {}, ())
    row, onlooker = with_arguments(lambda setting: engine, with_a_counting_processor)(None), object()
    own, last = row.generate(logits_processor=[onlooker])
    assert callable(own)
    assert last is onlooker
    assert len(row.generate()) == 1
