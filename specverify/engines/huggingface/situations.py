"""Documented uses of ``generate`` that tests of speculation rarely cover.

A prompt of embeddings, a cache passed in, masks with holes, processors and criteria that keep state, interrupted calls,
objects used again, token types, positions, streamers, low precision.

Some functions take a parameter ``engine``, a ``GenerateCall``: a call of ``generate`` with its models and its prompt.
They return the arguments of ``generate`` that make the situation. Others take a parameter ``build``, a builder: a
function from a setting to such a call. They return the builder of the same call in the situation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import DynamicCache, PreTrainedTokenizerFast

from specverify.engines.huggingface.architectures import fill
from specverify.engines.huggingface.generation import Build, GenerateCall
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, EngineSetting
from specverify.laws.rounding import saw

LETTERS = "abcdefgh"
"""The text of each token, for tokenizers and stop strings."""


class BrokenOff(Exception):  # noqa: N818 - an interrupt, not an error
    """Raised by a hook to interrupt a call of ``generate`` while it drafts."""


def with_arguments(
    build: Build, arguments: Callable[[GenerateCall], Mapping[str, Any]], *, echoed: bool = True, prompt: bool = False
) -> Build:
    """Return a builder of the call that ``build`` builds, with the additional arguments ``arguments(engine)``.

    These are arguments of ``generate``. If ``prompt`` is true, the new arguments replace those of the prompt and are
    compared before and after the call. ``echoed``: whether the library returns the prompt before the new tokens; with
    embeddings as a prompt it does not.
    """

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            given = {**inputs, **arguments(engine)}
            if {
                "logits_processor"
            } <= given.keys() & extra.keys():  # whoever looks on does not replace what is looked at
                extra["logits_processor"] = [*given["logits_processor"], *extra["logits_processor"]]
            return engine.generate(speculative, **{**given, **extra})

        inputs = dict.fromkeys(engine.inputs) if prompt else {}
        held = arguments(engine) if prompt else engine.inputs
        return engine._replace(generate=generate, inputs=held, start=engine.start if echoed else ())

    return built


def of_embeddings(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments of ``generate`` for the prompt of ``engine`` as embeddings ``[1, length, width]``.

    With these arguments the library returns only new tokens.
    """
    embedded = engine.target.get_input_embeddings()(engine.inputs["input_ids"]).detach()
    return {"inputs_embeds": embedded, "attention_mask": engine.inputs["attention_mask"]}


def with_padding(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments of ``generate`` for the prompt of ``engine`` with its first token masked as padding.

    The positions then depend on the mask.
    """
    ids = engine.inputs["input_ids"]
    return {"input_ids": ids, "attention_mask": _mask_without(ids, 0)}


def with_a_hole(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments of ``generate`` for the prompt of ``engine`` with its third token masked out."""
    ids = engine.inputs["input_ids"]
    return {"input_ids": ids, "attention_mask": _mask_without(ids, 2)}


def two_prompts(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments of ``generate`` for a batch of two equal rows, each with the prompt of ``engine``."""
    return {name: value.repeat(2, 1) for name, value in engine.inputs.items()}


def with_filled_cache(engine: GenerateCall) -> dict[str, Any]:
    """Return the argument ``past_key_values``: a cache that already has the prompt of ``engine`` but its last token."""
    cache: Any = DynamicCache(config=engine.target.config)
    engine.target.forward(engine.inputs["input_ids"][:, :-1], past_key_values=cache, use_cache=True)
    return {"past_key_values": cache}


def with_a_tokenizer(_: GenerateCall) -> dict[str, Any]:
    """Return the argument ``tokenizer``: a tokenizer of single letters, which stop strings need."""
    return {"tokenizer": letters_tokenizer(len(LETTERS))}


def letters_tokenizer(vocabulary: int) -> Any:
    """Return a tokenizer of ``vocabulary`` tokens, in which token j is the j-th letter and text has no spaces."""
    tokenizer: Any = Tokenizer(
        models.WordLevel({LETTERS[token]: token for token in range(vocabulary)}, unk_token=LETTERS[0])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=tokenizer)


def with_a_counting_processor(_: GenerateCall) -> dict[str, Any]:
    """Return the argument ``logits_processor``: a list with one processor that counts its calls.

    Its effect is right only if it is called once per token.
    """
    return {"logits_processor": [counting_processor()]}


def counting_processor() -> Callable[[Any, Any], Any]:
    """Return a logits processor that favours token 0 at every second call.

    Its source is copied into scripts and needs torch alone.
    """
    calls = iter(range(2**62))

    def process(ids: Any, scores: Any) -> Any:
        bias = torch.zeros_like(scores)
        bias[:, 0] = next(calls) % 2
        return scores + bias

    return process


def with_a_last_token_criterion(_: GenerateCall) -> dict[str, Any]:
    """Return the argument ``stopping_criteria``: one criterion that reads only the last token, as most do."""
    return {"stopping_criteria": [last_token_is_one]}


def last_token_is_one(ids: Any, scores: Any) -> Any:
    """Return for each row of ``ids`` whether its last token is 1; ``scores`` is ignored.

    The source is copied into scripts.
    """
    return ids[:, -1] == 1


def broken_off_before(build: Build) -> Build:
    """Return a builder of the call of ``build``, before which a greedy call of the same models is interrupted.

    The greedy call is interrupted while it drafts.
    """

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def before() -> None:
            with suppress(BrokenOff), breaking_off(engine):
                engine.generate(do_sample=False)

        return engine._replace(before=before)

    return built


@contextmanager
def breaking_off(engine: GenerateCall) -> Iterator[None]:
    """In the ``with`` block, raise ``BrokenOff`` in the first forward pass of ``engine`` that drafts.

    This is a pass of the assistant, or a pass of the target with fewer layers.
    """
    layers = engine.target.config.num_hidden_layers

    def interrupt(model: Any, *_: Any) -> None:
        if model is not engine.target or model.config.num_hidden_layers != layers:
            raise BrokenOff

    hooks = [model.register_forward_pre_hook(interrupt) for model in engine.models]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def used_before(build: Build) -> Build:
    """Return a builder of the call of ``build``, preceded by a complete greedy call with the same objects."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def before() -> None:
            engine.generate(do_sample=False)

        return engine._replace(before=before)

    return built


def _mask_without(ids: Any, position: int) -> Any:
    mask = torch.ones_like(ids)
    mask[:, position] = 0
    return mask


def of_two_types(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments for the prompt of ``engine`` with a token type for each token, alternating 0 and 1."""
    types = torch.arange(engine.inputs["input_ids"].shape[1])[None] % 2
    return {**engine.inputs, "token_type_ids": types}


def of_padded_embeddings(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments for the prompt of ``engine`` as embeddings, after one embedding of padding."""
    return {**of_embeddings(engine), **with_padding(engine), "input_ids": None}


def at_other_positions(engine: GenerateCall) -> dict[str, Any]:
    """Return the arguments for the prompt of ``engine`` with position ids that have a gap."""
    positions = torch.arange(engine.inputs["input_ids"].shape[1])[None].clone()
    positions[:, -2:] += 3
    return {**engine.inputs, "position_ids": positions}


def with_allowed_tokens(_: GenerateCall) -> dict[str, Any]:
    """Return the argument ``prefix_allowed_tokens_fn``: a function that returns the tokens allowed after a text."""
    return {"prefix_allowed_tokens_fn": allowed_after}


def allowed_after(_: int, ids: Any) -> list[int]:
    """Return the tokens allowed after ``ids``: 2 never follows 1. Its source is copied into scripts."""
    return [0, 1] if ids[-1] == 1 else [0, 1, 2]


def with_a_negative_prompt(_: GenerateCall) -> dict[str, Any]:
    """Return the argument ``negative_prompt_ids``: a negative prompt, for classifier-free guidance."""
    return {"negative_prompt_ids": torch.tensor([[2, 2]])}


def at_the_last_position(build: Build) -> Build:
    """Return a builder of the call of ``build`` with no more positions than the prompt and the new tokens need."""

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
    """Return a builder of the call of ``build`` with a KV cache of 8-bit floats, which needs no further package."""
    return _with_options(build, lambda: {"cache_implementation": "quantized", "cache_config": {"backend": "fp8"}})


def with_healed_tokens(build: Build) -> Build:
    """Return a builder of the call of ``build`` with the option of token healing.

    The library then removes the last token of the prompt, and chooses a token again whose text begins with its text.
    """

    def options() -> dict[str, Any]:
        tokenizer = letters_tokenizer(4)
        tokenizer.pad_token = tokenizer.bos_token = tokenizer.unk_token = LETTERS[0]
        return {"token_healing": True, "tokenizer": tokenizer}

    return _with_options(build, options)


def with_eager_attention(build: Build) -> Build:
    """Return a builder of the call of ``build`` with eager attention; the default is PyTorch's attention."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)
        for model in engine.models:
            model.set_attn_implementation("eager")
        return engine

    return built


def in_low_precision(build: Build, dtype: str) -> Build:
    """Return a builder of the call of ``build`` with models in the 16-bit ``dtype``.

    The bound for the effect of rounding on the law takes the dtype into account.
    """

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
    """A streamer that records the token ids it receives."""

    def __init__(self) -> None:
        """Create an empty record."""
        self.told: list[Any] = []

    def put(self, value: Any) -> None:
        """Record the token ids ``value``."""
        self.told.append(value.reshape(1, -1))

    def end(self) -> None:
        """Do nothing: the library calls this at the end of the stream."""


def streamed(build: Build) -> Build:
    """Return a builder of the call of ``build`` that returns the tokens sent to a streamer.

    These are the prompt, then the new tokens.
    """

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            listener = Listener()
            engine.generate(speculative, streamer=listener, **extra)
            return torch.cat(listener.told, dim=1)

        return engine._replace(generate=generate)

    return built


def _with_options(build: Build, options: Callable[[], dict[str, Any]]) -> Build:
    """Return a builder of the call of ``build`` with further arguments of ``generate``.

    ``options()`` creates these arguments anew for each call.
    """

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def generate(speculative: bool = True, **extra: Any) -> Any:
            return engine.generate(speculative, **{**options(), **extra})

        return engine._replace(generate=generate)

    return built
