"""llama-cpp-python 0.3.36: with a draft model the text that a stopping criterion ends is lost.

    python llama_stopping_criteria.py

The tiny model of this repository, greedy. Status 0 fixed, 1 present, 125 cannot be tested. The criterion is true after
token 4, and is called again with the drafts behind that token: it is false there, so the text is empty and its finish
reason is `length`. The controls are the same call without drafts, and a call with drafts and without a criterion.
"""

import sys
from pathlib import Path

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llama" / "models" / "target.gguf"
try:
    import numpy as np
    from llama_cpp import Llama, StoppingCriteriaList

    model = Llama(str(OURS), n_ctx=64, n_threads=1, logits_all=True, verbose=False)

    def decoded(drafts, *criteria):
        model.draft_model = (lambda tokens, /, **options: np.array(drafts, dtype=np.intc)) if drafts else None
        model.reset()
        options = {"temperature": 0.0, "max_tokens": 4}
        if criteria:
            options["stopping_criteria"] = StoppingCriteriaList(criteria)
        choice = model.create_completion([2, 3], **options)["choices"][0]
        return choice["text"], choice["finish_reason"]

    def after_four(tokens, logits):
        return len(tokens) > 2 and int(tokens[-1]) == 4

    if decoded(()) != decoded((0, 0)):
        print("the texts differ without a criterion too")
        sys.exit(125)
    expected, got = decoded((), after_four), decoded((0, 0), after_four)
    print(f"expected the text {expected[0]!r} with finish reason {expected[1]!r}, got {got[0]!r} with {got[1]!r}")
    sys.exit(int(expected != got))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
