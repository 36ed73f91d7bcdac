"""The rejection kernels as PyTorch functions, written after their Triton sources, to replace those of the CPU build.

The CPU build has no Triton: it launches compiled stand-ins (``vllm/utils/cpu_triton_utils.py``), which GPUs do not use.
Each function here has the parameters of the kernel of its name and writes into the tensors passed to it.

The parameter ``draft`` has the drafts of all requests, one after the other, and ``cu_num_draft_tokens`` the cumulative
numbers of drafts of the requests. A row of ``draft_probs`` or ``target_probs`` is the pmf q or p at one draft.
``is_greedy`` states for each request whether it is decoded greedily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

NOTHING: Final = -1
"""Marks positions without an emitted token."""


def expand(output: Any, given: Any, cu_num_tokens: Any, replace_from: Any, replace_to: Any, *_: Any) -> None:
    """Write into ``output`` each request's value of ``given``, repeated once for each token of the request.

    ``cu_num_tokens`` has the cumulative numbers of tokens of the requests. In place of a value equal to
    ``replace_from``, ``replace_to`` is written.
    """
    replaced = torch.where(given == replace_from, torch.as_tensor(replace_to, dtype=given.dtype), given)
    output.copy_(replaced.repeat_interleave(_lengths(cu_num_tokens)))


def rejection_greedy_sample(
    output: Any,
    cu_num_draft_tokens: Any,
    draft: Any,
    target_argmax: Any,
    bonus: Any,
    is_greedy: Any,
    max_spec_len: int,
    *_: Any,
) -> None:
    """Write into ``output``, for each greedy request, the target's argmax at every draft up to the first mismatch.

    A mismatch is a draft that differs from ``target_argmax``; the argmax there is written too. If no draft differs, the
    token in ``bonus`` is added. ``cu_num_draft_tokens`` are the cumulative numbers of drafts. ``is_greedy`` None: all
    requests are greedy. ``max_spec_len`` is not used.
    """
    for request, places in places_of(cu_num_draft_tokens):
        if is_greedy is not None and not is_greedy[request]:
            continue
        for place, row in enumerate(places):
            output[request, place] = target_argmax[row]
            if draft[row] != target_argmax[row]:
                break
        else:
            output[request, len(places)] = bonus[request].reshape(())


def rejection_random_sample(
    output: Any,
    cu_num_draft_tokens: Any,
    draft: Any,
    draft_probs: Any,
    target_probs: Any,
    bonus: Any,
    recovered: Any,
    uniform_probs: Any,
    is_greedy: Any,
    *_: Any,
) -> None:
    """Write into ``output``, for each request that is not greedy, the accepted drafts and the token after them.

    ``cu_num_draft_tokens`` are the cumulative numbers of drafts. A draft is accepted if p/q is at least its uniform in
    ``uniform_probs``; q is 1 if ``draft_probs`` is None. The token after them is the entry of ``recovered`` for the
    first rejected draft. If no draft is rejected, it is the request's entry of ``bonus``.
    """
    for request, places in places_of(cu_num_draft_tokens):
        if is_greedy[request]:
            continue
        for place, row in enumerate(places):
            token = draft[row]
            q = 1.0 if draft_probs is None else draft_probs[row, token]
            if token >= 0 and q > 0 and target_probs[row, token] / q >= uniform_probs[row]:
                output[request, place] = token
            else:
                output[request, place] = recovered[row]
                break
        else:
            output[request, len(places)] = bonus[request].reshape(())


def sample_recovered_tokens(
    output: Any,
    cu_num_draft_tokens: Any,
    draft: Any,
    draft_probs: Any,
    target_probs: Any,
    inv_q: Any,
    *_: Any,
) -> None:
    """Write into ``output``, for each draft, the token that replaces it if it is rejected: a draw from the residual.

    ``cu_num_draft_tokens`` are the cumulative numbers of drafts. The token is the argmax of the residual times
    ``inv_q``, the reciprocals of exponential random numbers, one for each request and token. The residual is max(p - q,
    0), or, if ``draft_probs`` is None, p without the draft.
    """
    for request, places in places_of(cu_num_draft_tokens):
        for row in places:
            if draft_probs is None:
                masses = target_probs[row].clone()
                if draft[row] >= 0:
                    masses[draft[row]] = 0
            else:
                masses = (target_probs[row] - draft_probs[row]).clamp(min=0)
            output[row] = (masses * inv_q[request]).argmax()


def eagle_prepare_inputs_padded(
    cu_num_draft_tokens: Any, valid_count: Any, query_start_loc: Any, token_indices: Any, rejected: Any, num_reqs: int
) -> None:
    """Write into ``token_indices`` where each request's last accepted token is in the inputs of the pass.

    The number of its rejected drafts is written into ``rejected``. ``cu_num_draft_tokens`` are the cumulative numbers
    of drafts. ``valid_count`` has the number of tokens that each of the ``num_reqs`` requests emitted.
    ``query_start_loc`` has the index of the first input of each request, and as last entry the number of all inputs.
    """
    drafted = _lengths(cu_num_draft_tokens)[:num_reqs]
    lost = torch.where(drafted > 0, drafted + 1 - valid_count[:num_reqs], 0)
    token_indices[:num_reqs] = query_start_loc[1 : num_reqs + 1] - 1 - lost
    rejected[:num_reqs] = lost


def eagle_prepare_next_token_padded(
    sampled: Any,
    discarded: Any,
    backup: Any,
    next_token_ids: Any,
    valid_count: Any,
    vocab_size: int,
    width: int,
    num_reqs: int,
    *_: Any,
) -> None:
    """Write into ``next_token_ids`` the last token of each request, and into ``valid_count`` the number of its tokens.

    ``sampled`` has the tokens of each of the ``num_reqs`` requests in its first ``width`` columns; padding, and numbers
    from ``vocab_size`` on, do not count as tokens. If a request has no token, or its sample is ``discarded``, its
    ``backup`` token and the count 0 are written.
    """
    for request in range(num_reqs):
        row = sampled[request, :width]
        valid = row[(row != NOTHING) & (row < vocab_size)]
        taken = not discarded[request] and len(valid)
        next_token_ids[request] = valid[-1] if taken else backup[request]
        valid_count[request] = len(valid) if taken else 0


def _lengths(cumulative: Any) -> Any:
    return torch.diff(cumulative.long(), prepend=torch.zeros(1, dtype=torch.long))


def places_of(cumulative: Any) -> Iterator[tuple[int, range]]:
    """Yield (request index, row indices of its drafts), from the cumulative numbers of drafts."""
    start = 0
    for request, end in enumerate(cumulative.tolist()):
        yield request, range(start, end)
        start = end


STATEMENTS: Final[Mapping[str, Callable[..., None]]] = {
    "vllm.v1.sample.rejection_sampler.expand_kernel": expand,
    "vllm.v1.sample.rejection_sampler.rejection_greedy_sample_kernel": rejection_greedy_sample,
    "vllm.v1.sample.rejection_sampler.rejection_random_sample_kernel": rejection_random_sample,
    "vllm.v1.sample.rejection_sampler.sample_recovered_tokens_kernel": sample_recovered_tokens,
    "vllm.v1.spec_decode.utils.eagle_prepare_inputs_padded_kernel": eagle_prepare_inputs_padded,
    "vllm.v1.spec_decode.utils.eagle_prepare_next_token_padded_kernel": eagle_prepare_next_token_padded,
}
"""Name of a kernel in the CPU build's dispatcher -> the PyTorch function that replaces it."""
