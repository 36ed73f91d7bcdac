"""Calls of speculative-decoding (lucidrains) with its own networks, tiny and with seeded weights.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from specverify.reference import Tokens, top_k
from specverify.reference.warpers import softmax
from specverify.subjects.decoding import DRAFT_SEED, TARGET_SEED, Decoding, Texts

try:
    import torch
    from speculative_decoding import Decoder, base_decoding, speculative_decoding
except ImportError as error:
    raise ImportError(
        "the subject of lucidrains needs torch and speculative-decoding: pip install speculative-decoding"
    ) from error

VOCABULARY = 5
Decode = Callable[..., Any]
Way = Callable[[Decoding, Any], Any]
"""``way(decoding, prompts)`` decodes ``prompts`` ``[batch, length]`` and returns new tokens ``[batch, horizon]``."""


@cache
def network(seed: int, depth: int) -> Any:
    """Return a network of ``depth`` layers with random weights from ``seed``; it reads all previous tokens."""
    with _seeded(seed):
        made = Decoder(num_tokens=VOCABULARY, dim=16, depth=depth, heads=2, dim_head=8)
        for weight in made.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, 0.0, 0.5)
    return made.eval()


def target() -> Any:
    """Return the target network, tiny and with seeded weights."""
    return network(TARGET_SEED, 2)


def next_pmf(decoding: Decoding) -> Callable[[Tokens], Any]:
    """Return the function tokens -> pmf of the next token, with the options of ``decoding``.

    The pmf is computed by a forward pass of the target in float64 without a cache, then top-k and the temperature.
    """
    exact = copy.deepcopy(target()).double()

    @cache
    def pmf(tokens: Tokens) -> Any:
        with torch.no_grad():
            logits = exact(torch.tensor([tokens]))[0, -1].numpy()
        whole = softmax(logits, decoding.temperature)
        return whole if decoding.top_k is None or decoding.temperature == 0 else top_k(whole, decoding.top_k)

    return pmf


def plain(decoding: Decoding, prompts: Any) -> Any:
    """Return the new tokens ``[batch, horizon]`` of decoding ``prompts``, ``[batch, length]``, without speculation."""
    return base_decoding(target(), prompts, _length(decoding), decoding.temperature, _threshold(decoding))


def draft(decoding: Decoding, prompts: Any, decode: Decode = speculative_decoding) -> Any:
    """Return the new tokens ``[batch, horizon]`` of decoding ``prompts``, ``[batch, length]``, with a draft network.

    ``decode`` is the function of the library that decodes.
    """
    options = {"gamma": decoding.gamma, "temperature": decoding.temperature, "filter_thres": _threshold(decoding)}
    return decode(target(), network(DRAFT_SEED, 1), prompts, _length(decoding), **options)[0]


def texts(way: Way, decoding: Decoding, batch: int, joined: int = 1) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts.

    One call ``way(decoding, prompts)`` decodes ``batch`` rows. A text is the concatenation of ``joined`` rows of a
    call, so that the joint law of these rows is tested.
    """
    return partial(_texts, way, decoding, batch, joined)


def _texts(way: Way, decoding: Decoding, batch: int, joined: int, seed: int, number: int) -> Sequence[Tokens]:
    result: list[Tokens] = []
    prompts = torch.tensor([decoding.prompt] * batch)
    with _seeded(seed):
        while len(result) < number:
            rows = way(decoding, prompts).reshape(batch // joined, -1)
            result += map(tuple, rows.tolist())
    return result[:number]


def _threshold(decoding: Decoding) -> float:
    """Return the library's option x for the top-k of ``decoding``: x keeps ``ceil((1 - x) * vocabulary)`` tokens."""
    return 1 - ((decoding.top_k or VOCABULARY) - 0.5) / VOCABULARY


def _length(decoding: Decoding) -> int:
    return len(decoding.prompt) + decoding.horizon


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.default_rng(seed).integers(2**62)))
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)
