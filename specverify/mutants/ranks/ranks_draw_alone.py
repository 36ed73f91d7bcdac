"""Ranks sample without a common seed: one accepts what another rejects, and they part."""

from __future__ import annotations

from typing import Any

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Draws


def own(draws: Draws, drawn: dict[Any, int], rank: int) -> Draws:
    """Return draws that no other rank gets."""
    return draws


MUTANT = in_situation(
    "two ranks",
    "ranks-draw-alone",
    "each rank has random numbers of its own",
    category="P",
    citation="vLLM issue #17498, PR #17509",
    rank_draws=own,
)
