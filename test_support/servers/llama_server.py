"""llama.cpp's server on the loopback address, with tiny models of letters that are written here.

    python test_support/servers/llama_server.py [--draft greedy|probabilistic] [--parallel 8]

It prints its address in one line, and serves until its standard input ends. The package ``xllamacpp`` is the real
server in this process; its caches hold float32, so the law of plain decoding is that of the log-probabilities.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specverify.laws.llama import LlamaSizes, random_llama

VOCABULARY = ("<unk>", "<s>", "</s>", "a", "b", "c", "d", "e")
"""The ids of the letters are 3 to 7; ``</s>`` ends a text."""
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
KINDS = (UNKNOWN, CONTROL, CONTROL, *[NORMAL] * 5)
END = 2
TARGET_SEED, DRAFT_SEED = 3, 4
SPREAD = 3.0
"""Deviation of the logits: few texts are likely, so few samples tell two laws apart."""
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


def letters_model(seed):
    return random_llama(seed, LlamaSizes(vocabulary=len(VOCABULARY)), spread=SPREAD)


def write_model(file, seed):
    """Write a Llama of random weights as GGUF, queries and keys in llama.cpp's order of rows."""
    from gguf import GGUFWriter

    model = letters_model(seed)
    sizes, writer = model.sizes, GGUFWriter(str(file), "llama")
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
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in VOCABULARY])
    writer.add_token_scores([0.0] * len(VOCABULARY))
    writer.add_token_types(list(KINDS))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    for key, value in model.weights.items():
        heads = {"q_proj": sizes.heads, "k_proj": sizes.kv_heads}.get(key.split(".")[-2])
        rows = value if heads is None else interleave(value, heads)
        name = key
        for checkpoint, gguf in GGUF_NAMES.items():
            name = name.replace(checkpoint, gguf)
        writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleave(rows, heads):
    """Return the rows of each head with the two rows of a rotated pair beside each other."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1)
    return halves.swapaxes(1, 2).reshape(rows.shape)


def parameters(folder, draft, parallel, key):
    """Return the parameters of a server whose law is that of its models in float32."""
    import xllamacpp as xl

    full = xl.ggml_type.GGML_TYPE_F32
    given = xl.CommonParams()
    given.model.path = str(folder / "target.gguf")
    given.n_parallel, given.n_ctx = parallel, 64 * parallel
    given.n_batch = given.n_ubatch = 64
    given.fit_params = given.warmup = False
    given.n_gpu_layers, given.verbosity = 0, -1
    given.flash_attn_type = xl.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED  # rounds to float16
    given.cache_type_k = given.cache_type_v = full
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    given.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    given.api_keys = [key] if key else []
    if draft != "none":
        drafts = given.speculative.draft
        given.speculative.types = [xl.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        drafts.mparams.path = str(folder / "draft.gguf")
        drafts.probabilistic, drafts.n_max, drafts.n_gpu_layers = draft == "probabilistic", 3, 0
        drafts.cache_type_k = drafts.cache_type_v = full
        drafts.cpuparams.n_threads = drafts.cpuparams_batch.n_threads = 1
    return given


@contextmanager
def start_server(draft: str = "none", key: str = "") -> Iterator[str]:
    """Start a server in a process of its own and yield its address."""
    command = [sys.executable, __file__, "--draft", draft, "--key", key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draft", choices=("none", "greedy", "probabilistic"), default="none")
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--key", default="")
    given = parser.parse_args()
    import xllamacpp as xl

    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "target.gguf", TARGET_SEED)
        write_model(Path(folder) / "draft.gguf", DRAFT_SEED)
        server = xl.Server(parameters(Path(folder), given.draft, given.parallel, given.key))
        sys.stdout.write(server.listening_address + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
