"""Left-padded batches of real models: greedy speculation with ragged drafts, and teacher-forced verifying passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from reference import Tokens, greedy_batched
from test_support.gpu.cached_models import CachedBatch, cut

Propose = Callable[[int, Tokens, int], Tokens]
"""``propose(row, tokens, gamma)``: at most gamma drafts after all tokens of one row."""


def speculate_batched(
    model: Any,
    prompts: list[Tokens],
    propose: Propose,
    *,
    gamma: int,
    horizon: int,
    eos: Tokens = (),
    holes: bool = False,
    shift: int = 0,
) -> list[Tokens]:
    """Decode left-padded rows greedily with drafts of different lengths, verified by ``greedy_batched``.

    Rows accept different numbers of drafts. Without ``holes`` every row commits as many as the row that accepts fewest,
    and the cache is cropped to them. With ``holes`` every row commits its own number, and its rejected entries stay in
    the cache, masked. A row that has ended is fed padding until all have ended. ``shift`` is added to the position ids,
    as a planted mistake.
    """
    batch = CachedBatch(model, prompts)
    texts = [((model.config.decoder_start_token_id,) if batch.encoded else prompt) for prompt in prompts]
    waiting = [(0,) * pad + text for pad, text in zip(batch.pads, texts, strict=True)]
    valid = [(0,) * pad + (1,) * len(text) for pad, text in zip(batch.pads, texts, strict=True)]
    new: list[Tokens] = [()] * len(prompts)

    def ended(row: int) -> bool:
        return len(new[row]) >= horizon or any(token in eos for token in new[row])

    while not all(map(ended, range(len(prompts)))):
        drafts = [
            () if ended(row) else propose(row, prompt + new[row], min(gamma, horizon - len(new[row]) - 1))
            for row, prompt in enumerate(prompts)
        ]
        width, fed = max(map(len, drafts)), batch.held
        padded = [draft + (0,) * (width - len(draft)) for draft in drafts]
        seen = [(1,) * len(draft) + (0,) * (width - len(draft)) for draft in drafts]
        logits = batch.feed(_joined(waiting, padded), _joined(valid, seen), shift if fed else 0)
        lengths = torch.tensor([len(draft) for draft in drafts], device=logits.device)
        ids = torch.tensor(padded, dtype=torch.int64, device=logits.device).reshape(len(drafts), width)
        verified = greedy_batched(logits[:, -width - 1 :], ids, lengths)
        accepted = verified.accepted.tolist()
        base = batch.held - width
        if holes:
            for row, count in enumerate(accepted):
                batch.hide(row, base + count)
        else:
            fewest = min(count for row, count in enumerate(accepted) if not ended(row))
            accepted = [fewest] * len(prompts)
            batch.keep(base + fewest)
        was = [ended(row) for row in range(len(prompts))]
        for row, emitted in enumerate(verified.emitted.tolist()):
            if not was[row]:
                new[row] = cut(new[row] + tuple(emitted[: accepted[row] + 1]), eos)
        waiting = [(0,) if was[row] else new[row][-1:] for row in range(len(prompts))]
        valid = [(0,) if was[row] and holes else (1,) for row in range(len(prompts))]
    return new


def _joined(first: list[Tokens], second: list[Tokens]) -> list[Tokens]:
    return [a + b for a, b in zip(first, second, strict=True)]


def chunks(length: int, size: int) -> Iterator[slice]:
    """Yield slices that cut ``length`` positions into runs of at most ``size``."""
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def forced_logits(model: Any, prompts: list[Tokens], new: list[Tokens], gamma: int) -> torch.Tensor:
    """Return the logits before every token of ``new``, ``[batch, new, vocabulary]``, teacher-forced through a cache.

    Each pass feeds gamma + 1 tokens; the first one also feeds the prompt, as the first round of ``speculate``. With
    gamma 0 one token is fed at a time. All rows have equally many new tokens.
    """
    batch = CachedBatch(model, prompts)
    texts = [((model.config.decoder_start_token_id,) if batch.encoded else prompt) for prompt in prompts]
    rows = []
    for run in chunks(len(new[0]), gamma + 1):
        fed, valid = [], []
        for pad, text, tokens in zip(batch.pads, texts, new, strict=True):
            before = tokens[run.start - 1 : run.stop - 1] if run.start else (0,) * pad + text + tokens[: run.stop - 1]
            fed.append(before)
            valid.append((0,) * pad + (1,) * (len(before) - pad) if not run.start else (1,) * len(before))
        rows.append(batch.feed(fed, valid)[:, run.start - run.stop :])
    return torch.cat(rows, dim=1)
