"""Verifiers that are right on small tables and wrong at a real vocabulary, each with its right twin."""

from __future__ import annotations

import numpy as np
import torch

from test_support.verifiers.samplers import at_once, first_rejection, loop, numpy_loop, owed

BLOCK = 8192


def with_residual(residual):
    """Return a loop that draws the replacement from ``residual(p, q)`` by an exponential race."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand(()) < p[i, token] / q[i, token]:
                return torch.cat([draft_tokens[:i], raced(residual(p[i], q[i]))])
        return torch.cat([draft_tokens, raced(p[-1])])

    return verify


def with_draw(draw):
    """Return a loop whose replacement and bonus are drawn by ``draw(weights)``."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand(()) < p[i, token] / q[i, token]:
                return torch.cat([draft_tokens[:i], draw(owed(p[i], q[i])).reshape(1)])
        return torch.cat([draft_tokens, draw(p[-1]).reshape(1)])

    return verify


def raced(weights):
    return (weights / torch.empty_like(weights).exponential_()).argmax(dim=-1, keepdim=True)


# Kernels by blocks


def by_blocks(weights):
    """Right: take the best of each block, then the best of these, as kernels do."""
    whole = -(-len(weights) // BLOCK) * BLOCK
    scores = weights / torch.empty_like(weights).exponential_()
    scores = torch.cat([scores, torch.full((whole - len(weights),), -1.0, dtype=weights.dtype)])
    best, places = scores.view(-1, BLOCK).max(dim=-1)
    block = best.argmax()
    return block * BLOCK + places[block]


def whole_blocks_alone(weights):
    """Wrong: the number of blocks is rounded down, so the last, partly filled block is left out."""
    if len(weights) < BLOCK:
        return raced(weights)
    return raced(weights[: len(weights) // BLOCK * BLOCK])


def one_short(residual):
    """Wrong: each block begins one token late, so the first token of each is never drawn."""

    def found(p, q):
        left = residual(p, q).clone()
        left[BLOCK::BLOCK] = 0.0
        return left

    return found


def mass_of_whole_blocks(p, q):
    """Right: the sum of the residual is computed by blocks, including the last one."""
    left = torch.clamp(p - q, min=0)
    return left / sum(part.sum() for part in left.split(BLOCK)) if left.any() else p


# Types that are too small


def in_int16(draw=raced):
    """Wrong: ids are stored in int16, which cannot hold ids above 32767."""
    return lambda weights: draw(weights).to(torch.int16)


def residual_in_float16(p, q):
    """Wrong: entries of the residual below 6e-8 are 0 in float16."""
    left = torch.clamp(p.half() - q.half(), min=0)
    return left.to(p.dtype) if left.any() else p


def residual_in_bfloat16(p, q):
    """Right within the precision of bfloat16: entries are off by up to 0.4 %, and none becomes 0."""
    left = torch.clamp(p.bfloat16() - q.bfloat16(), min=0)
    return left.to(p.dtype) if left.any() else p


# Tails and cuts


def floored(p, q):
    """Wrong: a floor against divisions by 0 gives tokens of probability 0 a positive weight."""
    return torch.clamp(p - q, min=1e-7)


def best_1024(weights):
    """Wrong: the kernel sorts at most 1024 candidates."""
    values, tokens = weights.topk(min(1024, len(weights)))
    return tokens[torch.multinomial(values, 1)]


def sorted_first(weights):
    """Right: the index is drawn among the sorted tokens and converted to a token id."""
    values, tokens = weights.sort(descending=True)
    return tokens[torch.multinomial(values, 1)]


# NumPy


def numpy_in_int16(rng, row):
    """Wrong: tokens are stored in an array of int16."""
    found = np.empty(1, dtype=np.int16)
    found[:] = rng.choice(len(row), size=1, p=row)
    return int(found[0])


def numpy_whole_blocks(rng, row):
    """Wrong: the last, partly filled block is left out."""
    kept = row[: len(row) // BLOCK * BLOCK] if len(row) >= BLOCK else row
    return int(rng.choice(len(kept), p=kept / kept.sum()))


def numpy_in_float16(p, q):
    """Wrong: entries below 6e-8 are 0 in float16."""
    left = np.maximum(p.astype(np.float16) - q.astype(np.float16), 0).astype(np.float64)
    return left / left.sum() if left.any() else p / p.sum(dtype=np.float64)


RIGHT = {
    "race": with_residual(owed),
    "multinomial of all at once": at_once(),
    "multinomial, looked at": loop(),
    "race, looked at": first_rejection(),
    "sum by blocks": with_residual(mass_of_whole_blocks),
    "sorted": with_draw(sorted_first),
    "race by blocks": with_draw(by_blocks),
}
WRONG = {
    "last block left out": with_draw(whole_blocks_alone),
    "first of each block left out": with_residual(one_short(owed)),
    "ids in int16": with_draw(in_int16()),
    "residual in float16": with_residual(residual_in_float16),
    "1024 candidates": with_draw(best_1024),
    "numpy ids in int16": numpy_loop(draw=numpy_in_int16),
    "numpy last block left out": numpy_loop(draw=numpy_whole_blocks),
    "numpy residual in float16": numpy_loop(residual=numpy_in_float16),
    "floor": with_residual(floored),
}
SHOWS_EVERYWHERE = {"floor"}
"""It gives mass to tokens that are none, in small rows as well."""
