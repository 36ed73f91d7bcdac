"""The laws that vLLM is judged by: every option counts, and wrong engines are refuted by them; no engine is needed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np
import pytest

from specverify.engines.vllm.asked import AGAIN, OF_THINKING, OPTIONS, PLAIN_ONLY, repeating
from specverify.engines.vllm.request_law import law, next_pmf, raw_logprobs, request
from specverify.engines.vllm.tiny_checkpoints import CHECKPOINTS, END, SIZES, THINKING
from specverify.subjects.decoding import EngineRow, row_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import SpeculationRefuted, check_subject
from test_support.samplers.black_boxes import sampler_of

ALL = {**OPTIONS, **PLAIN_ONLY, **OF_THINKING}
OF_EVERY_REQUEST = {"max_tokens", "ignore_eos", "logprobs", "stop", "stop_token_ids"}
"""Options that change no pmf by themselves; where a text ends is tested below."""


@pytest.mark.parametrize("name", ALL)
def test_a_law_sums_to_one_and_has_texts_not_longer_than_asked_for(name):
    asked = ALL[name].request
    found = law(asked)
    assert sum(found.values()) == pytest.approx(1)
    assert max(map(len, found)) <= asked.option("max_tokens")


BEGINNINGS = [new for length in range(3) for new in product(range(8), repeat=length)]
BEGINNINGS += [(4,) * 6, (1,) * 6, (4, 1) * 3, (0, 3) * 3]
"""New tokens so far, at some of which every option has an effect."""


def far_apart(one, other, new):
    """Return whether two requests go on by other pmfs; not where one of them is near a tie."""
    with suppress(UnusableSubject):
        return np.abs(next_pmf(one)(new) - next_pmf(other)(new)).max() > 1e-3
    return False


@pytest.mark.parametrize("name", ALL)
def test_every_option_changes_the_law(name):
    """The control of all rows: a law that forgot an option would accuse an engine that heeds it."""
    asked = ALL[name].request
    for option, _ in asked.options:
        if option not in OF_EVERY_REQUEST:
            less = asked._replace(options=tuple(item for item in asked.options if item[0] != option))
            assert any(far_apart(asked, less, new) for new in BEGINNINGS), option


def test_prompts_that_repeat_themselves_have_laws_of_their_own():
    for name, asked in repeating(OPTIONS).items():
        assert asked.request.prompt == AGAIN
        assert (next_pmf(asked.request)(()) != next_pmf(OPTIONS[name].request)(())).any()


def test_an_end_comes_after_the_tokens_that_are_asked_for_and_then_at_once():
    found = law(request(horizon=5, top_k=4, min_tokens=3, stop_token_ids=(5, 6), ends=True))
    assert min(map(len, found)) == 4
    assert all(text[3] in {5, 6, END} for text in found if len(text) == 4)


def test_an_end_that_goes_on_has_no_letter_in_a_stop_string():
    found = law(request(horizon=4, stop=("ge",)))
    assert {(6, 4), (6, END, 4), (END, 6, 4)} <= set(found)
    assert (6, 4, 0, 0) not in found
    assert (6, 0, 4, 0) in found


def test_penalties_count_the_new_tokens_and_repetition_the_prompt_too():
    seen = request((3, 1), horizon=1, repetition_penalty=2.0)
    free, penalised = law(request((3, 1), horizon=1)), law(seen)
    raised = {token for (token,) in free if penalised[(token,)] > free[(token,)]}
    assert raised.isdisjoint({3, 1})
    assert law(request((3, 1), horizon=1, presence_penalty=2.0, frequency_penalty=1.0)) == free


def test_a_truncation_that_rounding_could_decide_is_refused():
    with pytest.raises(UnusableSubject, match="min-p is decided by"):
        law(request(horizon=4, min_p=0.2))


def test_log_probabilities_are_those_of_the_first_token():
    expected = law(request(horizon=1))
    assert np.exp(raw_logprobs((3, 1, 2, 3, 1))) == pytest.approx([expected[(token,)] for token in range(8)])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("structured outputs", {"letters": (0, 1, 2, 6)}),
        ("all penalties", {"repetition_penalty": 1.0}),
        ("bad words", {"_bad_words_token_ids": ((2, 4), (1, 2))}),
        ("temperature 1", {"temperature": 1.4}),
        ("greedy, at least five tokens", {"min_tokens": 0}),
    ],
)
def test_an_engine_that_mistakes_an_option_is_refuted_and_a_right_one_holds(name, wrong):
    asked = OPTIONS[name]
    options = dict(asked.request.options) | wrong
    mistaken = law(asked.request._replace(options=tuple(options.items())))
    right = partial(law, asked.request)
    check_subject(
        row_subject("right", "draws the law", EngineRow(sampler_of(right()), right, detect=asked.detect)), sampled=True
    )
    row = row_subject("wrong", "mistakes an option", EngineRow(sampler_of(mistaken), right, detect=asked.detect))
    with pytest.raises(SpeculationRefuted):
        check_subject(row, sampled=True)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_have_the_shapes_of_the_model(name):
    config, weights = CHECKPOINTS[name]()
    assert config["vocab_size"] == SIZES.vocabulary
    assert all(value.dtype == np.float32 or key in {"d2t", "t2d"} for key, value in weights.items())
    heads = Counter(value.shape[-1] for key, value in weights.items() if "lm_head" in key)
    assert set(heads) <= {SIZES.width}


@pytest.mark.parametrize(
    ("budget", "new", "spent"),
    [
        (0, (6, 4), True),
        (0, (6, 4, 2), False),
        (0, (6, 0), False),
        (1, (4,), False),
        (1, (4, 6), True),
        (1, (4, 6, 2, 6), False),
        (1, (2, 4, 6), True),
        (1, (4, 2, 4), False),
        (None, (4, 6, 6), False),
    ],
)
def test_a_spent_budget_leaves_the_end_of_thinking_alone(budget, new, spent):
    start, stop = THINKING
    assert (start, stop) == (4, 2)
    more = {} if budget is None else {"thinking_token_budget": budget}
    pmf = next_pmf(request(horizon=5, top_k=3, **more))(new)
    assert (pmf[stop] == 1) == spent
    assert np.count_nonzero(pmf) == (1 if spent else 3)
