"""The forward pass of our tiny Whisper is that of transformers, with the same weights in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

from specverify.engines.crisperwhisper import network
from specverify.engines.crisperwhisper.network import encoded, next_logits, random_whisper, renamed

MODEL = random_whisper(1)
NORMS = {"self_attention": "self_attn_layer_norm", "attention": "encoder_attn_layer_norm", "ffn": "final_layer_norm"}
ATTENTIONS = {"self_attention": "self_attn", "attention": "encoder_attn"}


@pytest.fixture(scope="module")
def theirs():
    config = WhisperConfig(
        vocab_size=network.VOCABULARY,
        num_mel_bins=network.MELS,
        d_model=network.WIDTH,
        encoder_layers=network.LAYERS["encoder"],
        decoder_layers=network.LAYERS["decoder"],
        encoder_attention_heads=network.HEADS,
        decoder_attention_heads=network.HEADS,
        encoder_ffn_dim=network.INNER,
        decoder_ffn_dim=network.INNER,
        max_source_positions=network.FRAMES,
        max_target_positions=network.POSITIONS,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        tie_word_embeddings=False,
    )
    model = WhisperForConditionalGeneration(config).eval().double()
    model.load_state_dict({name: torch.tensor(value).double() for name, value in their_weights().items()})
    return model


def their_weights():
    found = {"proj_out.weight": MODEL.weights["decoder/projection/weight"]}
    for name, value in MODEL.weights.items():
        part, *path, last = name.split("/")
        begun = f"model.{part}"
        if path[:1] == ["layer"]:
            found |= their_layer(f"{begun}.layers.{path[1]}", path[2:], last, value)
        elif path == ["layer_norm"]:
            found[f"{begun}.layer_norm.{'weight' if last == 'gamma' else 'bias'}"] = value
        elif path != ["projection"]:
            names = {"embeddings": "embed_tokens.weight", "position_encodings": "embed_positions.weight"}
            found[f"{begun}.{names.get(path[0], f'{path[0]}.{last}')}"] = value
    return found


def their_layer(begun, path, last, value):
    room, *more = path
    if more[0] == "layer_norm":
        return {f"{begun}.{NORMS[room]}.{'weight' if last == 'gamma' else 'bias'}": value}
    if room == "ffn":
        return {f"{begun}.fc{int(more[0][-1]) + 1}.{last}": value}
    names = [["q_proj", "k_proj", "v_proj"], ["out_proj"]]
    if room == "attention":
        names = [["q_proj"], ["k_proj", "v_proj"], ["out_proj"]]
    split = zip(names[int(more[1])], np.split(value, len(names[int(more[1])])), strict=True)
    return {f"{begun}.{ATTENTIONS[room]}.{name}.{last}": item for name, item in split if (name, last) != KEY_BIAS}


KEY_BIAS = ("k_proj", "bias")
"""Whisper's keys have no bias; one adds the same to all scores of a query, so that ours changes no logit."""


def test_the_logits_are_those_of_transformers(theirs):
    sound = np.random.default_rng(0).standard_normal((network.MELS, 2 * network.FRAMES))
    tokens = (1, 5, 3, 7, 7, 2)
    with torch.no_grad():
        expected = theirs(torch.tensor(sound[None]), decoder_input_ids=torch.tensor([tokens])).logits[0].numpy()
    heard = encoded(MODEL, sound)
    got = [next_logits(MODEL, heard, tokens[: place + 1]) for place in range(len(tokens))]
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_a_renamed_model_is_the_same_with_other_ids():
    heard = encoded(MODEL, np.ones((network.MELS, 2 * network.FRAMES)))
    ids = np.random.default_rng(0).permutation(network.VOCABULARY)
    tokens = (0, 3, 4)
    got = next_logits(renamed(MODEL, ids), heard, tokens)
    np.testing.assert_allclose(got, next_logits(MODEL, heard, tuple(ids[list(tokens)]))[ids])
