"""The forward pass that laws of other engines come from is that of transformers, within its float32 positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specverify.laws.llama import LlamaSizes, all_logits, random_llama

TOKENS = (3, 1, 2, 3, 1, 0, 4, 4)


@pytest.mark.parametrize("sizes", [LlamaSizes(), LlamaSizes(7, 24, 20, 1, 4, 2, 8)])
def test_it_is_the_forward_pass_of_transformers(sizes):
    ours = random_llama(3, sizes)
    config = LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.width,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head_width,
        rms_norm_eps=sizes.epsilon,
        rope_theta=sizes.theta,
    )
    theirs = LlamaForCausalLM(config).double()
    theirs.load_state_dict({name: torch.tensor(value) for name, value in ours.weights.items()})
    with torch.no_grad():
        expected = theirs(torch.tensor([TOKENS])).logits[0].numpy()
    assert np.abs(all_logits(ours, TOKENS) - expected).max() < 5e-6  # it turns positions in float32
