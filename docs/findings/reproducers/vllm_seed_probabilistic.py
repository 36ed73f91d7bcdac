"""vLLM 0.32.0: a seed does not decide the text where drafts are drawn, ``draft_sample_method="probabilistic"``.

Status 0 fixed, 1 present, 125 cannot be tested. Each request is made twice with its seed; control: greedy drafts.
A fault of the CPU build alone is mended first: it does not copy the temperature to drafted tokens.
"""

import os
import sys
import tempfile

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    from transformers import LlamaConfig, LlamaForCausalLM
    from vllm import LLM, SamplingParams
    from vllm.v1.sample import rejection_sampler

    def same(method):
        drafts = dict(method="draft_model", model=folder, num_speculative_tokens=2, draft_sample_method=method)
        llm = LLM(folder, speculative_config=drafts, skip_tokenizer_init=True, dtype="float32", enforce_eager=True)
        options = [SamplingParams(max_tokens=12, seed=i, ignore_eos=True, detokenize=False) for i in range(50)]
        asked = [{"prompt_token_ids": [3, 1, 2, 3, 1]}] * len(options)
        runs = [[each.outputs[0].token_ids for each in llm.generate(asked, options, use_tqdm=False)] for _ in "12"]
        return sum(one == other for one, other in zip(*runs, strict=True))

    sizes = dict(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=2, initializer_range=0.3)
    heads = dict(num_attention_heads=2, num_key_value_heads=1, head_dim=32, max_position_embeddings=64)
    rejection_sampler.expand_batch_to_tokens = lambda x, e, *_, **__: x.repeat_interleave(e.diff(prepend=0 * e[:1]))
    LlamaForCausalLM(LlamaConfig(**sizes, **heads)).save_pretrained(folder := tempfile.mkdtemp())
    control, got = same("greedy"), same("probabilistic")
    print(f"of 50 seeds {got} give the same text twice, with greedy drafts {control}; expected 50 and 50")
    sys.exit(125 if control < 50 else int(got < 50))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
