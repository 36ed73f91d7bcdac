"""openvino-genai 2026.4.1: with prompt lookup the score of a text leaves out accepted drafts.

    python openvino_lookup_scores.py

The tiny model of this repository, greedy, `logprobs` 1. Status 0 fixed, 1 present, 125 cannot be tested. The score of a
text is the sum of the log-probabilities of its tokens; the control is the same text without prompt lookup.
"""

import sys
from pathlib import Path

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "openvino" / "models" / "target"
OPTIONS = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
try:
    import numpy as np
    import openvino
    import openvino_genai

    def decoded(**options):
        pipeline = openvino_genai.LLMPipeline(str(OURS), "CPU", **options, **OPTIONS)
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.logprobs = 6, True, 1
        if options:
            config.num_assistant_tokens, config.max_ngram_size = 2, 2
        result = pipeline.generate(openvino.Tensor(np.array([[3, 1, 2, 3, 1]], dtype=np.int64)), config)
        return list(result.tokens[0]), result.scores[0]

    (text, score), (drafted, told) = decoded(), decoded(prompt_lookup=True)
    print(f"expected {text} with score {score:.4f}, got {drafted} with score {told:.4f}")
    sys.exit(125 if text != drafted else int(abs(score - told) > 1e-3))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
