"""One draft a round is looked at, whatever was drafted; what follows it comes from the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specverify.mutants.numpy_verifiers import decided
from specverify.mutants.small_engine import engine_of, planted_engine


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Speculative sampling of the first draft."""
    return decided(rng, p, q, drafts[:1])


MUTANT = planted_engine(
    engine_of(decide),
    "first-draft-alone",
    "refuses every draft but the first",
    category="Q",
    citation="plausible",
    killed_by="acceptance_law",
    control=engine_of(),
)
