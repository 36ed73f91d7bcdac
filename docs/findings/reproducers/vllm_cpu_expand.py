"""vLLM 0.32.0, CPU build: temperature, top-k and top-p of drafted tokens are memory that nothing was written to.

    python vllm_cpu_expand.py

Status 0 fixed, 1 present, 125 cannot be tested. The example is that of the docstring of the function. The stand-in of
the kernel converts its output to int64, and writes into the copy; only int64 is right.
"""

import os
import sys

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR"}
try:
    import torch
    from vllm.platforms import current_platform
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens

    current_platform.register_triton_kernel_overrides()
    ends, wrong = torch.tensor([2, 5, 6], dtype=torch.int32), []
    for kind in (torch.float32, torch.int32, torch.int64):
        expected = torch.tensor([3, 3, 4, 4, 4, 5], dtype=kind)
        for _ in range(20):
            got = expand_batch_to_tokens(torch.tensor([3, 4, 5], dtype=kind), ends, 6)
            wrong += [(str(kind), expected.tolist(), got.tolist())] if not torch.equal(got, expected) else []
    print(f"expected none wrong, got {len(wrong)} of 60; kind, expected, got: {wrong[:1]}")
    sys.exit(int(bool(wrong)))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
