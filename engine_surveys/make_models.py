"""Make the tiny models that engines are examined with, in the formats of those that need a file.

    python engine_surveys/make_models.py onnxruntime|openvino

It needs torch, transformers, and onnxruntime-genai with onnx-ir, or optimum-intel. What it makes is kept in the folder
of the engine, so that nobody else needs them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from specverify.laws.llama import Llama
from specverify.subjects.decoding import DRAFT_SEED, TARGET_SEED, tiny_llama

ENGINES = Path(__file__).parents[1] / "specverify" / "engines"
SEEDS = {"target": TARGET_SEED, "draft": DRAFT_SEED}


def checkpoint(model: Llama, folder: Path) -> None:
    """Write a model as transformers does, with a tokenizer whose words are the numbers of tokens."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    sizes = model.sizes
    config = LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.width,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head_width,
        max_position_embeddings=sizes.positions,
        rms_norm_eps=sizes.epsilon,
        rope_theta=sizes.theta,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    network = LlamaForCausalLM(config)
    network.load_state_dict({name: torch.tensor(value) for name, value in model.weights.items()})
    network.save_pretrained(folder)
    words = {f"t{token}": token for token in range(sizes.vocabulary)}
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "t0"))).save_pretrained(folder)


def onnxruntime(work: Path) -> None:
    """Build both models, and keep the configuration of one: they have the same sizes."""
    import onnx

    into = ENGINES / "onnxruntime" / "models"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "tiny", "-p", "fp32", "-e", "cpu"]
    for name in SEEDS:
        made = work / f"{name}-onnx"
        subprocess.run([*builder, "-i", work / name, "-o", made], check=True)
        onnx.save(onnx.load(made / "model.onnx"), into / f"{name}.onnx")  # with its weights inside
    shutil.copy(work / "target-onnx" / "genai_config.json", into)


def openvino(work: Path) -> None:
    """Export both models, each into its own folder."""
    from optimum.exporters.openvino import main_export

    for name in SEEDS:
        into = ENGINES / "openvino" / "models" / name
        shutil.rmtree(into, ignore_errors=True)
        main_export(work / name, into, task="text-generation-with-past", framework="pt", convert_tokenizer=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name, seed in SEEDS.items():
            checkpoint(tiny_llama(seed), Path(made) / name)
        {"onnxruntime": onnxruntime, "openvino": openvino}[sys.argv[1]](Path(made))
