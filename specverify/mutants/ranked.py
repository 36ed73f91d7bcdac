"""Engines on several ranks that part: each breaks the promise that all ranks emit the same tokens.

``ranked(fault, scenario)`` is a small engine on one of the ranks of ``scenario.group``; without a fault rank 0 decides
each round and the ranks agree. ``RANKS`` are its faults, each with the record of the defect or "plausible".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.made_engine import EngineScenario

RANKS: Final[Mapping[str, tuple[str, str]]] = {
    "a generator on each rank": ("ranks", "vLLM issue #17498, PR #17509"),
    "one seed, and rows of each rank": ("ranks", "plausible"),
    "bonus drawn on each rank": ("ranks", "plausible"),
    "drafts of each rank": ("ranks", "vLLM issue #31154, PRs #31288, #31307"),
    "a collective call for each token of a rank": ("ranks", "plausible"),
}
"""Fault -> (the promise that it breaks, its record)."""
Draw = Callable[[], float]
RNG: Any = np.random
"""The generator of the library, which is in another state on each rank."""


def inverse(pmf: Any, uniform: float) -> int:
    """Return the token at a uniform."""
    return min(int(np.searchsorted(np.cumsum(pmf), uniform, side="right")), len(pmf) - 1)


def one_round(models: EngineScenario, text: Tokens, draw: Draw) -> Tokens:
    """Return one draft and its verification, on one rank."""
    q, p = models.draft(text), models.target(text)
    draft = inverse(q, draw())
    if draw() < p[draft] / q[draft]:
        return draft, inverse(models.target((*text, draft)), draw())
    return (inverse(_owed(p, q), draw()),)


def decoded(models: EngineScenario, new_of: Callable[[Tokens], Tokens]) -> Tokens:
    """Return the new tokens; ``new_of(text)`` are those of one round."""
    new: Tokens = ()
    while len(new) < models.horizon:
        new += tuple(new_of(models.prompt + new))
    return new[: models.horizon]


def ranked(fault: str, models: EngineScenario) -> Callable[..., Tokens]:
    """Return the engine of one rank, with a fault or with none."""
    group: Any = models.group

    def of_one_seed(seed: int) -> Tokens:
        draw = np.random.default_rng(seed).random
        return decoded(models, lambda text: one_round(models, text, draw))

    if fault == "one seed, and rows of each rank":
        return of_one_seed

    def new_of(text: Tokens) -> Tokens:
        if fault == "drafts of each rank":
            return _of_own_draft(models, text)
        new = one_round(models, text, RNG.random)
        if fault == "a generator on each rank":
            return new
        if fault == "bonus drawn on each rank":
            kept = tuple(group.broadcast(new[:1]))
            return (*kept, inverse(models.target(text + kept), RNG.random()))
        if fault == "a collective call for each token of a rank":
            return tuple(group.broadcast(token) for token in new)
        return tuple(group.broadcast(new))

    return lambda: decoded(models, new_of)


def _of_own_draft(models: EngineScenario, text: Tokens) -> Tokens:
    """Return a token: each rank drafts for itself, and the verdict of rank 0 is of its own draft."""
    group: Any = models.group
    q, p = models.draft(text), models.target(text)
    draft = inverse(q, RNG.random())
    if group.broadcast(bool(RNG.random() < p[draft] / q[draft])):
        return (draft,)
    return (int(group.broadcast(inverse(_owed(p, q), RNG.random()))),)


def _owed(p: Any, q: Any) -> Any:
    left = np.maximum(p - q, 0)
    return left / left.sum() if left.sum() > 0 else p
