"""vLLM 0.32.0: with drafts ``logprob_token_ids`` returns nothing, and with ``logprobs`` beside it the call raises.

Status 0 fixed, 1 present, 125 cannot be tested. Greedy texts with n-gram drafts. The control is the same without.
"""

import os
import sys
import tempfile

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "CRITICAL"}
try:
    from transformers import LlamaConfig, LlamaForCausalLM, set_seed
    from vllm import LLM, SamplingParams

    SIZES = dict(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2)
    DRAFTS = dict(method="ngram", num_speculative_tokens=2, prompt_lookup_max=2, prompt_lookup_min=1)

    def told(**more):
        llm, result = LLM(folder, skip_tokenizer_init=True, dtype="float32", enforce_eager=True, **more), []
        for extra in ({}, {"logprobs": 2}):
            options = SamplingParams(temperature=0, max_tokens=4, detokenize=False, logprob_token_ids=[1, 2], **extra)
            try:
                (answer,) = llm.generate({"prompt_token_ids": [3, 1, 2, 3, 1]}, options, use_tqdm=False)
                result.append([sorted(each) for each in answer.outputs[0].logprobs])
            except RuntimeError as error:
                result.append(f"{type(error).__name__}: {error}")
        return result

    set_seed(0)
    LlamaForCausalLM(LlamaConfig(**SIZES, initializer_range=0.3)).save_pretrained(folder := tempfile.mkdtemp())
    control, got = told(), told(speculative_config=DRAFTS)
    print(f"expected the tokens whose log-probabilities are returned {control}, got {got}")
    sys.exit(125 if not all({1, 2} <= set(each) for row in control for each in row) else int(got != control))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
