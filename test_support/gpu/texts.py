"""Texts with the target's own greedy answers, and the settings that tests run on them: alone, batched, by the library.

A ``Setting`` is a configuration on one text, a ``BatchedSetting`` a gamma and drafts on all texts of one target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers

from reference import Tokens, lookup
from test_support.gpu.batched_speculation import Propose, forced_logits, speculate_batched
from test_support.gpu.cached_models import NO_PLANT, Plant, Run, cut, greedy, whole_logits
from test_support.gpu.configurations import Configuration, cached_run
from test_support.gpu.tiny_models import ANY_MASK, ARCHITECTURES, VOCABULARY, real_model

HORIZON = 12
PROMPT_LENGTHS = (1, 2, 4, 5, 9)
"""Shorter than a sliding window of 4, as long, and longer."""
CLEAR = 2e-3
"""Texts whose two largest float64 logits come closer anywhere are not used where equality is demanded."""


class Text(NamedTuple):
    """A prompt of one target, the model that drafts for it, and the target's own greedy answer up to the horizon."""

    model: Any
    other: Any
    prompt: Tokens
    plain: Tokens


@cache
def texts_of(
    architecture: str, dtype: torch.dtype, attention: str, device: torch.device, seed: int, *, wide: bool = False
) -> tuple[Text, ...]:
    """Return one text for every prompt length.

    Texts of tiny models are far from ties by the float64 model's margins.
    """
    model, other = (
        real_model(architecture, weights, dtype, attention, device, wide=wide) for weights in (seed, seed + 1)
    )
    rng = np.random.default_rng([seed, ARCHITECTURES.index(architecture)])
    found = []
    for length in PROMPT_LENGTHS:
        while True:
            prompt = tuple(rng.integers(VOCABULARY, size=length).tolist())
            if wide or clear_of_ties(architecture, seed, prompt):
                break
        found.append(Text(model, other, prompt, greedy(model, prompt, HORIZON)))
    return tuple(found)


@cache
def clear_of_ties(architecture: str, seed: int, prompt: Tokens) -> bool:
    """Return whether the two largest logits are ``CLEAR`` apart at every position.

    Computed on the CPU for every device.
    """
    model = real_model(architecture, seed, torch.float64, "eager", torch.device("cpu"))
    largest = whole_logits(model, prompt, greedy(model, prompt, HORIZON)).topk(2, dim=-1).values
    return float((largest[:, 0] - largest[:, 1]).min()) > CLEAR


# One text alone


class Setting(NamedTuple):
    """One run: a configuration, its text, its end tokens, and the right output."""

    configuration: Configuration
    text: Text
    eos: Tokens
    expected: Tokens


def settings(configurations: Sequence[Configuration], texts: Sequence[Text]) -> Iterator[Setting]:
    """Yield every configuration with a text; two of three texts end at one of their tokens, at any position."""
    rng = np.random.default_rng(0)
    for configuration in configurations:
        text = texts[rng.integers(len(texts))]
        eos = (text.plain[rng.integers(HORIZON)],) if rng.integers(3) else ()
        yield Setting(configuration, text, eos, cut(text.plain, eos))


def run_setting(setting: Setting, plant: Plant = NO_PLANT) -> Run:
    configuration, text, eos, _ = setting
    return cached_run(configuration, text.model, text.other, text.prompt, horizon=HORIZON, eos=eos, plant=plant)


# All texts of a target in one batch


def ragged_drafts(texts: Sequence[Text]) -> Propose:
    """Return a proposer of drafts of different lengths in each row.

    Some drafts are all right, some contain a wrong token, some are empty.
    """
    rng = np.random.default_rng(0)

    def propose(row: int, tokens: Tokens, gamma: int) -> Tokens:
        done = len(tokens) - len(texts[row].prompt)
        draft = texts[row].plain[done : done + rng.integers(gamma + 1)]
        wrong = rng.integers(2 * len(draft) + 1)
        return tuple(token if i != wrong else (token + 1) % VOCABULARY for i, token in enumerate(draft))

    return propose


def looked_up(row: int, tokens: Tokens, gamma: int) -> Tokens:
    """Return the drafts of prompt lookup for one row."""
    return lookup(tokens, 2, gamma)


class BatchedSetting(NamedTuple):
    """A batched run: gamma, drafts, end tokens, and whether each row commits its own number of drafts (``holes``)."""

    gamma: int
    propose: Propose
    eos: Tokens
    holes: bool


def batched_settings(architecture: str, dtype: torch.dtype, texts: Sequence[Text]) -> Iterator[BatchedSetting]:
    """Yield batched runs, each with rows that commit equally many tokens and, if possible, with ``holes``.

    The even gammas run in one dtype and the odd ones in the other.
    """
    narrow = dtype in (torch.float32, torch.float16)
    for gamma in range(narrow, 9, 2):
        for holes in (False, True) if architecture in ANY_MASK else (False,):
            eos = (texts[gamma % len(texts)].plain[gamma + holes],) if gamma % 3 else ()
            yield BatchedSetting(gamma, looked_up if (gamma // 2) % 2 else ragged_drafts(texts), eos, holes)


def run_batched(setting: BatchedSetting, texts: Sequence[Text], shift: int = 0) -> list[Tokens]:
    prompts = [text.prompt for text in texts]
    gamma, propose, eos, holes = setting
    return speculate_batched(
        texts[0].model, prompts, propose, gamma=gamma, horizon=HORIZON, eos=eos, holes=holes, shift=shift
    )


def skip_unless_padding_is_finite(texts: Sequence[Text]) -> None:
    """Skip the test if the library's own forward pass of left-padded prompts is NaN; there is no speculation in it.

    The library's eager attention masks with the smallest float64 and computes the softmax in float32, in which that is
    minus infinity. A padded position, which sees nothing, becomes NaN, and one layer later so does every row of its
    sequence.
    """
    passed = forced_logits(texts[0].model, [text.prompt for text in texts], [text.plain[:1] for text in texts], 0)
    if not bool(passed.isfinite().all()):
        pytest.skip("transformers' own forward of left-padded rows is NaN in float64 with eager attention")


# The library's own speculation


def library_outputs(text: Text, eos: Tokens, gamma: int, device: torch.device) -> tuple[Tokens, dict[str, Tokens]]:
    """Return the new tokens of the library's ``generate``: plain, and by each of its own methods of speculation."""
    ids = torch.tensor([text.prompt], device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    generation_config: Any = transformers.GenerationConfig  # its constructor is not annotated
    text.other.generation_config.num_assistant_tokens = gamma
    text.other.generation_config.num_assistant_tokens_schedule = "constant"
    text.other.generation_config.assistant_confidence_threshold = 0.0
    skipped = 1 if text.model.config.is_encoder_decoder else len(text.prompt)

    def generated(call: dict[str, Any], **drafting: Any) -> Tokens:
        config = generation_config(
            do_sample=False,
            max_new_tokens=HORIZON,
            eos_token_id=list(eos) or None,
            pad_token_id=eos[0] if eos else None,
            **drafting,
        )
        return tuple(text.model.generate(**inputs, generation_config=config, **call)[0, skipped:].tolist())

    found = {"assisted": generated({"assistant_model": text.other})}
    found["prompt lookup"] = generated({}, prompt_lookup_num_tokens=gamma, max_matching_ngram_size=2)
    return generated({}), found
