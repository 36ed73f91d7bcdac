"""Verifiers of batches of logits: one in NumPy, a vectorised one in torch, and wrong twins of them."""

from __future__ import annotations

import numpy as np
import torch

from test_support.verifiers import batched_verifiers


def softmax(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    weights = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    return weights / weights.sum(-1, keepdims=True)


def truncated(pmfs, top_k, top_p):
    """Cut rows ``[B, positions, vocabulary]`` to the top-k, then to the smallest set of these that holds ``top_p``."""
    order = (-pmfs).argsort(-1)
    ranked = np.take_along_axis(pmfs, order, -1)
    ranked[..., top_k:] = 0
    ranked /= ranked.sum(-1, keepdims=True)
    ranked = np.where(ranked.cumsum(-1) - ranked < top_p, ranked, 0)
    found = np.zeros_like(pmfs)
    np.put_along_axis(found, order, ranked / ranked.sum(-1, keepdims=True), -1)
    return found


def in_numpy(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p):
    """Correct, in NumPy: returns a list of lists; top-k is applied before top-p."""
    p, q = (truncated(softmax(rows, temperature), top_k, top_p) for rows in (target_logits, draft_logits))
    return batched_verifiers.row_by_row(p, q, draft_tokens)


def pmfs_of(logits, temperature, top_k):
    """Return processed rows in torch; top-k keeps the logits that are at least the k-th largest of the row."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    least = logits.topk(top_k, dim=-1).values[..., -1:]
    return torch.softmax(logits.masked_fill(logits < least, -torch.inf) / temperature, dim=-1)


def vectorised(target_logits, draft_logits, draft_tokens, *, temperature=1.0, top_k=0):
    """Torch, all rows and positions at once."""
    p, q = (pmfs_of(rows, temperature, top_k) for rows in (target_logits, draft_logits))
    return batched_verifiers.vectorised(p, q, draft_tokens)


def ragged(target_logits, draft_logits, draft_tokens, lengths, temperature):
    """NumPy, rows of different lengths."""
    p, q = softmax(target_logits, temperature), softmax(draft_logits, temperature)
    return batched_verifiers.ragged(p, q, draft_tokens, lengths)


def forgotten(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p):
    """Wrong: the temperature is not applied to the second row of the target."""
    p, q = (softmax(rows, temperature) for rows in (target_logits, draft_logits))
    p[1:2] = softmax(target_logits[1:2], 1.0)
    return batched_verifiers.row_by_row(truncated(p, top_k, top_p), truncated(q, top_k, top_p), draft_tokens)


def across(target_logits, draft_logits, draft_tokens, temperature, top_k):
    """Wrong: every row keeps the tokens that the first row keeps."""
    p, q = softmax(target_logits, temperature), softmax(draft_logits, temperature)
    return batched_verifiers.row_by_row(cut(p, target_logits, top_k), cut(q, draft_logits, top_k), draft_tokens)


def cut(pmfs, logits, top_k):
    """Return the rows cut at the k-th largest logit of the first row; a row that would be empty is not cut."""
    kept = pmfs * (logits >= np.sort(logits[:1], axis=-1)[..., [-top_k]])
    kept = np.where(kept.any(-1, keepdims=True), kept, pmfs)
    return kept / kept.sum(-1, keepdims=True)


def shared_coins(target_logits, draft_logits, draft_tokens, *, temperature, top_k):
    """Wrong: all rows are decided by the same uniforms."""
    p, q = (pmfs_of(rows, temperature, top_k) for rows in (target_logits, draft_logits))
    return batched_verifiers.shared_coins(p, q, draft_tokens)


def padding_processed(target_logits, draft_logits, draft_tokens, lengths, temperature):
    """Wrong: a row's bonus token is drawn from its last position, which is padding in a shorter row."""
    p, q = softmax(target_logits, temperature), softmax(draft_logits, temperature)
    return batched_verifiers.late_bonus(p, q, draft_tokens, lengths)


def written(target_logits, draft_logits, draft_tokens, temperature):
    """Wrong: the caller's logits are divided in place."""
    if temperature:
        target_logits /= temperature
    p = softmax(target_logits, 1.0 if temperature else 0)
    return batched_verifiers.row_by_row(p, softmax(draft_logits, temperature), draft_tokens)
