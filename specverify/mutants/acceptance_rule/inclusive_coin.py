"""A coin is compared with <= instead of <: a uniform of exactly 0 keeps a draft of target probability 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specverify.mutants.numpy_verifiers import drawn, excess
from specverify.mutants.small_engine import engine_of, planted_engine


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Speculative sampling with ``u q <= p``."""
    for i, token in enumerate(drafts):
        if not rng.random() * q[i, token] <= p[i, token]:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


MUTANT = planted_engine(
    engine_of(decide),
    "inclusive-coin",
    "keeps a forbidden draft when u is 0",
    category="A",
    citation="SGLang issue #35771; Sequoia commits 12844ff, 530d1bf, b8f7b10, df58fc0; "
    "romsto/Speculative-Decoding speculative_decoding.py:143 at db7db67",
    killed_by="support_at_boundary_draws",
    control=engine_of(),
    decide=decide,
)
