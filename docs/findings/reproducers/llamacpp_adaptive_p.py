"""llama.cpp's server (xllamacpp 2026.10.11549): drawn drafts are accepted as if there were no adaptive-p.

    python llamacpp_adaptive_p.py [FILE.gguf DRAFT.gguf]

The files are models; left out, the tiny ones of this repository. Status 0 fixed, 1 present, 125 cannot be tested.
Speculation keeps the law. The control: greedy drafts and no drafts agree.
"""

import sys
from collections import Counter
from pathlib import Path

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llamacpp" / "models"
CHAIN = {"adaptive_target": 0.3, "samplers": ["temperature", "adaptive_p"], "ignore_eos": True, "temperature": 1.0}
try:
    import xllamacpp as xl

    def law(drafting, first, probabilistic=False):
        params = xl.CommonParams()
        files = sys.argv[1:] if len(sys.argv) > 2 else [str(OURS / f"{n}.gguf") for n in ("target", "draft")]
        params.model.path, draft = files
        params.n_ctx, params.port, params.fit_params, params.warmup, params.verbosity = 512, 0, False, False, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        if drafting:
            params.speculative.types = [xl.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            params.speculative.draft.mparams.path, params.speculative.draft.p_min = draft, 0.0
            params.speculative.draft.probabilistic = probabilistic
        server, result = xl.Server(params), Counter()
        for seed in range(first, first + 2000):
            body = {"prompt": [3, 1, 2, 3, 1], "max_tokens": 3, "seed": 7919 * seed, **CHAIN}
            result[server.handle_completions(body)["choices"][0]["text"][:2]] += 1 / 2000
        return result

    plain, greedy, drawn = law(False, 1), law(True, 5000), law(True, 9000, probabilistic=True)
    chance, apart = (sum(abs(plain[x] - law[x]) for x in {*plain, *law}) / 2 for law in (greedy, drawn))
    print(f"expected a total variation below 0.2 from the law without drafts, got {apart:.3f}; control {chance:.3f}")
    sys.exit(125 if chance > 0.2 else int(apart > 0.2))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
