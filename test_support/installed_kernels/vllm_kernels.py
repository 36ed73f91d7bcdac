"""vLLM's Triton kernels of rejection sampling, in the forms that ``check_kernel`` takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


def random_rows(sampler: Any) -> Any:
    """The kernels of recovered tokens and of random rows, of ``vllm.v1.sample.rejection_sampler``; rows lie flat.

    The bonus token, which they are given, is drawn by the race by which they draw a recovered one.
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
    """The kernel of greedy rows: ``argmax`` and ``drafts`` ``[N]``, ``bonus`` ``[B, 1]``, ``ends`` ``[B]``."""
    out = torch.full((len(ends), longest + 1), -1, dtype=torch.int32)
    sampler._rejection_greedy_sample(out, ends, drafts, argmax, bonus, None, longest, None, None)
    return out


def without_libdevice(module: Any) -> Any:
    """Return the module with a ``log1p`` that Triton's interpreter has: it knows no functions of libdevice."""
    from triton import language

    module.tldevice = SimpleNamespace(log1p=lambda x: language.log(1 + x))
    return module


def second_runner(module: Any, *, block: bool) -> Any:
    """``rejection_sample`` of ``vllm.v1.worker.gpu.spec_decode``: seeds of requests, positions in a text.

    A row has a seed of its own, and every call positions of its own.
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
