"""A right engine in the place of openvino-genai, which is compiled: its models in OpenVINO, our decoding."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mends.mending import Change, Ours

from reference import Tokens, speculative_generate, warped


class Answer(NamedTuple):
    """What a pipeline returns."""

    tokens: list[list[int]]


class Pipeline:
    """Answers calls as ``LLMPipeline`` with a draft model does."""

    def __init__(self, target, draft) -> None:
        """Hold the logits of both models after tokens."""
        self.models = (target, draft)

    def generate(self, prompt, config):
        """Return the text of the configuration's seed."""
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
    """Return the logits after tokens, by OpenVINO itself in float32, the whole text in one pass."""
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
    """Return the way to a pipeline that drafts; one that was opened before is forgotten."""
    from specverify.engines.openvino import adapter

    adapter.draft_without_prefixes.cache_clear()
    return lambda *plans: Pipeline(*(logits_of(str(adapter.MODELS / name)) for name in ("target", "draft")))


OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "a rejection is handled an iteration late": (Ours("specverify.engines.openvino.adapter:_drafting", ours),),
}
