"""vLLM 0.32.0, plain decoding: a second end of thinking is forced behind one that came by itself within the budget.

Status 0 fixed, 1 present, 125 cannot be tested. ``thinking_token_budget`` 3 must not change greedy texts that think for
at most two tokens. The control is texts in which no end, token 1, comes before the first start, token 0.
"""

import os
import sys
import tempfile

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
    from vllm import LLM, SamplingParams
    from vllm.config import ReasoningConfig

    def texts(budget):
        options = SamplingParams(temperature=0, max_tokens=14, ignore_eos=True, thinking_token_budget=budget)
        answers = llm.generate([{"prompt_token_ids": each} for each in prompts], options, use_tqdm=False)
        return ["".join(map(str, answer.outputs[0].token_ids)) for answer in answers]

    set_seed(0)
    tiny = LlamaConfig(vocab_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.3)
    LlamaForCausalLM(tiny).save_pretrained(folder := tempfile.mkdtemp())
    letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("abcdefgh")}, []))
    PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="h").save_pretrained(folder)  # noqa: S106
    think = ReasoningConfig(reasoning_start_str="a", reasoning_end_str="b")
    llm = LLM(folder, reasoning_config=think, dtype="float32", enforce_eager=True, max_num_seqs=64)
    prompts, counts = [[1 + i // 49, 1 + i // 7 % 7, 1 + i % 7] for i in range(343)], {True: [], False: []}
    for text, other in zip(texts(None), texts(3), strict=True):
        if text.count("0") == 1 and "1" in text.partition("0")[2][:3]:
            counts["1" in text.partition("0")[0]].append((text, other))
    control, got = ([pair for pair in counts[early] if pair[0] != pair[1]] for early in (False, True))
    print(f"expected 0 of {len(counts[True])} texts changed, got {len(got)}: {got[:1]}; control {len(control)}")
    sys.exit(125 if control or not all(counts.values()) else int(bool(got)))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
