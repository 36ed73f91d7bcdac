"""llama-cpp-python 0.3.36: a logits processor is shown drafts that were not decided yet, as if they were the text.

    python llama_min_tokens.py [FILE.gguf]

FILE.gguf is a model; left out, the tiny one of this repository. Status 0 fixed, 1 present, 125 cannot be tested. The
processor writes down what it is shown: with drafts it must be, call by call, what it is shown without. The library's
own ``MinTokensLogitsProcessor`` counts those tokens and so allows an end too early.
"""

import sys
from pathlib import Path

try:
    import llama_cpp
    import numpy as np
except ImportError as error:
    print(f"cannot be tested: {error}")
    sys.exit(125)

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llama" / "models" / "target.gguf"
PROMPT, NEW = [3, 1, 2, 3, 1], 4


def shown(drafts, model) -> tuple[list[int], list[list[int]]]:
    seen: list[list[int]] = []

    def processor(input_ids, scores):
        seen.append(np.asarray(input_ids).tolist()[len(PROMPT) :])
        return scores

    model.draft_model = drafts
    model.reset()
    steps = model.generate(PROMPT, temp=0.0, logits_processor=llama_cpp.LogitsProcessorList([processor]))
    return [token for token, _ in zip(steps, range(NEW), strict=False)], seen[:NEW]


try:
    model = llama_cpp.Llama(sys.argv[1] if len(sys.argv) > 1 else str(OURS), n_ctx=64, logits_all=True, verbose=False)
    text, expected = shown(None, model)
    same, got = shown(lambda input_ids, /, **_: np.array([0, 0], dtype=np.intc), model)
except Exception as error:
    print(f"cannot be tested: {error}")
    sys.exit(125)
print(f"llama-cpp-python {llama_cpp.__version__}; new tokens {text}, with drafts {same}")
print(f"expected the processor to be shown {expected}")
print(f"got                                {got}")
sys.exit(int(got != expected))
