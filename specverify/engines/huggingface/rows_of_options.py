"""Options and arguments of ``generate`` beside those of every day, for a draft model and prompt lookup."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from transformers import GenerationMixin

from specverify.engines.huggingface import situations
from specverify.engines.huggingface import situations_of_arguments as more
from specverify.engines.huggingface.generation import Build
from specverify.engines.huggingface.row import OBJECTS
from specverify.engines.huggingface.situations import with_arguments
from specverify.subjects.subject import EVERYTHING

_HOT = {"temperature": 1.5}

OPTIONS: dict[str, dict[str, Any]] = {
    "renormalized": {"options": (("renormalize_logits", True),), "top_k": 2},
    "epsilon-cutoff": {"options": (("epsilon_cutoff", 0.1),), **_HOT},
    "eta-cutoff": {"options": (("eta_cutoff", 0.1),), **_HOT},
    "top-h": {"options": (("top_h", 0.5),), **_HOT},
    "length-decay": {"options": (("exponential_decay_length_penalty", (1, 1.5)),), "eos": (0,), **_HOT},
    "encoder-repetition": {"options": (("encoder_repetition_penalty", 1.5),), **_HOT},
    "encoder-ngram": {"options": (("encoder_no_repeat_ngram_size", 2),), **_HOT},
    "min-length": {"options": (("min_length", 7),), "eos": (0,), **_HOT},
    "invalid-values": {"options": (("remove_invalid_values", True),)},
    "much-time": {"options": (("max_time", 1000.0),)},
    "prefill-chunks": {"options": (("prefill_chunk_size", 2),)},
    "dynamic-cache": {"options": (("cache_implementation", "dynamic"),)},
    "hybrid-cache": {"options": (("cache_implementation", "hybrid"),), "architecture": "gemma2"},
    "one-draft": {"gamma": 1},
    "twenty-drafts": {"gamma": 20},
    "beams": {"options": (("num_beams", 2),), "sample": False},
}
"""What differs from ``SMALL``."""

ARGUMENTS: dict[str, tuple[Callable[[Build], Build], dict[str, Any], str, frozenset[str]]] = {
    "token-types": (
        partial(with_arguments, arguments=more.of_two_types, prompt=True),
        {"architecture": "gpt2"},
        "",
        EVERYTHING,
    ),
    "positions-passed": (
        partial(with_arguments, arguments=more.at_other_positions, prompt=True),
        {},
        "",
        EVERYTHING,
    ),
    "last-position": (more.at_the_last_position, {"architecture": "gpt2", "gamma": 4}, "", EVERYTHING),
    "allowed-by-prefix": (partial(with_arguments, arguments=more.with_allowed_tokens), _HOT, "", EVERYTHING),
    "negative-prompt": (
        partial(with_arguments, arguments=more.with_a_negative_prompt),
        {"options": (("guidance_scale", 1.5),), "temperature": 2.0},
        "",
        OBJECTS,
    ),
    "ends-and-strings": (
        partial(with_arguments, arguments=situations.with_a_tokenizer),
        {"options": (("stop_strings", ("bc",)),), "eos": (0,), "temperature": 2.0},
        "",
        EVERYTHING,
    ),
    "fp8-cache": (more.with_a_cache_of_bytes, {}, "", OBJECTS),
    "streamer": (more.streamed, {}, "", OBJECTS),
    "healed-prompt": (more.with_healed_tokens, {"vocabulary": 4}, "", OBJECTS),
    "own-loop": (
        partial(with_arguments, arguments=lambda engine: {"custom_generate": GenerationMixin._sample}),  # noqa: SLF001
        {},
        "",
        OBJECTS,
    ),
    "eager-attention": (more.with_eager_attention, {}, "", OBJECTS),
    "float16": (partial(more.in_low_precision, dtype="float16"), {}, "", OBJECTS),
    "bfloat16": (partial(more.in_low_precision, dtype="bfloat16"), {}, "", OBJECTS),
}
"""Arguments, models and caches that differ: the situation, what differs from ``SMALL``, a refusal, what is told."""
