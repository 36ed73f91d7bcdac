"""Generation without speculation: options that are ignored or off by one, and stop strings."""

from __future__ import annotations

from functools import cache

import pytest
from transformers.generation import logits_process, utils

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.engines.huggingface.rows_alone import AloneRow, alone_subject, rows_alone, stated_law
from specverify.run.catalogue import expanded
from specverify.run.verify import Checklist, verify_subject

WRONG = {
    "top-h",
    "bad-words, an end",
    "padding, encoder-repetition",
    "padding, no-repeat-unigram",
    "padding, min-length",
    "padded embeddings, repetition-penalty",
}
"""What docs/findings/transformers-5.23.0.md tells under "Without speculation"."""

UNHEEDED = {
    "temperature": "TemperatureLogitsWarper",
    "top-k": "TopKLogitsWarper",
    "top-p": "TopPLogitsWarper",
    "min-p": "MinPLogitsWarper",
    "typical-p": "TypicalLogitsWarper",
    "epsilon-cutoff": "EpsilonLogitsWarper",
    "eta-cutoff": "EtaLogitsWarper",
    "repetition-penalty": "RepetitionPenaltyLogitsProcessor",
    "encoder-repetition": "EncoderRepetitionPenaltyLogitsProcessor",
    "no-repeat-ngram": "NoRepeatNGramLogitsProcessor",
    "encoder-ngram": "EncoderNoRepeatNGramLogitsProcessor",
    "bad-words": "NoBadWordsLogitsProcessor",
    "sequence-bias": "SequenceBiasLogitsProcessor",
    "suppressed": "SuppressTokensAtBeginLogitsProcessor",
    "forced-end": "ForcedEOSTokenLogitsProcessor",
    "min-length": "MinLengthLogitsProcessor",
    "length-decay": "ExponentialDecayLengthPenalty",
    "guidance": "UnbatchedClassifierFreeGuidanceLogitsProcessor",
}
"""Row -> the processor without which it must be refuted; ``min_new_tokens`` is not left to one alone."""

BROKEN = {
    "min-new-tokens": ("MinNewTokensLengthLogitsProcessor", "< self.min_new_tokens", "<= self.min_new_tokens"),
    "length-decay": ("ExponentialDecayLengthPenalty", "cur_len > self.reg", "cur_len > 1 + self.reg"),
    "suppressed": ("SuppressTokensAtBeginLogitsProcessor", "== self.begin_index", "== self.begin_index + 1"),
    "guidance, no cache": ("UnbatchedClassifierFreeGuidanceLogitsProcessor", "logits[:, -1]", "logits[:, 0]"),
}


@cache
def kept(name):
    return rows_alone()[name]


def law_verdict(name):
    chosen = (check_named("law_is_target"),)
    return next(iter(verify_subject(alone_subject(name, kept(name)), Checklist(chosen, Conditions())))).status


def test_the_table_is_named_by_the_engine():
    assert expanded("hf:alone") == tuple(f"hf:alone/{name}" for name in rows_alone())
    assert set(rows_alone()) > WRONG | UNHEEDED.keys() | BROKEN.keys()


@pytest.mark.filterwarnings("ignore:Passing .repetition_penalty. with .inputs_embeds:UserWarning")
@pytest.mark.thorough
@pytest.mark.parametrize("name", rows_alone())
def test_a_row_is_what_its_page_says(name):
    assert law_verdict(name) is (Status.REFUTED if name in WRONG else Status.HOLDS)


@pytest.mark.thorough(keep=18)
@pytest.mark.parametrize(("name", "processor"), UNHEEDED.items())
def test_an_option_that_is_not_heeded_is_refuted(monkeypatch, name, processor):
    monkeypatch.setattr(getattr(logits_process, processor), "__call__", lambda self, ids, scores: scores)
    assert law_verdict(name) is Status.REFUTED


@pytest.mark.thorough
@pytest.mark.parametrize("name", BROKEN)
def test_an_option_that_is_off_by_one_is_refuted(planted, name):
    processor, right, wrong = BROKEN[name]
    planted(getattr(logits_process, processor), "__call__", right, wrong)
    assert law_verdict(name) is Status.REFUTED


@pytest.mark.thorough
def test_a_loop_that_draws_from_unprocessed_logits_is_refuted(planted):
    planted(
        utils.GenerationMixin, "_sample", "functional.softmax(next_token_scores", "functional.softmax(next_token_logits"
    )
    assert law_verdict("temperature") is Status.REFUTED


def test_a_text_ends_where_a_stop_string_does():
    law = stated_law(kept("stop-strings"))
    assert sum(law.values()) == pytest.approx(1)
    assert all(text[1:] == (2,) or len(text) == 3 or text in {(2,), (3, 3)} for text in law)
    whole = stated_law(AloneRow(kept("stop-strings").setting, kept("stop-strings").steps))
    assert {len(text) for text in law} == {1, 2, 3}
    assert {len(text) for text in whole} == {3}
