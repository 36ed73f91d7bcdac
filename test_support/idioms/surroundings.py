"""Whole samplers in special surroundings: compiled, scripted, mapped, in threads, with a progress bar."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from test_support.idioms.idiom import verifier


def sampled(p, q, draft_tokens, kept):
    """The rest of a sampler whose coin is ``kept(p, q)``."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not kept(p[i, token], q[i, token]):
            left = (p[i] - q[i]).clamp(min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left if left.any() else p[i], 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def worker_thread(p, q, draft_tokens):
    """The whole sampler in a thread."""
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p))
    )
    thread.start()
    thread.join()
    return found


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def pool_of_threads(p, q, draft_tokens):
    """A pool of one thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(sampled, p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p).result()


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def coroutine(p, q, draft_tokens):
    """A coroutine."""

    async def decided():
        await asyncio.sleep(0)
        return sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)

    return asyncio.run(decided())


def _coin(p: torch.Tensor, q: torch.Tensor) -> bool:
    return bool(torch.rand([1]) < p / q)


def _wrong_coin(p: torch.Tensor, q: torch.Tensor) -> bool:
    return bool(torch.rand([1]) < p)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted_coin, scripted_wrong_coin = torch.jit.script(_coin), torch.jit.script(_wrong_coin)


@verifier("torch", wrong=("scripted_coin", "scripted_wrong_coin"))
def scripted(p, q, draft_tokens):
    """A coin of ``torch.jit.script``."""
    return sampled(p, q, draft_tokens, scripted_coin)


@torch.compile(backend="eager")
def compiled_coin(p, q):
    return torch.rand(()) < p / q


@torch.compile(backend="eager")
def compiled_wrong_coin(p, q):
    return torch.rand(()) < p


@verifier("torch", wrong=("compiled_coin", "compiled_wrong_coin"))
def compiled(p, q, draft_tokens):
    """A coin of ``torch.compile``."""
    return sampled(p, q, draft_tokens, compiled_coin)


@verifier("torch", wrong=('randomness="different"', 'randomness="same"'))
def mapped(p, q, draft_tokens):
    """``vmap`` over the positions, each with separate randomness."""

    def kept(p, q, token):
        return torch.rand(()) < (p.gather(0, token[None]) / q.gather(0, token[None]))[0]

    accepted = torch.vmap(kept, randomness="different")(p[:-1], q, draft_tokens)
    count = int(accepted.long().cumprod(0).sum())
    left = (p[count] - q[count]).clamp(min=0) if count < len(q) else p[-1]
    return [*draft_tokens[:count].tolist(), int(torch.multinomial(left if left.any() else p[count], 1))]


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def without_gradients(p, q, draft_tokens):
    """Inference mode."""
    with torch.inference_mode():
        return sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def forked_generator(p, q, draft_tokens):
    """``fork_rng`` with a seed drawn outside of it."""
    seed = int(torch.randint(2**31, ()))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def temporary_file(p, q, draft_tokens):
    """A temporary file is written."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "drafts").write_text(str(draft_tokens.tolist()))
        return sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def timed_and_logged(p, q, draft_tokens):
    """Times are measured and logged."""
    begin = time.perf_counter()
    found = sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)
    logging.getLogger("sampler").debug("%d tokens in %f s", len(found), time.perf_counter() - begin)
    return found


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def progress_bar(p, q, draft_tokens):
    """A progress bar of tqdm."""
    from tqdm import tqdm

    for _ in tqdm(range(1), disable=True):
        found = sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)
    return found


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def cached_rows(p, q, draft_tokens):
    """A cache of rows, which are no draws."""

    @functools.lru_cache
    def row(i):
        return p[i], q[min(i, len(q) - 1)]

    return sampled(
        torch.stack([row(i)[0] for i in range(len(p))]),
        torch.stack([row(i)[1] for i in range(len(q))]),
        draft_tokens,
        lambda p, q: torch.rand(()) * q < p,
    )


@verifier("torch", wrong=("torch.rand(()) * q < p", "torch.rand(()) < p"))
def errors_swallowed(p, q, draft_tokens):
    """The sampler raises and catches an error of its own."""
    with contextlib.suppress(IndexError):
        p[len(p)]
    return sampled(p, q, draft_tokens, lambda p, q: torch.rand(()) * q < p)


@verifier("torch, NumPy and random", wrong=("random.random() < ratio", "random.random() < ratio / 2"))
def three_libraries(p, q, draft_tokens):
    """A coin of ``random``, a replacement of NumPy, a bonus of torch."""
    for i, token in enumerate(draft_tokens.tolist()):
        ratio = (p[i, token] / q[i, token]).item()
        if not random.random() < ratio:
            left = (p[i] - q[i]).clamp(min=0)
            row = (left if left.any() else p[i]).numpy()
            return [*draft_tokens[:i].tolist(), int(np.random.default_rng().choice(len(row), p=row / row.sum()))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]
