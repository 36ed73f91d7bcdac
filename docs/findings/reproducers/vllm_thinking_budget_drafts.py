"""vLLM 0.32.0: with drafts a text thinks longer than ``thinking_token_budget``, here 0.

Status 0 fixed, 1 present, 125 cannot be tested. Greedy texts: behind each start of thinking, token 0, comes its end,
token 1. The control is the same without drafts.
"""

import os
import sys
import tempfile
from itertools import product

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
    from vllm import LLM, SamplingParams
    from vllm.config import ReasoningConfig

    def too_long(**more):
        think = ReasoningConfig(reasoning_start_str="a", reasoning_end_str="b")
        llm = LLM(folder, reasoning_config=think, dtype="float32", enforce_eager=True, max_num_seqs=64, **more)
        asked = [{"prompt_token_ids": list(prompt)} for prompt in product(range(8), repeat=3)]
        options = SamplingParams(temperature=0, max_tokens=14, ignore_eos=True, thinking_token_budget=0)
        answers = llm.generate(asked, options, use_tqdm=False)
        texts = ["".join(map(str, each.outputs[0].token_ids)) for each in answers]
        return [text for text in texts if "0" in (text + "1").replace("01", "")]

    set_seed(0)
    tiny = LlamaConfig(vocab_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.3)
    LlamaForCausalLM(tiny).save_pretrained(folder := tempfile.mkdtemp())
    letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("abcdefgh")}, []))
    PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="h").save_pretrained(folder)  # noqa: S106
    drafts = dict(method="ngram", num_speculative_tokens=2, prompt_lookup_max=2, prompt_lookup_min=1)
    control, got = too_long(), too_long(speculative_config=drafts)
    print(f"expected no text of 512 that thinks, got {len(got)}, such as {got[:1]}; control {len(control)}")
    sys.exit(125 if control else int(bool(got)))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
