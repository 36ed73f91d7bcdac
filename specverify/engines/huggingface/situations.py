"""Situations that ``generate`` documents and that tests of speculation rarely put it in.

A prompt of embeddings, a cache passed in, masks with holes, processors and criteria that keep state, calls that were
broken off, objects used again. Each function takes a way of calling ``generate`` and returns that way in the situation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import DynamicCache, PreTrainedTokenizerFast

from specverify.engines.huggingface.generation import Build, GenerateCall
from specverify.engines.huggingface.tiny_models import EngineSetting

LETTERS = "abcdefgh"
"""The text of each token, where text matters."""


class BrokenOff(Exception):  # noqa: N818 - an interrupt, not an error
    """What breaks off a call."""


def with_arguments(
    build: Build, arguments: Callable[[GenerateCall], Mapping[str, Any]], *, echoed: bool = True, prompt: bool = False
) -> Build:
    """Return the way of calling in which ``arguments(engine)`` are passed as well, made anew for every call.

    With ``prompt`` they are the prompt, and must not change; unless ``echoed`` only the new tokens come back.
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
    """The prompt as embeddings ``[1, length, width]``; the library then returns only new tokens."""
    embedded = engine.target.get_input_embeddings()(engine.inputs["input_ids"]).detach()
    return {"inputs_embeds": embedded, "attention_mask": engine.inputs["attention_mask"]}


def with_padding(engine: GenerateCall) -> dict[str, Any]:
    """The prompt behind one token of padding, so that positions are counted from the mask."""
    ids = engine.inputs["input_ids"]
    return {"input_ids": ids, "attention_mask": _mask_without(ids, 0)}


def with_a_hole(engine: GenerateCall) -> dict[str, Any]:
    """The prompt with one token in its middle masked."""
    ids = engine.inputs["input_ids"]
    return {"input_ids": ids, "attention_mask": _mask_without(ids, 2)}


def two_prompts(engine: GenerateCall) -> dict[str, Any]:
    """Two prompts at once."""
    return {name: value.repeat(2, 1) for name, value in engine.inputs.items()}


def with_filled_cache(engine: GenerateCall) -> dict[str, Any]:
    """A cache that already holds all of the prompt but its last token."""
    cache: Any = DynamicCache(config=engine.target.config)
    engine.target.forward(engine.inputs["input_ids"][:, :-1], past_key_values=cache, use_cache=True)
    return {"past_key_values": cache}


def with_a_tokenizer(_: GenerateCall) -> dict[str, Any]:
    """A tokenizer of single letters, for stop strings."""
    return {"tokenizer": letters_tokenizer(len(LETTERS))}


def letters_tokenizer(vocabulary: int) -> Any:
    """Return a tokenizer in which token j is the j-th letter and text has no spaces."""
    tokenizer: Any = Tokenizer(
        models.WordLevel({LETTERS[token]: token for token in range(vocabulary)}, unk_token=LETTERS[0])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=tokenizer)


def with_a_counting_processor(_: GenerateCall) -> dict[str, Any]:
    """A processor that keeps state, and trusts to one call a token."""
    return {"logits_processor": [counting_processor()]}


def counting_processor() -> Callable[[Any, Any], Any]:
    """Return a processor that favours token 0 at every second call. Scripts hold its source: it needs torch alone."""
    calls = iter(range(2**62))

    def process(ids: Any, scores: Any) -> Any:
        bias = torch.zeros_like(scores)
        bias[:, 0] = next(calls) % 2
        return scores + bias

    return process


def with_a_last_token_criterion(_: GenerateCall) -> dict[str, Any]:
    """A stopping criterion that looks at the last token alone, as most that are written do."""
    return {"stopping_criteria": [last_token_is_one]}


def last_token_is_one(ids: Any, scores: Any) -> Any:
    """Say of each row whether its last token is 1. Scripts hold its source."""
    return ids[:, -1] == 1


def broken_off_before(build: Build) -> Build:
    """Return the way of calling after a first, greedy call that was broken off while it drafted."""

    def built(setting: EngineSetting) -> GenerateCall:
        engine = build(setting)

        def before() -> None:
            with suppress(BrokenOff), breaking_off(engine):
                engine.generate(do_sample=False)

        return engine._replace(before=before)

    return built


@contextmanager
def breaking_off(engine: GenerateCall) -> Iterator[None]:
    """Raise in the first forward pass that drafts: of the assistant, or of the target with fewer layers."""
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
    """Return the way of calling after a first, complete and greedy call with the same objects."""

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
