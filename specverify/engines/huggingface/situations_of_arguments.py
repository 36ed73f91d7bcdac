"""More arguments of ``generate``: token types, positions, streamers, caches, low precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from specverify.engines.huggingface import situations
from specverify.engines.huggingface.architectures import fill
from specverify.engines.huggingface.generation import Build, GenerateCall
from specverify.engines.huggingface.situations import LETTERS, letters_tokenizer
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, EngineSetting
from specverify.laws.rounding import saw


def of_two_types(engine: GenerateCall) -> dict[str, Any]:
    """The prompt with a type for each token, the last of which holds for what follows."""
    types = torch.arange(engine.inputs["input_ids"].shape[1])[None] % 2
    return {**engine.inputs, "token_type_ids": types}


def of_padded_embeddings(engine: GenerateCall) -> dict[str, Any]:
    """The prompt as embeddings, behind one of padding."""
    return {**situations.of_embeddings(engine), **situations.with_padding(engine), "input_ids": None}


def at_other_positions(engine: GenerateCall) -> dict[str, Any]:
    """The prompt at positions with a gap."""
    positions = torch.arange(engine.inputs["input_ids"].shape[1])[None].clone()
    positions[:, -2:] += 3
    return {**engine.inputs, "position_ids": positions}


def with_allowed_tokens(_: GenerateCall) -> dict[str, Any]:
    """A function of the prefix that says which tokens may come next."""
    return {"prefix_allowed_tokens_fn": allowed_after}


def allowed_after(_: int, ids: Any) -> list[int]:
    """Return the tokens allowed behind ``ids``: 2 never follows 1. Scripts hold its source."""
    return [0, 1] if ids[-1] == 1 else [0, 1, 2]


def with_a_negative_prompt(_: GenerateCall) -> dict[str, Any]:
    """A prompt to be guided away from."""
    return {"negative_prompt_ids": torch.tensor([[2, 2]])}


def at_the_last_position(build: Build) -> Build:
    """Return the way of calling with models that have positions for the prompt and the new tokens, and no more."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)
        for model, seed in zip(engine.models, (TARGET_SEED, ASSISTANT_SEED), strict=False):
            positions, table = len(setting.prompt) + setting.horizon, model.transformer.wpe
            model.config.n_positions = positions
            table.weight.data = table.weight.data[:positions].clone()
            table.num_embeddings = positions
            fill(model, seed)
        return engine

    return built


def with_a_cache_of_bytes(build: Build) -> Build:
    """Return the way of calling with a cache in floats of eight bits, which needs no package."""
    return _with_options(build, lambda: {"cache_implementation": "quantized", "cache_config": {"backend": "fp8"}})


def with_healed_tokens(build: Build) -> Build:
    """Return the way of calling in which the last token of the prompt is put again by its text."""

    def options() -> dict[str, Any]:
        tokenizer = letters_tokenizer(4)
        tokenizer.pad_token = tokenizer.bos_token = tokenizer.unk_token = LETTERS[0]
        return {"token_healing": True, "tokenizer": tokenizer}

    return _with_options(build, options)


def with_eager_attention(build: Build) -> Build:
    """Return the way of calling with attention as written out; the library's default is PyTorch's own."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)
        for model in engine.models:
            model.set_attn_implementation("eager")
        return engine

    return built


def in_low_precision(build: Build, dtype: str) -> Build:
    """Return the way of calling with models in floats of 16 bits, which rounding is told of."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine, wanted = build(setting), getattr(torch, dtype)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            saw(wanted)
            return engine.generate(speculative, **extra)

        for model in engine.models:
            model.to(wanted)
        return engine._replace(generate=generate)

    return built


class Listener:
    """A streamer that keeps what it is told."""

    def __init__(self) -> None:
        """Nothing was told."""
        self.told: list[Any] = []

    def put(self, value: Any) -> None:
        """Keep token ids."""
        self.told.append(value.reshape(1, -1))

    def end(self) -> None:
        """Everything was told."""


def streamed(build: Build) -> Build:
    """Return the way of calling whose output is what a streamer was told, the prompt first."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            listener = Listener()
            engine.generate(speculative, streamer=listener, **extra)
            return torch.cat(listener.told, dim=1)

        return engine._replace(generate=generate)

    return built


def _with_options(build: Build, options: Callable[[], dict[str, Any]]) -> Build:
    """Return the way of calling with more keyword arguments, made anew for every call."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            return engine.generate(speculative, **{**options(), **extra})

        return engine._replace(generate=generate)

    return built
