"""generate() without speculation against what its options say: a processor that is broken is refuted by its row."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from transformers.generation import logits_process, utils

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.engines.huggingface import stated_options as stated
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
