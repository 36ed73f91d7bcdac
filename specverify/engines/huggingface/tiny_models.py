"""Settings of ``generate`` with tiny seeded Llama and GPT-2 models; nothing is downloaded."""

from __future__ import annotations

from typing import Any, NamedTuple

from specverify.engines.huggingface import architectures
from specverify.engines.huggingface.architectures import build_model
from specverify.reference.types import Tokens

__all__ = [
    "ASSISTANT_SEED",
    "SAMPLED_ARCHITECTURES",
    "SETTINGS",
    "TARGET_SEED",
    "EngineSetting",
    "build_assistant",
    "build_model",
    "build_target",
    "check_setting",
]

TARGET_SEED = 2
ASSISTANT_SEED = 3
"""Seed of the assistant's weights. Both seeds are chosen so that the laws of ``SETTINGS`` are spread out and a third to
a half of the drafts are accepted."""


class EngineSetting(NamedTuple):
    """One complete configuration of ``generate``: models, warpers, draft length, stopping and prompt.

    ``name`` is its name in reports, ``temperature`` that of the sampling, ``vocabulary`` the number of tokens of the
    models, and ``eos`` are the end-of-sequence tokens.
    """

    name: str
    architecture: str
    """A key of ``architectures.ARCHITECTURES``, for target and assistant, which have different weights."""
    temperature: float = 1.0
    top_k: int | None = None
    """``top_k`` of the sampling; None or 0 means no truncation."""
    top_p: float | None = None
    """``top_p`` of the sampling; None or 1 means no truncation."""
    gamma: int = 2
    """``num_assistant_tokens`` or ``prompt_lookup_num_tokens``."""
    horizon: int = 3
    """Largest number of new tokens, ``max_new_tokens``."""
    vocabulary: int = 5
    prompt: Tokens = (3, 1, 2, 3, 1)
    eos: Tokens = ()
    sample: bool = True
    """Whether to sample; False means greedy decoding."""
    options: tuple[tuple[str, Any], ...] = ()
    """Further entries of the ``GenerationConfig``; tuples stand for lists."""
    assistant: tuple[tuple[str, Any], ...] = ()
    """Entries of the assistant's own generation config."""


def check_setting(setting: EngineSetting) -> None:
    """Raise ``ValueError`` unless ``setting`` samples and can draft, with a valid prompt and valid end tokens.

    Drafts need a gamma of at least 1 and a horizon of at least 2. The prompt must not be empty, and all ids must be
    below the vocabulary size.
    """
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
    """Return the assistant of ``setting``; the function ``drafts_as`` sets how many tokens it drafts."""
    return build_model(setting.architecture, setting.vocabulary, ASSISTANT_SEED)


SAMPLED_ARCHITECTURES = {name: architectures.ARCHITECTURES[name] for name in ("llama", "gpt2")}
"""The architectures of ``SETTINGS``; ``build_model`` supports more."""

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
    for architecture in SAMPLED_ARCHITECTURES
    for name, options in _SAMPLING.items()
)
"""Settings for assisted generation and prompt lookup. Every prompt ends in two tokens that occurred before, so prompt
lookup copies at once."""
