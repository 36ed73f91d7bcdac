"""Speculation at temperature 0 with real models: the output is the target's own greedy continuation, token by token.

The expected output is a loop over forwards of the whole sequence that uses nothing of ``reference``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from reference import Decoder, LanguageModel, Sampled, Task, Tokens, generate, warped
from reference.algorithms import egag, greedy_speculation, nasd, prompt_lookup, speculative_sampling
from specverify.subjects.huggingface_models import ARCHITECTURES, build_model

VOCABULARY = 7
HORIZON = 9
SEEDS = (0, 1, 2)
GAMMAS = range(9)
PROMPT_LENGTHS = range(1, 7)
Logits = Callable[[Tokens], Any]


class Case(NamedTuple):
    """One prompt of one target, how it ends, and what the target alone answers."""

    seed: int
    prompt: Tokens
    eos: Tokens
    expected: Tokens


def next_logits(architecture: str, seed: int, device: torch.device) -> Logits:
    """A float64 model as a function from tokens to the next logits ``[vocabulary]`` on the device."""
    model = build_model(architecture, VOCABULARY, seed).to(device=device, dtype=torch.float64)

    @cache
    def logits(tokens: Tokens) -> Any:
        with torch.no_grad():
            return model(torch.tensor([tokens], device=device)).logits[0, -1]

    return logits


def greedy(logits: Logits, prompt: Tokens, eos: Tokens) -> Tokens:
    new: Tokens = ()
    while len(new) < HORIZON and not (new and new[-1] in eos):
        new = (*new, int(logits(prompt + new).argmax()))
    return new


def as_numpy(logits: Logits) -> Logits:
    return lambda tokens: logits(tokens).cpu().numpy()


def as_tensor(logits: Logits) -> Logits:
    return logits


def one_hot_rows(logits: Logits) -> LanguageModel:
    return warped(logits, temperature=0)


def least_likely(target: Logits, other: Logits) -> LanguageModel:
    """A drafter that always proposes what the target finds least likely."""
    return one_hot_rows(lambda tokens: -target(tokens))


DRAFTERS: dict[str, Callable[[Logits, Logits], LanguageModel]] = {
    "identical": lambda target, other: one_hot_rows(target),
    "other": lambda target, other: one_hot_rows(other),
    "other, sampled": lambda target, other: warped(other),
    "least likely": least_likely,
}
WITH_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "greedy-speculation": greedy_speculation.build,
    "speculative-sampling": speculative_sampling.build,
    "egag": lambda task, gamma: egag.build(task, gamma_min=0, gamma_max=gamma),
}
WITHOUT_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "nasd": lambda task, gamma: nasd.build(task, order=3, gamma=gamma),
    "nasd with filler": lambda task, gamma: nasd.build(task, order=2, gamma=gamma, filler_top_k=2),
    "prompt-lookup": lambda task, gamma: prompt_lookup.build(task, max_ngram=2, gamma=gamma),
}


@pytest.fixture(params=ARCHITECTURES, scope="module")
def models(request: pytest.FixtureRequest, device: torch.device) -> dict[int, Logits]:
    """Targets by seed; the drafter of a target is the model of another seed."""
    return {seed: next_logits(request.param, seed, device) for seed in (*SEEDS, len(SEEDS))}


@pytest.fixture(scope="module")
def cases(models: dict[int, Logits]) -> list[Case]:
    """Every seed and prompt length, running to the horizon and ending at the token emitted third."""
    rng = np.random.default_rng(0)
    found = []
    for seed, length in product(SEEDS, PROMPT_LENGTHS):
        prompt = tuple(rng.integers(VOCABULARY, size=length).tolist())
        whole = greedy(models[seed], prompt, eos=())
        found += [Case(seed, prompt, eos, greedy(models[seed], prompt, eos)) for eos in ((), (whole[2],))]
    assert any(case.eos and len(case.expected) == 3 for case in found)
    return found


def check(case: Case, decoder: Decoder, gamma: int) -> None:
    emitted = generate(decoder, case.prompt, Sampled(0)).tokens
    assert emitted == case.expected, f"gamma {gamma}, {case}"


@pytest.mark.parametrize("rows", [as_numpy, as_tensor])
@pytest.mark.parametrize("algorithm", WITH_DRAFTER)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_drafting_by_a_model_changes_nothing(
    models: dict[int, Logits], cases: list[Case], drafter: str, algorithm: str, rows: Callable[[Logits], Logits]
) -> None:
    for case, gamma in product(cases, GAMMAS):
        target, other = rows(models[case.seed]), rows(models[case.seed + 1])
        draft = cache(DRAFTERS[drafter](target, other))
        task = Task(cache(one_hot_rows(target)), draft, warped(other), case.eos, HORIZON)
        check(case, WITH_DRAFTER[algorithm](task, gamma), gamma)


@pytest.mark.parametrize("rows", [as_numpy, as_tensor])
@pytest.mark.parametrize("algorithm", WITHOUT_DRAFTER)
def test_drafting_from_the_text_changes_nothing(
    models: dict[int, Logits], cases: list[Case], algorithm: str, rows: Callable[[Logits], Logits]
) -> None:
    for case, gamma in product(cases, GAMMAS):
        task = Task(cache(one_hot_rows(rows(models[case.seed]))), eos=case.eos, horizon=HORIZON)
        check(case, WITHOUT_DRAFTER[algorithm](task, gamma), gamma)


def test_an_identical_drafter_is_always_accepted_and_the_least_likely_never(
    models: dict[int, Logits], cases: list[Case]
) -> None:
    """Otherwise the tests above might compare decoders that never speculate."""
    case = next(case for case in cases if not case.eos)
    target = models[case.seed]
    rates = []
    for drafter in ("identical", "least likely"):
        task = Task(one_hot_rows(target), DRAFTERS[drafter](target, target), horizon=HORIZON)
        rates.append(generate(speculative_sampling.build(task, 3), case.prompt, Sampled(0)).statistics.acceptance_rate)
    assert rates == [1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_assisted_greedy_generation_of_the_library(architecture: str, dtype: torch.dtype, device: torch.device) -> None:
    for inputs, target, assistant, config in library_runs(architecture, dtype, device):
        plain = target.generate(**inputs, generation_config=config)
        assisted = target.generate(**inputs, generation_config=config, assistant_model=assistant)
        assert assisted.tolist() == plain.tolist(), f"{inputs}, {assistant.generation_config}"


def library_runs(architecture: str, dtype: torch.dtype, device: torch.device) -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(1)
    generation_config: Any = GenerationConfig  # its constructor is not annotated
    for seed in SEEDS:
        target, assistant = (
            build_model(architecture, VOCABULARY, weights).to(device=device, dtype=dtype)
            for weights in (seed, seed + 1)
        )
        for length, eos in product(PROMPT_LENGTHS, (None, 0)):
            ids = torch.tensor(rng.integers(VOCABULARY, size=(1, length)), device=device)
            assistant.generation_config.num_assistant_tokens = 1 + length
            assistant.generation_config.num_assistant_tokens_schedule = "constant"
            assistant.generation_config.assistant_confidence_threshold = 0.0
            config = generation_config(do_sample=False, max_new_tokens=12, eos_token_id=eos, pad_token_id=eos)
            yield {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, target, assistant, config
