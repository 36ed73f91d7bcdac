"""mlx-lm 0.32.2: with a draft model, XTC draws one random number for all tokens of a round.

    python mlx_xtc.py [SEED]

SEED is a seed. Status 0 fixed, 1 present, 125 cannot be tested. The sampler that ``make_sampler`` makes is shown eight
rows of the same logits, as it is when eight tokens are verified, at a temperature near 0: XTC excludes the likeliest
token of half the rows, each by itself. Without speculation, one row at a time, the eight decisions differ; shown
together they are one.
"""

from __future__ import annotations

import sys

try:
    import mlx.core as mx
    import mlx_lm
    from mlx_lm.sample_utils import make_sampler
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

ROWS, CALLS = 8, 40


def present() -> bool:
    mx.set_default_device(mx.cpu)
    logits = mx.log(mx.array([[0.5, 0.3, 0.15, 0.05]]))
    sampler = make_sampler(temp=0.01, xtc_probability=0.5, xtc_threshold=0.1)
    mx.random.seed(int(*sys.argv[1:]))
    alone = [[int(sampler(logits).item()) for _ in range(ROWS)] for _ in range(CALLS)]
    together = [sampler(mx.repeat(logits, ROWS, axis=0)).tolist() for _ in range(CALLS)]
    mixed, got = (sum(len(set(tokens)) > 1 for tokens in each) for each in (alone, together))
    print(f"mlx-lm {mlx_lm.__version__}: {ROWS} tokens of the same logits, {CALLS} times")
    print(f"expected nearly all to hold both tokens: one row at a time {mixed} of {CALLS}")
    print(f"got, all rows in one call:               {got} of {CALLS}")
    if mixed < CALLS // 2:
        raise ValueError("one row at a time nothing varies")
    return got < CALLS // 2


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
