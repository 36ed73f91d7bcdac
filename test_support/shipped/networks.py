"""Networks that return tables, with and without a cache; the entries of a cache are the tokens fed to it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

Tables = Callable[[tuple[int, ...]], Any]
MOST_POSITIONS = 256
"""Positions of a network; more than the tokens of any scenario, prompt included."""


def logits_of(tables: Tables, ids: Any) -> Any:
    """Return float64 logits ``[B, length, vocabulary]`` of the token after each prefix of ``ids`` ``[B, length]``."""
    texts = [tuple(map(int, row)) for row in ids]
    rows = [[np.asarray(tables(text[: end + 1]), dtype=float) for end in range(len(text))] for text in texts]
    return torch.log(torch.tensor(np.array(rows)))


class Positions:
    """A network of one row that stores the token fed at each position."""

    def __init__(self, tables: Tables, room: int) -> None:
        """The network has ``room`` positions."""
        self.tables, self.fed = tables, [0] * room

    def __call__(self, ids: Any, positions: Any) -> Any:
        """Return the logits ``[1, length, vocabulary]`` after each of the positions that are fed."""
        for token, position in zip(ids.flatten().tolist(), positions.flatten().tolist(), strict=True):
            self.fed[position] = token
        return logits_of(self.tables, [self.fed[: int(positions.max()) + 1]])[:, positions.flatten()]


class Uncached:
    """A network that is fed the whole text each time, with the interface of transformers."""

    device = torch.device("cpu")

    def __init__(self, tables: Tables, **attributes: Any) -> None:
        """``attributes`` are what else the code asks of a network."""
        self.tables = tables
        vars(self).update(attributes)

    def __call__(self, input_ids: Any, **_: Any) -> Any:
        """Return the logits after every token."""
        return SimpleNamespace(logits=logits_of(self.tables, input_ids), past_key_values=None)


class Cached(Uncached):
    """A network of one row with a cache: ``past_key_values[0][0]`` is ``[1, 1, length, 1]``."""

    def __call__(self, input_ids: Any, past_key_values: Any = None, **_: Any) -> Any:
        """Return the logits after every token that is fed, and the cache that holds those too."""
        before = [] if past_key_values is None else past_key_values[0][0].flatten().tolist()
        text = [*map(int, before), *(int(token) for token in input_ids[0])]
        entries = torch.tensor(text, dtype=torch.float64).reshape(1, 1, -1, 1)
        logits = logits_of(self.tables, [text])[:, len(before) :]
        return SimpleNamespace(logits=logits, past_key_values=((entries, entries.clone()),))


def cropped(_: Any, past: Any, length: int) -> Any:
    """Return the first ``length`` entries of a cache, as ``_crop_past_key_values`` of transformers did."""
    return tuple((keys[:, :, :length], values[:, :, :length]) for keys, values in past)
