"""Tiny Llama and GPT-2 models from their real config classes, and the settings they are examined with. No model hub.

The weights are seeded and scaled so that the models behave as trained ones do where it matters: next-token pmfs far
from uniform that depend on the whole context, so that a wrong cache entry, position or row cannot hide in the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from reference.types import Tokens

try:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
except ImportError as error:
    raise ImportError(
        'tiny Hugging Face models need torch and transformers: pip install "specverify-suite[hf]"'
    ) from error

HIDDEN_SIZE = 16
LAYERS = 2
HEADS = 2
POSITIONS = 64
WEIGHT_SCALE = 0.7
"""Standard deviation of every weight matrix: 16 normalised hidden units make logits of standard deviation 2.8."""

TARGET_SEED = 2
ASSISTANT_SEED = 3
"""Seeds of the weights, chosen so that the laws of ``SETTINGS`` are spread out and a third to a half of drafts stay."""


class EngineSetting(NamedTuple):
    """One complete configuration of ``generate``: models, warpers, draft length, stopping and prompt."""

    name: str
    architecture: str
    """A key of ``ARCHITECTURES``; target and assistant share it and differ in the seed of their weights."""
    temperature: float = 1.0
    top_k: int | None = None
    """None or 0 keeps every token."""
    top_p: float | None = None
    """None or 1 keeps every token."""
    gamma: int = 2
    """``num_assistant_tokens`` or ``prompt_lookup_num_tokens``."""
    horizon: int = 3
    """``max_new_tokens``."""
    vocabulary: int = 5
    prompt: Tokens = (3, 1, 2, 3, 1)
    eos: Tokens = ()


def check_setting(setting: EngineSetting) -> None:
    """Raise ``ValueError`` unless ``setting`` describes a sampled speculative run that can draft."""
    if not setting.temperature > 0:
        raise ValueError(f"{setting.name}: temperature is {setting.temperature}, expected a number > 0 (it is sampled)")
    if setting.gamma < 1 or setting.horizon < 2:
        raise ValueError(
            f"{setting.name}: gamma is {setting.gamma} and horizon {setting.horizon}, expected gamma >= 1 and "
            "horizon >= 2, below which the library drafts nothing"
        )
    if not setting.prompt or any(not 0 <= token < setting.vocabulary for token in setting.prompt + setting.eos):
        raise ValueError(
            f"{setting.name}: prompt {setting.prompt} and eos {setting.eos}, expected a non-empty prompt and ids in "
            f"0..{setting.vocabulary - 1}"
        )


def build_target(setting: EngineSetting) -> Any:
    """Return the target model of ``setting``."""
    return build_model(setting.architecture, setting.vocabulary, TARGET_SEED)


def build_assistant(setting: EngineSetting) -> Any:
    """Return the assistant of ``setting``, which alone carries the number of drafted tokens and how it changes."""
    assistant = build_model(setting.architecture, setting.vocabulary, ASSISTANT_SEED)
    assistant.generation_config.num_assistant_tokens = setting.gamma
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    return assistant


def build_model(architecture: str, vocabulary: int, seed: int) -> Any:
    """Return a float32 causal language model in eval mode on the CPU; equal arguments give equal weights.

    ``architecture`` is a key of ``ARCHITECTURES``. Matrices are normal with standard deviation ``WEIGHT_SCALE``, norms
    are 1 and biases 0, drawn in the order of parameter names: the library's initialisation plays no part, and torch's
    global generator is left as it was. No special token is set, where the config classes have an end-of-sequence id by
    default (2 for Llama). Raises ``ValueError`` for an unknown architecture or fewer than 2 tokens.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(f"the architecture is {architecture!r}, expected one of {', '.join(ARCHITECTURES)}")
    if vocabulary < 2:
        raise ValueError(f"the vocabulary has {vocabulary} tokens, expected at least 2")
    with torch.random.fork_rng(devices=[]):
        model = ARCHITECTURES[architecture](vocabulary)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weights in sorted(model.named_parameters()):
            if weights.ndim > 1:
                weights.normal_(0, WEIGHT_SCALE, generator=generator)
            else:
                weights.fill_(0.0 if name.endswith("bias") else 1.0)
    return model.eval()


def _llama(vocabulary: int) -> Any:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=HIDDEN_SIZE,
            intermediate_size=2 * HIDDEN_SIZE,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=1,
            max_position_embeddings=POSITIONS,
            **_COMMON,
        )
    )


def _gpt2(vocabulary: int) -> Any:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_embd=HIDDEN_SIZE,
            n_layer=LAYERS,
            n_head=HEADS,
            n_positions=POSITIONS,
            **_COMMON,
        )
    )


_COMMON: dict[str, Any] = {
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}

ARCHITECTURES: dict[str, Callable[[int], Any]] = {"llama": _llama, "gpt2": _gpt2}
"""Builder of each architecture: vocabulary size -> model with the library's own initial weights."""

_SAMPLING: dict[str, dict[str, Any]] = {
    "T=1": {},
    "T=0.7 top_k=3": {"temperature": 0.7, "top_k": 3, "gamma": 3, "horizon": 4, "vocabulary": 6},
    "T=1.3 top_k=4 top_p=0.9 eos=0": {
        "temperature": 1.3,
        "top_k": 4,
        "top_p": 0.9,
        "gamma": 3,
        "horizon": 4,
        "vocabulary": 6,
        "eos": (0,),
    },
}


SETTINGS: tuple[EngineSetting, ...] = tuple(
    EngineSetting(f"{architecture} {name}", architecture, **options)
    for architecture in ARCHITECTURES
    for name, options in _SAMPLING.items()
)
"""For both speculative paths: every prompt ends in two tokens that occurred before, so prompt lookup copies at once."""
