"""A right engine that replaces the compiled openvino-genai: its models in OpenVINO, this project's decoding."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mends.mending import Change, Ours

from reference import Tokens, speculative_generate, warped


class Answer(NamedTuple):
    """The tokens that a pipeline returns."""

    tokens: list[list[int]]


class Pipeline:
    """Replacement for openvino-genai's ``LLMPipeline`` with a draft model."""

    def __init__(self, target, draft) -> None:
        """Store two functions from tokens to logits: that of the target and that of the draft model."""
        self.models = (target, draft)

    def generate(self, prompt, config):
        """Return the text decoded with the options and the seed of ``config``."""
        options = {"temperature": config.temperature if config.do_sample else 0.0}
        if config.do_sample:
            options |= {"top_k": config.top_k, "top_p": None if config.top_p == 1 else config.top_p}
        target, draft = (
            warped(model, repetition_penalty=config.repetition_penalty, **options) for model in self.models
        )
        found = speculative_generate(
            target,
            draft,
            tuple(prompt.data[0].tolist()),
            max_new_tokens=config.max_new_tokens,
            gamma=config.num_assistant_tokens,
            eos=tuple(config.stop_token_ids),
            seed=config.rng_seed,
        )
        return Answer([list(found.tokens)])


@cache
def logits_of(folder: str) -> Any:
    """Return a function from tokens to logits: OpenVINO in float32, one forward pass without a cache."""
    import numpy as np
    import openvino

    network = openvino.Core().compile_model(
        str(Path(folder) / "openvino_model.xml"),
        "CPU",
        {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    )
    request = network.create_infer_request()

    @cache
    def logits(tokens: Tokens) -> Any:
        places = np.arange(len(tokens))[None]
        request.reset_state()
        given = {"input_ids": np.array([tokens]), "attention_mask": np.ones_like(places), "position_ids": places}
        found = request.infer({**given, "beam_idx": np.zeros(1, dtype=np.int32)})
        return found["logits"][0, -1].astype(float)

    return logits


def ours(library: Any) -> Any:
    """Return the replacement of the function that opens a drafting pipeline; a cached pipeline is discarded."""
    from specverify.engines.openvino import adapter

    adapter.draft_without_prefixes.cache_clear()
    return lambda *plans: Pipeline(*(logits_of(str(adapter.MODELS / name)) for name in ("target", "draft")))


OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "a rejection is handled one iteration late": (Ours("specverify.engines.openvino.adapter:_drafting", ours),),
}
