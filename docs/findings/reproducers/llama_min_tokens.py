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
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llama" / "models" / "target.gguf"
PROMPT, NEW = [3, 1, 2, 3, 1], 4


def shown(drafts, model):
    seen = []

    def processor(input_ids, scores):
        seen.append(np.asarray(input_ids).tolist()[len(PROMPT) :])
        return scores

    model.draft_model = drafts
    model.reset()
    steps = model.generate(PROMPT, temp=0.0, logits_processor=llama_cpp.LogitsProcessorList([processor]))
    return [token for token, _ in zip(steps, range(NEW), strict=False)], seen[:NEW]


def present():
    asked = []

    def drafts(input_ids, /, **_):
        asked.append(len(input_ids))
        return np.array([0, 0], dtype=np.intc)

    file = sys.argv[1] if len(sys.argv) > 1 else str(OURS)
    model = llama_cpp.Llama(file, n_ctx=64, logits_all=True, verbose=False)
    text, expected = shown(None, model)
    same, got = shown(drafts, model)
    if not asked or len(expected) < NEW:
        raise ValueError("no drafts were asked for, or the processor was not called")
    print(f"llama-cpp-python {llama_cpp.__version__}; new tokens {text}, with drafts {same}")
    print(f"expected the processor to be shown {expected}")
    print(f"got                                {got}")
    return got != expected


try:
    sys.exit(int(present()))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
