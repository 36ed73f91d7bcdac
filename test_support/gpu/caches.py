"""Caches of real models under speculation, and the tokens that were fed into them.

A ``Kind`` is a cache class with one method of pruning it; all of them are in ``cache_kinds``. ``Held`` is a cache
together with the tokens fed into it, one row per sequence. ``cache_comparison`` compares it with a fresh prefill.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from reference.types import Tokens

SOURCE = (2, 7, 1, 8)
"""What the encoder of an encoder-decoder reads."""
Rows = tuple[Tokens, ...]


class Kind(NamedTuple):
    """A cache class with one method of pruning it."""

    cache: str
    pruned_by: str
    new: Callable[[Any], Any]
    """An empty cache for a model."""
    prune: Callable[[Held, int], None]
    """Shorten a cache to a number of tokens."""
    models: tuple[str, ...]
    remember: Callable[[Any], Any] = lambda cache: None
    """Called before drafts are fed; what it returns is kept for ``prune``."""
    prefill_in_two: bool = False
    """Storage that rounds is compared with a cache that never saw the rejected drafts and was fed in the same parts."""

    @property
    def name(self) -> str:
        """Return the name of the kind: the first cells of its table row."""
        return f"{self.cache}, {self.pruned_by}"


@dataclass
class Held:
    """A model's cache, and the tokens that were fed into it ``[batch, held]``."""

    model: Any
    kind: Kind
    fed: Rows = ((),)
    cache: Any = None
    remembered: Any = None
    before_drafts: int = 0
    source: Rows = field(default=(SOURCE,))

    def __post_init__(self) -> None:
        if self.cache is None:
            self.cache = self.kind.new(self.model)

    @property
    def held(self) -> int:
        """Return the number of tokens that were fed and not pruned."""
        return len(self.fed[0])

    def feed(self, rows: Rows, **options: Any) -> torch.Tensor:
        """Feed more tokens and return their logits ``[batch, tokens, vocabulary]``."""
        logits = forward(self.model, self.cache, rows, self.source, **options)
        self.fed = tuple(row + more for row, more in zip(self.fed, rows, strict=True)) if self.held else rows
        return logits

    def before_drafting(self) -> None:
        """Mark the beginning of the drafts: tokens that are fed from now on may be pruned."""
        self.remembered, self.before_drafts = self.kind.remember(self.cache), self.held

    def prune(self, keep: int) -> None:
        """Remove every token but the first ``keep`` from the cache."""
        self.kind.prune(self, keep)
        self.fed = tuple(row[:keep] for row in self.fed)

    def reorder(self, rows: list[int]) -> None:
        """Move row ``rows[i]`` to row i in the cache, its snapshot, the encoder's input and the record of tokens."""
        indices = torch.tensor(rows, device=self.model.device)
        if self.held:
            self.cache.reorder_cache(indices)
        else:  # the library leaves an emptied cache as it is, with the number of rows it had
            self.cache = self.kind.new(self.model)
            self.remembered = self.kind.remember(self.cache)
        if self.remembered is not None:
            self.remembered.reorder_cache(indices)
        self.fed, self.source = (tuple(of[row] for row in rows) for of in (self.fed, self.source))

    def copy(self) -> Held:
        """Return a copy that shares only the model."""
        return Held(
            self.model,
            self.kind,
            self.fed,
            copy.deepcopy(self.cache),
            copy.deepcopy(self.remembered),
            self.before_drafts,
            self.source,
        )


def forward(model: Any, held: Any, rows: Rows, source: Rows, **options: Any) -> torch.Tensor:
    """Run one forward pass of ``rows`` on a cache; the encoder of an encoder-decoder reads ``source``, row by row."""
    ids = torch.tensor(rows, device=model.device)
    if model.config.is_encoder_decoder:
        read = torch.tensor(source, device=model.device)
        options |= {"input_ids": read, "decoder_input_ids": ids, "past_key_values": held}
    else:
        of_state_space = model.config.model_type == "mamba2"
        options |= {"input_ids": ids, "cache_params" if of_state_space else "past_key_values": held}
    with torch.no_grad():
        return model(use_cache=True, **options).logits
