"""``generate`` of transformers with an assistant against ``generate`` without: the same law of two tokens."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from specverify.testing import SpeculationRefuted, check_engine

SIZE = dict(vocab_size=3, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
PROMPT = torch.tensor([[0, 1, 2, 1]])
logging.set_verbosity_error()


def model(seed: int) -> LlamaForCausalLM:
    """Return a tiny model; your own stands here."""
    torch.manual_seed(seed)
    config = LlamaConfig(**SIZE, initializer_range=1.0, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    return LlamaForCausalLM(config).eval()


target, draft = model(1), model(2)
draft.generation_config.num_assistant_tokens = 2
draft.generation_config.num_assistant_tokens_schedule = "constant"


def generated(*, temperature: float = 1.0, **more: object) -> torch.Tensor:
    """Return the two tokens that follow the prompt."""
    sampling = dict(do_sample=True, top_k=0, temperature=temperature, max_new_tokens=2)
    return target.generate(PROMPT, **sampling, **more)[0, PROMPT.shape[1] :]


def test_assisted_generation() -> None:
    """Speculation changes nothing."""
    check_engine(lambda: generated(assistant_model=draft), generated, models=[target, draft], checks=["law_is_target"])


def test_another_temperature_is_refuted() -> None:
    """It does notice what does."""
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_engine(
            lambda: generated(assistant_model=draft, temperature=0.7), generated, models=[target, draft],
            checks=["law_is_target"],
        )  # fmt: skip
