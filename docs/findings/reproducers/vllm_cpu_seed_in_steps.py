"""vLLM 0.32.0, CPU build: a request with a seed raises if its prompt is read in several steps, without drafts too.

    python vllm_cpu_seed_in_steps.py

Status 0 fixed, 1 present, 125 cannot be tested. The control is the same request without a seed.
"""

import os
import sys
import tempfile

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "CRITICAL"}
try:
    from transformers import LlamaConfig, LlamaForCausalLM
    from vllm import LLM, SamplingParams

    sizes = dict(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=2, max_position_embeddings=64)
    heads = dict(num_attention_heads=2, num_key_value_heads=1, head_dim=32)
    steps = dict(max_num_batched_tokens=16, max_num_seqs=4, skip_tokenizer_init=True)
    folder = tempfile.mkdtemp()
    LlamaForCausalLM(LlamaConfig(**sizes, **heads)).save_pretrained(folder)
    llm = LLM(folder, dtype="float32", enforce_eager=True, **steps)
    asked = {"prompt_token_ids": [1, 2, 3] * 8}
    llm.generate(asked, SamplingParams(max_tokens=4, detokenize=False), use_tqdm=False)
    try:
        llm.generate(asked, SamplingParams(seed=1, max_tokens=4, detokenize=False), use_tqdm=False)
        said = ""
    except RuntimeError as error:
        said = str(error)
    print(f"expected a text, got {said or 'a text'}", flush=True)
    sys.exit(int("offset" in said))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
