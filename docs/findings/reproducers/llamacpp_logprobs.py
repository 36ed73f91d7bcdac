"""llama.cpp's server (xllamacpp 2026.10.11549): with drafts, every token has log-probability 0 and no alternatives.

    python llamacpp_logprobs.py [FILE.gguf]

FILE.gguf is a model, which also drafts for itself; left out, the tiny one of this repository. Status 0 fixed, 1
present, 125 cannot be tested. The control is the same request without drafts: the text is the same, token by token.
"""

import sys
from pathlib import Path

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llamacpp" / "models" / "target.gguf"
try:
    import xllamacpp as xl

    def told(drafting):
        params = xl.CommonParams()
        params.model.path = sys.argv[1] if len(sys.argv) > 1 else str(OURS)
        params.n_ctx, params.port, params.fit_params, params.warmup, params.verbosity = 512, 0, False, False, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        if drafting:
            params.speculative.types = [xl.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            params.speculative.draft.mparams.path = params.model.path
        body = {"prompt": [3, 1, 2, 3, 1], "max_tokens": 8, "seed": 3, "temperature": 0.0, "logprobs": 2}
        answer = xl.Server(params).handle_completions({**body, "ignore_eos": True})
        rows = answer["choices"][0]["logprobs"]["content"]
        return [(row["id"], round(row["logprob"], 2), len(row["top_logprobs"])) for row in rows], answer["timings"]

    (plain, _), (drafted, timings) = told(False), told(True)
    if not timings.get("draft_n") or [row[0] for row in plain] != [row[0] for row in drafted]:
        print("cannot be tested: nothing was drafted, or the text is another one")
        sys.exit(125)
    print(f"expected (token, log-probability, alternatives) {plain}\ngot {drafted}")
    apart = max(abs(one[1] - other[1]) for one, other in zip(plain, drafted, strict=True))
    sys.exit(int(apart > 0.1 or [row[2] for row in plain] != [row[2] for row in drafted]))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
