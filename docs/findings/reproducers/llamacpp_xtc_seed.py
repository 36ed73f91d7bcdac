"""llama.cpp's server (xllamacpp 2026.10.11549), plain decoding: the coin of XTC is the number that chose a token.

    python llamacpp_xtc_seed.py [FILE.gguf]

FILE.gguf is a model; left out, the tiny one of this repository. Status 0 fixed, 1 present, 125 cannot be tested. The
token after a first token has the law of the same prompt with that token appended. The control is that law twice.
"""

import sys
from collections import Counter
from pathlib import Path

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "llamacpp" / "models" / "target.gguf"
PROMPT, TEXTS = [3, 1, 2, 3, 1], 3000
CHAIN = dict(xtc_probability=0.5, xtc_threshold=0.12, top_k=0, top_p=1.0, min_p=0.0, temperature=1.0, ignore_eos=True)
try:
    import xllamacpp as xl

    def texts(prompt, number, length, first):
        for seed in range(first, first + number):
            body = {"prompt": prompt, "max_tokens": length, "seed": 7919 * seed, "logprobs": 1, **CHAIN}
            yield [each["id"] for each in server.handle_completions(body)["choices"][0]["logprobs"]["content"]]

    params = xl.CommonParams()
    params.model.path = sys.argv[1] if len(sys.argv) > 1 else str(OURS)
    params.n_ctx, params.port, params.fit_params, params.warmup, params.verbosity = 512, 0, False, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xl.Server(params)
    pairs = Counter(map(tuple, texts(PROMPT, TEXTS, 2, 1)))
    begun = Counter(first for first, _ in pairs.elements()).most_common(1)[0][0]
    laws = [Counter({second: number for (first, second), number in pairs.items() if first == begun})]
    laws += [Counter(text[0] for text in texts([*PROMPT, begun], TEXTS // 2, 1, start)) for start in (5000, 9000)]
    got, fresh, again = ({token: each[token] / each.total() for token in set().union(*laws)} for each in laws)
    apart, chance = (sum(abs(one[token] - fresh[token]) for token in fresh) / 2 for one in (got, again))
    print(f"expected a total variation below 0.1 after token {begun}, got {apart:.3f}; control {chance:.3f}")
    sys.exit(125 if chance > 0.1 else int(apart > 0.1))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
