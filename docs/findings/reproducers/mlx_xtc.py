"""mlx-lm 0.32.2: with a draft model, XTC draws one random number for all tokens of a round.

    python mlx_xtc.py

Status 0 fixed, 1 present, 125 cannot be tested. The sampler that ``make_sampler`` makes is shown eight rows of the same
logits, as it is when eight tokens are verified, at a temperature near 0: XTC excludes the likeliest token of half the
rows, each by itself. Without speculation, one row at a time, the eight decisions differ; shown together they are one.
"""

import sys

try:
    import mlx.core as mx
    import mlx_lm
    from mlx_lm.sample_utils import make_sampler
except ImportError as error:
    print(f"cannot be tested: {error}")
    sys.exit(125)

mx.set_default_device(mx.cpu)
ROWS, CALLS = 8, 40
logits = mx.log(mx.array([[0.5, 0.3, 0.15, 0.05]]))
try:
    sampler = make_sampler(temp=0.01, xtc_probability=0.5, xtc_threshold=0.1)
    mx.random.seed(1)
    alone = [[int(sampler(logits).item()) for _ in range(ROWS)] for _ in range(CALLS)]
    together = [sampler(mx.repeat(logits, ROWS, axis=0)).tolist() for _ in range(CALLS)]
except Exception as error:
    print(f"cannot be tested: {error}")
    sys.exit(125)
mixed, got = (sum(len(set(tokens)) > 1 for tokens in each) for each in (alone, together))
print(f"mlx-lm {mlx_lm.__version__}: {ROWS} tokens of the same logits, {CALLS} times")
print(f"expected nearly all to hold both tokens: one row at a time {mixed} of {CALLS}")
print(f"got, all rows in one call:               {got} of {CALLS}")
sys.exit(125 if mixed < CALLS // 2 else int(got < CALLS // 2))
