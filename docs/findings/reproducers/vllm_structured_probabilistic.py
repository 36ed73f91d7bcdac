"""vLLM 0.32.0: with drawn drafts a structured output has another law: forbidden drafts are dropped, not rejected.

Status 0 fixed, 1 present, 125 cannot be tested. Texts of a grammar have the law of ``allowed_token_ids``, the control;
1 500 texts do not differ by 0.1 by chance. Scheduling is synchronous. A fault of the CPU build is mended first.
"""

import os
import sys
import tempfile
from collections import Counter

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.sample import rejection_sampler

    def expand(x, ends, number, replace_from=0, replace_to=0):
        counts = torch.diff(ends.long(), prepend=torch.zeros(1, dtype=torch.long))
        return torch.where(x == replace_from, torch.full_like(x, replace_to), x).repeat_interleave(counts)

    def law(**more):
        options = SamplingParams(max_tokens=2, ignore_eos=True, **more)
        answers = llm.generate([{"prompt_token_ids": [3, 1, 2, 3, 1]}] * 1500, options, use_tqdm=False)
        return Counter(tuple(each.outputs[0].token_ids) for each in answers)

    sizes = dict(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=2, initializer_range=0.3)
    heads = dict(num_attention_heads=2, num_key_value_heads=1, head_dim=32, max_position_embeddings=64, eos_token_id=7)
    rejection_sampler.expand_batch_to_tokens = expand
    folders = [tempfile.mkdtemp() for _ in range(2)]
    for seed, folder in zip((2, 0), folders, strict=True):
        torch.manual_seed(seed)
        LlamaForCausalLM(LlamaConfig(**sizes, **heads)).save_pretrained(folder)
        letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("abcdefgh")}, []))
        PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="h").save_pretrained(folder)  # noqa: S106
    drafts = dict(method="draft_model", model=folders[1], num_speculative_tokens=1, draft_sample_method="probabilistic")
    llm = LLM(folders[0], speculative_config=drafts, dtype="float32", enforce_eager=True, max_num_seqs=64)
    allowed = [law(allowed_token_ids=[0, 4]) for _ in range(2)]
    got = law(structured_outputs=StructuredOutputsParams(regex="[ae]{16}"))
    apart, chance = (sum(((each - allowed[0]) + (allowed[0] - each)).values()) / 3000 for each in (got, allowed[1]))
    print(f"expected a total variation below 0.1 from the allowed tokens, got {apart:.3f}; control {chance:.3f}")
    sys.exit(125 if chance > 0.1 else int(apart > 0.1))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
