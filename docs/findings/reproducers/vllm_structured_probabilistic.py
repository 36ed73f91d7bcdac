"""vLLM 0.32.0: with drawn drafts a structured output has another law: forbidden drafts are dropped, not rejected.

Status 0 fixed, 1 present, 125 cannot be tested. ``allowed_token_ids``, the control, has the law of the grammar.
"""

import os
import sys
import tempfile
from collections import Counter

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.sample import rejection_sampler

    def law(**more):
        texts = llm.generate([{"prompt_token_ids": [2]}] * 1500, SamplingParams(max_tokens=2, ignore_eos=True, **more))
        return Counter(tuple(each.outputs[0].token_ids) for each in texts)

    rejection_sampler.expand_batch_to_tokens = lambda x, e, *_, **__: x.repeat_interleave(e.diff(prepend=0 * e[:1]))
    tiny = LlamaConfig(vocab_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.3)
    set_seed(0)
    for folder in (target := tempfile.mkdtemp(), draft := tempfile.mkdtemp()):
        LlamaForCausalLM(tiny).save_pretrained(folder)
    letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("abcdefgh")}, []))
    PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="h").save_pretrained(target)  # noqa: S106
    drafts = dict(method="draft_model", model=draft, num_speculative_tokens=1, draft_sample_method="probabilistic")
    llm = LLM(target, speculative_config=drafts, dtype="float32", enforce_eager=True, max_num_seqs=64)
    control, other = (law(allowed_token_ids=[0, 4]) for _ in range(2))
    got = law(structured_outputs=StructuredOutputsParams(regex="[ae]{16}"))
    apart, chance = (sum(((each - control) + (control - each)).values()) / 3000 for each in (got, other))
    print(f"expected a total variation below 0.1 from the allowed tokens, got {apart:.3f}; control {chance:.3f}")
    sys.exit(125 if chance > 0.1 else int(apart > 0.1))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
