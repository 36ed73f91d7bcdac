"""Write the tiny models that engines are examined with, in each engine's file format.

    python tools/surveys/make_models.py onnxruntime|openvino|llama|llamacpp|node_llamacpp

It needs torch, transformers, and onnxruntime-genai with onnx-ir, or optimum-intel; or gguf alone. The models are kept
in the engine's folder, so that a survey does not need these packages.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from specverify.laws.llama import Llama
from specverify.subjects.decoding import DRAFT_SEED, TARGET_SEED, tiny_llama

ENGINES = Path(__file__).parents[2] / "specverify" / "engines"
SEEDS = {"target": TARGET_SEED, "draft": DRAFT_SEED}


def checkpoint(model: Llama, folder: Path) -> None:
    """Write a model as transformers does, with a tokenizer, which the format needs and no survey uses."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
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
    words = {"[UNK]": 0, "a": 1, "b": 2, "c": 3, "d": 4}
    tokenizer = Tokenizer(models.WordLevel(words, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"unk_token": "[UNK]", "pad_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)


def onnxruntime(work: Path) -> None:
    """Write both models for ONNX Runtime with one configuration: they have the same sizes."""
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
    """Write both models for OpenVINO, each in its own folder."""
    import openvino
    from openvino_tokenizers import convert_tokenizer
    from optimum.exporters.openvino import main_export
    from transformers import AutoTokenizer

    for name in SEEDS:
        into = ENGINES / "openvino" / "models" / name
        shutil.rmtree(into, ignore_errors=True)
        main_export(work / name, into, task="text-generation-with-past", framework="pt", convert_tokenizer=False)
        graphs = convert_tokenizer(AutoTokenizer.from_pretrained(work / name), with_detokenizer=True)
        for graph, kind in zip(graphs, ("tokenizer", "detokenizer"), strict=True):
            openvino.save_model(graph, into / f"openvino_{kind}.xml")


def llama(work: Path) -> None:
    """Write both models as GGUF, with the rows of queries and keys in the order of llama.cpp's rotary embedding."""
    from gguf import GGUFWriter

    into = ENGINES / "llama" / "models"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name, seed in SEEDS.items():
        _gguf(GGUFWriter(str(into / f"{name}.gguf"), "llama"), tiny_llama(seed), b"<unk> a b c d".split(), {0: 2})


def llamacpp(work: Path) -> None:
    """Write the models of llama.cpp's server; their last token is an end token."""
    from gguf import GGUFWriter

    from specverify.engines.llamacpp.weights import END, LETTERS, draft, target

    into = ENGINES / "llamacpp" / "models"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name, model in (("target", target()), ("draft", draft())):
        writer = GGUFWriter(str(into / f"{name}.gguf"), "llama")
        writer.add_eos_token_id(END)
        writer.add_bos_token_id(END)
        writer.add_unk_token_id(0)
        writer.add_add_bos_token(False)
        writer.add_add_space_prefix(False)
        _gguf(writer, model, [letter.encode() for letter in LETTERS], {END: 3})


def node_llamacpp(work: Path) -> None:
    """Write both models with a byte-pair vocabulary: node-llama-cpp aborts with a vocabulary of single letters."""
    from gguf import GGUFWriter

    into = ENGINES / "node_llamacpp" / "models"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name, seed in SEEDS.items():
        writer = GGUFWriter(str(into / f"{name}.gguf"), "llama")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges(["a b"])
        writer.add_bos_token_id(END_OF_PAIRS)
        writer.add_eos_token_id(END_OF_PAIRS)
        writer.add_add_bos_token(False)
        _gguf(writer, tiny_llama(seed), [b"a", b"b", b"ab", b"c", b"<e>"], {END_OF_PAIRS: 3}, "gpt2")


END_OF_PAIRS = 4
"""The last token of the vocabulary of byte pairs: a model without an end is refused."""


def _gguf(writer: Any, model: Llama, tokens: list[bytes], types: dict[int, int], tokenizer: str = "llama") -> None:
    """Write a model as GGUF; ``types`` maps ids of special tokens to their token types."""
    sizes = model.sizes
    writer.add_context_length(sizes.positions)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_rope_dimension_count(sizes.head_width)
    writer.add_key_length(sizes.head_width)
    writer.add_value_length(sizes.head_width)
    writer.add_rope_freq_base(sizes.theta)
    writer.add_layer_norm_rms_eps(sizes.epsilon)
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_tokenizer_model(tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * sizes.vocabulary)
    writer.add_token_types([types.get(token, 1) for token in range(sizes.vocabulary)])
    for key, value in model.weights.items():
        heads = {"q_proj": sizes.heads, "k_proj": sizes.kv_heads}.get(key.split(".")[-2], 0)
        if heads:
            halves = value.reshape(heads, 2, sizes.head_width // 2, -1)
            value = halves.swapaxes(1, 2).reshape(value.shape)  # noqa: PLW2901 - the same rows in another order
        writer.add_tensor(_gguf_name(key), value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(key: str) -> str:
    for said, name in GGUF_NAMES.items():
        key = key.replace(said, name)
    return key


GGUF_NAMES = {
    "model.layers.": "blk.",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


MAKERS = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "llama": llama,
    "llamacpp": llamacpp,
    "node_llamacpp": node_llamacpp,
}
OF_CHECKPOINTS = ("onnxruntime", "openvino")
"""Those that are converted from a checkpoint of transformers."""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name, seed in SEEDS.items() if sys.argv[1] in OF_CHECKPOINTS else ():
            checkpoint(tiny_llama(seed), Path(made) / name)
        MAKERS[sys.argv[1]](Path(made))
