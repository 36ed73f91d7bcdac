"""Tiny audio and image models, each from its real config class: Whisper, LLaVA, Qwen2-VL.

The parameter ``vocabulary`` of the functions here is the number of tokens of a model, and ``seed`` selects its weights.
A builder is a function that takes a setting and returns the call of ``generate`` at this setting.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers

from specverify.engines.huggingface.architectures import ARCHITECTURES, fill
from specverify.engines.huggingface.generation import Build, GenerateCall, call_of, drafts_as, sampling_config
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, EngineSetting, build_assistant

_library: Any = transformers
SCALE = 0.5
"""Standard deviation of every weight matrix."""
FRAMES, MELS = 8, 4
PIXELS = 4
"""Width of an image in pixels; its patches of 2 x 2 pixels are four tokens."""


def whisper(vocabulary: int, seed: int, kind: str = "WhisperForConditionalGeneration") -> Any:
    """Return a Whisper model of the class of transformers called ``kind``, with random weights from ``seed``.

    The class may be that of the decoder alone. The last of the ``vocabulary`` tokens is both the end and the padding
    token, as in the released models.
    """
    config = _library.WhisperConfig(
        vocab_size=vocabulary,
        num_mel_bins=MELS,
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=FRAMES // 2,
        max_target_positions=32,
        decoder_start_token_id=0,
        pad_token_id=vocabulary - 1,
        eos_token_id=vocabulary - 1,
        bos_token_id=None,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return _filled(kind, config, seed)


def whisper_engine(kind: str | None = "WhisperForConditionalGeneration") -> Build:
    """Return a builder of a transcription by Whisper with speculation.

    The assistant is a Whisper model of the class ``kind``; with None, drafts come from prompt lookup. The result of the
    call keeps special tokens at both ends, which Whisper's ``generate`` removes by default.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        target = whisper(setting.vocabulary, TARGET_SEED)
        assistants = () if kind is None else (whisper(setting.vocabulary, ASSISTANT_SEED, kind),)
        for assistant in assistants:
            drafts_as(assistant, setting)
        drafting: dict[str, Any] = {"assistant_model": assistants[0]} if assistants else {}
        if not assistants:
            drafting = {"prompt_lookup_num_tokens": setting.gamma, "max_matching_ngram_size": 1}
        inputs, config = {"input_features": _noise(1, MELS, FRAMES)}, sampling_config(setting)
        config.eos_token_id = setting.vocabulary - 1  # a list of one is another thing to it
        config.pad_token_id = setting.vocabulary - 1

        def generate(speculative: bool = True, **extra: Any) -> Any:
            given = {**inputs, **(drafting if speculative else {}), "return_dict_in_generate": True, **extra}
            temperature = float(setting.temperature) if setting.sample else 0.0
            return target.generate(**given, temperature=temperature, generation_config=copy.deepcopy(config)).sequences

        models = (target, *assistants)
        configs = tuple(copy.deepcopy(model.generation_config) for model in models)
        return GenerateCall(
            models, generate, (0,), inputs, configs, beside={"generation_config that is passed": config}
        )

    return build


def llava(vocabulary: int, seed: int) -> Any:
    """Return a LLaVA model with random weights from ``seed`` and ``vocabulary`` tokens; the last is an image patch."""
    config = _library.LlavaConfig(
        vision_config=_library.CLIPVisionConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=PIXELS,
            patch_size=2,
            projection_dim=16,
        ),
        text_config=_library.LlamaConfig(vocab_size=vocabulary, **ARCHITECTURES["llama"].options),
        image_token_id=vocabulary - 1,
        vision_feature_layer=-1,
        pad_token_id=None,
        tie_word_embeddings=False,
    )
    return _filled("LlavaForConditionalGeneration", config, seed)


def qwen2_vl(vocabulary: int, seed: int) -> Any:
    """Return a Qwen2-VL model with random weights from ``seed`` and ``vocabulary`` tokens; the last is an image patch.

    Its positions have three dimensions.
    """
    rope = {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0}
    config = _library.Qwen2VLConfig(
        vision_config={
            "depth": 1,
            "embed_dim": 16,
            "hidden_size": 16,
            "num_heads": 2,
            "mlp_ratio": 1,
            "patch_size": 2,
            "spatial_merge_size": 1,
            "temporal_patch_size": 1,
            "in_channels": 3,
        },
        text_config={"vocab_size": vocabulary, **ARCHITECTURES["qwen2"].options, "rope_parameters": rope},
        image_token_id=vocabulary - 1,
        video_token_id=99,
        vision_start_token_id=98,
        vision_end_token_id=97,
        tie_word_embeddings=False,
    )
    return _filled("Qwen2VLForConditionalGeneration", config, seed)


def llava_engine(assistant: str | None) -> Build:
    """Return a builder of a call of LLaVA with an image in the prompt.

    ``assistant`` is "llava" (another LLaVA), the key of a text model in ``ARCHITECTURES``, or None for prompt lookup.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        return _seeing(setting, llava(setting.vocabulary, TARGET_SEED), assistant, {"pixel_values": _noise(1, 3, 4, 4)})

    return build


def qwen2_vl_engine(assistant: str | None) -> Build:
    """Return a builder of a call of Qwen2-VL with an image in the prompt.

    ``assistant`` is "qwen2-vl" (another Qwen2-VL), the key of a text model in ``ARCHITECTURES``, or None for prompt
    lookup.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        image = torch.tensor([setting.prompt]) == setting.vocabulary - 1
        seen = {
            "pixel_values": _noise(4, 12),
            "image_grid_thw": torch.tensor([[1, 2, 2]]),
            "mm_token_type_ids": image.long(),
        }
        return _seeing(setting, qwen2_vl(setting.vocabulary, TARGET_SEED), assistant, seen)

    return build


_OF_ONE_KIND = {"llava": llava, "qwen2-vl": qwen2_vl}


def _seeing(setting: EngineSetting, target: Any, assistant: str | None, seen: dict[str, Any]) -> GenerateCall:
    """Return a call of ``target`` with an image in the prompt; ``seen`` are the arguments that pass the image.

    ``setting`` has the prompt and the sampling options. ``assistant`` is the draft model: "llava", "qwen2-vl", a key of
    ``ARCHITECTURES``, or None for prompt lookup.
    """
    if assistant is None:
        engine = call_of(setting, target, drafting={"prompt_lookup_num_tokens": setting.gamma})
    else:
        drafter = (
            _OF_ONE_KIND[assistant](setting.vocabulary, ASSISTANT_SEED)
            if assistant in _OF_ONE_KIND
            else build_assistant(setting._replace(architecture=assistant))
        )
        drafts_as(drafter, setting)
        engine = call_of(setting, target, (drafter,), call={"assistant_model": drafter})

    def generate(speculative: bool = True, **extra: Any) -> Any:
        return engine.generate(speculative, **{**seen, **extra})

    return engine._replace(generate=generate, inputs={**engine.inputs, **seen})


def _filled(kind: str, config: Any, seed: int) -> Any:
    with torch.random.fork_rng(devices=[]):
        return fill(getattr(_library, kind)(config), seed, SCALE)


def _noise(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))
