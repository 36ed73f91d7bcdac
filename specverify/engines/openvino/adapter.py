"""Calls of openvino-genai: one pipeline per kind of speculation.

Pipelines compute in float32, with a float32 KV cache. Only the functions whose names contain ``as_it_comes`` leave the
precision at the library's default.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.decoding import Decoding, Texts, seeds_of

try:
    import openvino
    import openvino_genai as library
except ImportError as error:
    raise ImportError("the subject of OpenVINO needs openvino-genai: pip install openvino-genai") from error

MODELS = Path(__file__).parent / "models"
VOCABULARY = 5
ONE_THREAD = {"INFERENCE_NUM_THREADS": 1}
FLOAT32 = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"} | ONE_THREAD
Open = Callable[[], Any]


@cache
def plain() -> Any:
    """Return the pipeline without speculation."""
    return library.LLMPipeline(str(MODELS / "target"), "CPU", **FLOAT32)


@cache
def plain_as_it_comes() -> Any:
    """Return the pipeline without speculation, with the default 8-bit KV cache."""
    return library.LLMPipeline(str(MODELS / "target"), "CPU", **ONE_THREAD)


@cache
def lookup() -> Any:
    """Return the pipeline with drafts copied from the previous text."""
    return library.LLMPipeline(str(MODELS / "target"), "CPU", prompt_lookup=True, **FLOAT32)


@cache
def lookup_as_it_comes() -> Any:
    """Return the pipeline with drafts copied from the previous text, with the default 8-bit KV cache."""
    return library.LLMPipeline(str(MODELS / "target"), "CPU", prompt_lookup=True, **ONE_THREAD)


def draft() -> Any:
    """Return a pipeline with a draft model, a new one at each call of this function.

    No pipeline is used for a second call, because a pipeline that failed never answers again.
    """
    return _drafting()


@cache
def draft_without_prefixes() -> Any:
    """Return the pipeline with a draft model and with prefix caching switched off."""
    plans = [library.SchedulerConfig(), library.SchedulerConfig()]
    for plan in plans:
        plan.enable_prefix_caching, plan.cache_size = False, 1
    return _drafting(*({"scheduler_config": plan} for plan in plans))


def _drafting(of_target: Any = {}, of_draft: Any = {}) -> Any:  # noqa: B006 - never changed
    other = library.draft_model(str(MODELS / "draft"), "CPU", **FLOAT32, **of_draft)
    return library.LLMPipeline(str(MODELS / "target"), "CPU", draft_model=other, **FLOAT32, **of_target)


def configured(decoding: Decoding, seed: int, way: str) -> Any:
    """Return the configuration of a call with ``seed`` and the options of ``decoding``.

    ``way`` is the name of the function of this module that opens the pipeline.
    """
    result = library.GenerationConfig()
    result.max_new_tokens, result.rng_seed = decoding.horizon, seed
    result.do_sample = decoding.temperature > 0
    if decoding.temperature > 0:
        result.temperature, result.top_p = decoding.temperature, decoding.top_p or 1.0
        result.top_k = decoding.top_k or VOCABULARY
    result.repetition_penalty = decoding.repetition_penalty
    result.ignore_eos = not decoding.eos
    result.stop_token_ids = set(decoding.eos)
    if not way.startswith("plain"):
        result.num_assistant_tokens = decoding.gamma
    if way.startswith("lookup"):
        result.max_ngram_size = 2  # told to a draft model, it changes how that one drafts
    for name, value in dict(decoding.more).items():
        setattr(result, name, value)
    return result


def texts(way: Open, decoding: Decoding) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts of ``decoding``.

    ``way()`` opens the pipeline.
    """
    return partial(_texts, way, decoding)


def _texts(way: Open, decoding: Decoding, seed: int, number: int) -> Sequence[Tokens]:
    pipeline, prompt = way(), openvino.Tensor(np.array([decoding.prompt], dtype=np.int64))
    return [
        tuple(pipeline.generate(prompt, configured(decoding, each, way.__name__)).tokens[0])
        for each in seeds_of(seed, number)
    ]
