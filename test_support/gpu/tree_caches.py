"""A draft tree fed into a cache in one pass, one accepted path, and comparisons of both with prefills of chains.

Nodes are fed after the last known token, each at the position of its depth, with a mask that shows each node its
ancestors. The entries of an accepted path are gathered, and the others are cropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from reference.kv_cache import keep_path, tokens_to_feed, tree_depths, tree_mask, tree_path
from test_support.gpu.cache_comparison import difference, fresh, relative_difference
from test_support.gpu.cache_kinds import DYNAMIC, kind
from test_support.gpu.cache_rounds import EMITTED, KNOWN
from test_support.gpu.caches import Held
from test_support.gpu.tiny_models import VOCABULARY, WINDOWS


def tokens_of(parents: Sequence[int]) -> tuple[int, ...]:
    """Return a token for every node; siblings get different tokens."""
    return tuple((5 * node + 2) % VOCABULARY for node in range(len(parents)))


class Choices(NamedTuple):
    """How nodes are fed; a planted mistake replaces one."""

    depths: Callable[[Sequence[int]], Sequence[int]] = tree_depths
    mask: Callable[[Sequence[int], int], Any] = tree_mask


class Fed(NamedTuple):
    """A cache that holds the known tokens and a whole tree."""

    held: Held
    logits: torch.Tensor
    """Of the last known token and every node behind it ``[1 + nodes, vocabulary]``."""


def feed_tree(model: Any, kind_name: str, parents: Sequence[int], choices: Choices = Choices()) -> Fed:  # noqa: B008
    """Feed the last known token and the tree in one pass, with positions by depth and a mask of four dimensions."""
    held = Held(model, kind(kind_name))
    held.feed((KNOWN[:-1],))
    depths = choices.depths(parents)
    positions = torch.tensor([len(KNOWN) - 1, *(len(KNOWN) + depth for depth in depths)], device=model.device)
    seen = torch.tensor(choices.mask(parents, len(KNOWN)), device=model.device)
    if window := getattr(model.config, "sliding_window", None) if has_window(model) else None:
        every = torch.cat([torch.arange(len(KNOWN) - 1, device=model.device), positions])
        within = seen & (positions[:, None] - every[None, :] < window)
        kinds = getattr(model.config, "layer_types", None)
        mask: Any = (
            {"sliding_attention": additive(within), "full_attention": additive(seen)} if kinds else additive(within)
        )
    else:
        room = getattr(held.cache.layers[0], "max_cache_len", seen.shape[1])
        mask = additive(torch.nn.functional.pad(seen, (0, room - seen.shape[1])))
    fed = tokens_to_feed(KNOWN, held.held) + tokens_of(parents)
    logits = held.feed((fed,), position_ids=positions[None], attention_mask=mask)
    return Fed(held, logits[0])


def has_window(model: Any) -> bool:
    return model.config.model_type.removesuffix("_text") in WINDOWS


def additive(seen: torch.Tensor) -> torch.Tensor:
    """Convert ``[queries, entries]`` booleans to an additive mask of scores ``[1, 1, queries, entries]``."""
    lowest = torch.finfo(torch.float64).min
    return torch.zeros(seen.shape, dtype=torch.float64, device=seen.device).masked_fill(~seen, lowest)[None, None]


def logits_difference(model: Any, fed: Fed, parents: Sequence[int]) -> float:
    """Return how far the logits of the nodes are from those of their paths, each fed as a chain."""
    of_nodes, tokens = [], tokens_of(parents)
    for node in range(-1, len(parents)):
        chain = (*KNOWN, *(tokens[on_path] for on_path in tree_path(parents, node)))
        expected = fresh(model, kind(DYNAMIC), (chain,)).logits[0, -1]
        of_nodes.append(relative_difference(fed.logits[1 + node], expected))
    return max(of_nodes)


def gather_then_crop(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    return keep_path(entries, len(KNOWN), path)


def keep_in_place(held: Held, path: tuple[int, ...], pruned: Callable[[torch.Tensor, tuple[int, ...]], Any]) -> None:
    """Prune every layer to the known tokens and the path."""
    keep = len(KNOWN) + len(path)
    for layer in held.cache.layers:
        stored = {name: getattr(layer, name)[..., : held.held, :] for name in ("keys", "values")}
        for name, entries in stored.items():
            kept = pruned(entries, path)
            if hasattr(layer, "max_cache_len"):
                getattr(layer, name)[..., :keep, :] = kept
            else:
                setattr(layer, name, kept)
        if hasattr(layer, "max_cache_len"):
            layer.cumulative_length.fill_(keep)


def accepted_difference(
    fed: Fed,
    parents: Sequence[int],
    node: int,
    pruned: Callable[[torch.Tensor, tuple[int, ...]], Any] = gather_then_crop,
) -> float:
    """Accept the path to ``node``, feed one more token, and compare all layers and the next logits with a prefill."""
    held, path, drafts = fed.held.copy(), tree_path(parents, node), tokens_of(parents)
    keep_in_place(held, path, pruned)
    tokens = (*KNOWN, *(drafts[on_path] for on_path in path), EMITTED)
    held.fed = (tokens[:-1],)
    before = difference(held.cache, fresh(held.model, held.kind, (tokens[:-1],)))
    logits = held.feed((tokens_to_feed(tokens, held.held),))
    expected = fresh(held.model, held.kind, (tokens,))
    return max(before, difference(held.cache, expected), relative_difference(logits[:, -1], expected.logits[:, -1]))
