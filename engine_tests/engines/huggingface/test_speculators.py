"""Speculators that the library builds or refuses."""

from __future__ import annotations

import pytest
import torch

from engine_tests.engines.huggingface.test_architectures import built, drafting, generated
from specverify.engines.huggingface.real_generate import quiet_and_seeded
from specverify.engines.huggingface.speculators import dflash_assistant, gemma4_pair, mtp_target, two_tokenizers

VOCABULARY = 4

PROMPT = (0, 1, 2, 0, 1)


def test_prediction_layers_are_read_from_the_checkpoint():
    """What the library loads is seeded, scaled as written, and of as many layers as asked for."""
    from transformers.modeling_layers import MtpModel

    with quiet_and_seeded(0):
        layers = [dict(MtpModel.from_pretrained(mtp_target(VOCABULARY, 2, 2)).named_parameters()) for _ in range(2)]
    assert {name.split(".")[1] for name in layers[0] if name.startswith("layers.")} == {"0", "1"}
    assert all(torch.equal(weights, layers[1][name]) for name, weights in layers[0].items())
    assert layers[0]["layers.0.eh_proj.weight"].std() > 0.3
    assert not torch.equal(layers[0]["layers.0.eh_proj.weight"], layers[0]["layers.1.eh_proj.weight"])


def test_the_library_builds_no_gemma_4_assistant():
    with pytest.raises(
        ValueError, match=r"^The set of layer types producing a cache is different than the set of layer"
    ):
        gemma4_pair(VOCABULARY, 2, repaired=False)


def test_an_assistant_whose_letters_are_all_the_targets_is_not_mapped():
    """Nothing to prune, but the list of what was kept is read: the library's own ``AttributeError``."""
    made = two_tokenizers(2, alphabet="abc", order="abc")
    tokenizers = {"tokenizer": made.target_tokenizer, "assistant_tokenizer": made.assistant_tokenizer}
    with pytest.raises(AttributeError, match="assistant_overlap_token_ids"):
        generated(made.target, sample=True, assistant_model=drafting(made.assistant), **tokenizers)


def test_what_cannot_be_built_is_refused():
    with pytest.raises(ValueError, match="the model has 0 layers for multi-token prediction, expected at least 1"):
        mtp_target(VOCABULARY, 2, 0)
    with pytest.raises(ValueError, match="the block has 1 tokens, expected at least 2"):
        dflash_assistant(built("llama"), 3, block=1)
    with pytest.raises(ValueError, match="the order is 'ab', expected the letters of 'abc' rearranged"):
        two_tokenizers(2, alphabet="abc", order="ab")
