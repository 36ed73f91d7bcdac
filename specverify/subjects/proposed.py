"""The request to a drafter and its result, as hashable data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from specverify.reference import LanguageModel, Tokens


class Proposed(NamedTuple):
    """A drafter's result for one request: the drafts (``tokens``), and the pmf that it reports for each (``rows``)."""

    tokens: Tokens
    rows: tuple[tuple[float, ...], ...] | None
    """The reported q of each draft; None if nothing was drawn."""


class DraftRequest(NamedTuple):
    """A request to a drafter, as hashable data: the text so far (``tokens``) and the number of drafts (``gamma``)."""

    tokens: Tokens
    gamma: int


def numbers_of(row: Any) -> list[float]:
    """Return ``row``, a pmf of a drafter in any kind of array, as a list of floats.

    Raises ``ValueError`` unless the array has one dimension.
    """
    values = row.detach().double().cpu().numpy() if hasattr(row, "detach") else np.asarray(row, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError("a row has one dimension")
    return list(map(float, values))


def reports(model: LanguageModel, asked: DraftRequest, draft: Tokens) -> list[list[float]]:
    """Return the pmf of ``model`` for each token of ``draft``: after the text of ``asked`` and the drafts before it."""
    return [numbers_of(model(asked.tokens + draft[:place])) for place in range(len(draft))]
