"""A small Llama in NumPy and float64, from which the expected law of an engine is computed, whatever dtype it uses.

The weights are float32 numbers, as engines hold them, under the names used in checkpoints. The forward pass follows the
definition, without a cache: RMS norms, rotary positions over the two halves of a head, grouped keys and values, a gated
feed-forward layer (Touvron et al. 2302.13971, 2307.09288).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.reference import Tokens

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class LlamaSizes(NamedTuple):
    """Sizes of a model. The defaults are the smallest that the converters of engines accept.

    * ``width``: that of the residual stream.
    * ``heads``, ``kv_heads``: numbers of heads of queries, and of keys and values; ``head_width``: entries of each.
    * ``positions``: length of the longest text.
    * ``epsilon``: constant in the RMS norms; ``theta``: base of the rotary angles.
    """

    vocabulary: int = 5
    width: int = 32
    inner: int = 48
    """Width of the feed-forward layers."""
    layers: int = 2
    heads: int = 2
    kv_heads: int = 1
    head_width: int = 16
    positions: int = 64
    epsilon: float = 1e-5
    theta: float = 10_000.0


SMALLEST = LlamaSizes()


class Llama(NamedTuple):
    """A model: its sizes, and its weights by name, float32 ``[out, in]``, or ``[width]`` for a norm."""

    sizes: LlamaSizes
    weights: Mapping[str, Array]


def random_llama(seed: int, sizes: LlamaSizes = SMALLEST, spread: float = 1.5) -> Llama:
    """Return a model of these ``sizes`` with random weights, drawn by ``seed``.

    Its logits have a standard deviation of about ``spread`` and depend on all earlier tokens.
    """
    numbers = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, deviation: float) -> Array:
        return (deviation * numbers.standard_normal((rows, columns))).astype(np.float32)

    width, inner = sizes.width, sizes.inner
    weights = {"model.embed_tokens.weight": matrix(sizes.vocabulary, width, 1.0)}
    for layer in range(sizes.layers):
        start = f"model.layers.{layer}"
        for name, rows in (("q", sizes.heads), ("k", sizes.kv_heads), ("v", sizes.kv_heads)):
            weights[f"{start}.self_attn.{name}_proj.weight"] = matrix(rows * sizes.head_width, width, 2 * width**-0.5)
        weights[f"{start}.self_attn.o_proj.weight"] = matrix(width, sizes.heads * sizes.head_width, width**-0.5)
        weights[f"{start}.mlp.gate_proj.weight"] = matrix(inner, width, 2 * width**-0.5)
        weights[f"{start}.mlp.up_proj.weight"] = matrix(inner, width, 2 * width**-0.5)
        weights[f"{start}.mlp.down_proj.weight"] = matrix(width, inner, inner**-0.5)
        weights[f"{start}.input_layernorm.weight"] = np.ones(width, np.float32)
        weights[f"{start}.post_attention_layernorm.weight"] = np.ones(width, np.float32)
    weights["model.norm.weight"] = np.ones(width, np.float32)
    weights["lm_head.weight"] = matrix(sizes.vocabulary, width, spread * width**-0.5)
    return Llama(sizes, weights)


def next_logits(model: Llama) -> Callable[[Tokens], Array]:
    """Return a cached function from tokens to the float64 logits ``[vocabulary]`` of ``model`` for the next token."""

    @lru_cache(maxsize=4096)
    def logits(tokens: Tokens) -> Array:
        last: Array = all_logits(model, tokens)[-1]
        return last

    return logits


def all_logits(model: Llama, tokens: Tokens) -> Array:
    """Return the float64 logits ``[tokens, vocabulary]`` of ``model`` after each of ``tokens`` (at least one)."""
    weights = {name: value.astype(np.float64) for name, value in model.weights.items()}
    hidden = weights["model.embed_tokens.weight"][list(tokens)]
    for layer in range(model.sizes.layers):
        own = {name.partition(f"layers.{layer}.")[2]: value for name, value in weights.items() if f".{layer}." in name}
        hidden = hidden + _attended(model.sizes, own, _normed(hidden, own["input_layernorm.weight"], model.sizes))
        hidden = hidden + _fed_forward(own, _normed(hidden, own["post_attention_layernorm.weight"], model.sizes))
    result: Array = _normed(hidden, weights["model.norm.weight"], model.sizes) @ weights["lm_head.weight"].T
    return result


def _normed(hidden: Array, weight: Array, sizes: LlamaSizes) -> Array:
    normed: Array = hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + sizes.epsilon) * weight
    return normed


def _attended(sizes: LlamaSizes, own: Mapping[str, Array], hidden: Array) -> Array:
    queries = _rotated(_heads(hidden @ own["self_attn.q_proj.weight"].T, sizes.heads), sizes)
    keys = _rotated(_heads(hidden @ own["self_attn.k_proj.weight"].T, sizes.kv_heads), sizes)
    values = _heads(hidden @ own["self_attn.v_proj.weight"].T, sizes.kv_heads)
    shared = sizes.heads // sizes.kv_heads
    scores = queries @ np.repeat(keys, shared, 0).transpose(0, 2, 1) * sizes.head_width**-0.5
    scores = np.where(np.tri(len(hidden), dtype=bool), scores, -np.inf)
    masses = np.exp(scores - scores.max(-1, keepdims=True))
    masses /= masses.sum(-1, keepdims=True)
    joined = (masses @ np.repeat(values, shared, 0)).transpose(1, 0, 2).reshape(len(hidden), -1)
    attended: Array = joined @ own["self_attn.o_proj.weight"].T
    return attended


def _heads(rows: Array, heads: int) -> Array:
    """Return rows ``[tokens, heads * width]`` as ``[heads, tokens, width]``."""
    return rows.reshape(len(rows), heads, -1).transpose(1, 0, 2)


def _rotated(rows: Array, sizes: LlamaSizes) -> Array:
    """Return ``rows``, the queries or keys of each head and position, with rotary position embeddings.

    Element i of the first half of a head and element i of its second half are rotated together. ``sizes`` has the base
    of the angles.
    """
    half = sizes.head_width // 2
    angles = np.arange(rows.shape[1])[:, None] * sizes.theta ** (-np.arange(half) / half)
    first, second = rows[..., :half], rows[..., half:]
    turned: Array = np.concatenate(
        (first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)), -1
    )
    return turned


def _fed_forward(own: Mapping[str, Array], hidden: Array) -> Array:
    gate = hidden @ own["mlp.gate_proj.weight"].T
    fed: Array = (gate / (1 + np.exp(-gate)) * (hidden @ own["mlp.up_proj.weight"].T)) @ own["mlp.down_proj.weight"].T
    return fed
