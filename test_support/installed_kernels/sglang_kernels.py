"""SGLang's Triton kernels of chain verification, in the form that ``check_kernel`` takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from test_support.installed_kernels.mended import module_of

FILE = "sglang/kernels/ops/speculative/reject_sampling.py"


def load(folder: str) -> Any:
    """Return the module of one file of an unpacked wheel: it needs Triton, and nothing else of the package."""
    return module_of(Path(folder) / FILE)


def chain(module: Any, *, block: bool) -> Any:
    """Return the kernel that verifies drafts one by one, or as a ``block``.

    It also returns the number of accepted drafts.
    """

    def kernel(p: Any, q: Any, drafts: Any, accept_uniforms: Any, final_uniforms: Any) -> Any:
        rows, slots = drafts.shape[0], drafts.shape[1] + 1
        candidates = torch.cat([torch.zeros_like(drafts[:, :1]), drafts], dim=1)
        places = torch.arange(rows * slots, device=p.device).reshape(rows, slots)
        predicts = torch.full((rows * slots,), -1, dtype=torch.int32, device=p.device)
        index = torch.full((rows, slots), -1, dtype=torch.int32, device=p.device)
        accepted = torch.zeros(rows, dtype=torch.int32, device=p.device)
        module.chain_speculative_sampling_triton(
            predicts,
            index,
            accepted,
            candidates,
            places,
            None,
            None,
            accept_uniforms,
            final_uniforms,
            p,
            q,
            1.0,
            1.0,
            True,
            block_verification=block,
        )
        return predicts.reshape(rows, slots), accepted

    return kernel


def folder() -> str:
    """Return the folder of the unpacked wheel."""
    return os.environ["SGLANG_WHEEL"]
