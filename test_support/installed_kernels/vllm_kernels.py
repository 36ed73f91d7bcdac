"""vLLM's Triton kernels of rejection sampling, in the forms that ``check_kernel`` takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


def random_rows(sampler: Any) -> Any:
    """Return the kernels for sampled rows of ``vllm.v1.sample.rejection_sampler`` as one function.

    Rows are concatenated.

    The kernels take the bonus token as input: it is drawn by the same exponential race as a recovered token.
    """

    def kernel(p: Any, q: Any, drafts: Any, cu_num_draft_tokens: Any, accept_uniforms: Any, noise: Any) -> Any:
        rows, ends = len(cu_num_draft_tokens), cu_num_draft_tokens.to(torch.int32)
        longest = max(1, int(torch.diff(ends, prepend=ends.new_zeros(1)).max()))
        bonus_rows = cu_num_draft_tokens + torch.arange(rows, device=p.device)
        bonus = (p[bonus_rows] / noise).argmax(dim=-1, keepdim=True)
        others = torch.ones(len(p), dtype=torch.bool, device=p.device)
        others[bonus_rows] = False
        target, ids = p[others].contiguous(), drafts.to(torch.int32)
        recovered = torch.empty_like(ids)
        sampler._sample_recovered_tokens(recovered, ends, ids, q, target, noise.reciprocal(), max_spec_len=longest)
        out = torch.full((rows, longest + 1), -1, dtype=torch.int32, device=p.device)
        greedy = torch.zeros(rows, dtype=torch.bool, device=p.device)
        uniforms = accept_uniforms.double()
        sampler._rejection_random_sample(out, ends, ids, q, target, bonus, recovered, uniforms, greedy, longest, None)
        return out

    return kernel


def greedy_rows(sampler: Any, argmax: Any, bonus: Any, drafts: Any, ends: Any, longest: int) -> Any:
    """Return the output of the kernel for greedy rows.

    ``argmax`` and ``drafts`` are ``[N]``, ``bonus`` is ``[B, 1]``, ``ends`` is ``[B]``.
    """
    out = torch.full((len(ends), longest + 1), -1, dtype=torch.int32)
    sampler._rejection_greedy_sample(out, ends, drafts, argmax, bonus, None, longest, None, None)
    return out


def without_libdevice(module: Any) -> Any:
    """Return the module with another ``log1p``: Triton's interpreter has no functions of libdevice."""
    from triton import language

    module.tldevice = SimpleNamespace(log1p=lambda x: language.log(1 + x))
    return module


def second_runner(module: Any, *, block: bool) -> Any:
    """Return ``rejection_sample`` of ``vllm.v1.worker.gpu.spec_decode`` with seeds of requests and positions in a text.

    Each row has a seed of its own, and each call positions of its own.
    """

    def kernel(p: Any, q: Any, drafts: Any, seed: int, offset: int) -> Any:
        rows, gamma = drafts.shape
        slots = gamma + 1
        place = torch.arange(rows, device=p.device)
        first = torch.zeros((rows, 1), dtype=drafts.dtype, device=p.device)
        sampled, number = module.rejection_sample(
            p.log().reshape(rows * slots, -1),
            q.log(),
            torch.cat([first, drafts], dim=1).reshape(-1),
            torch.arange(0, rows * slots + 1, slots, dtype=torch.int32, device=p.device),
            offset * slots + torch.arange(slots, device=p.device).repeat(rows),
            place.to(torch.int32),
            place.repeat_interleave(slots).to(torch.int32),
            torch.arange(slots, device=p.device).repeat(rows).to(torch.int32),
            torch.ones(rows, device=p.device),
            seed * 2**24 + place,
            gamma,
            use_block_verification=block,
        )
        return sampled, number

    return kernel
