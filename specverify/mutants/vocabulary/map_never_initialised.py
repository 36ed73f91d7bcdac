"""The translator's map is made when a size differs by what it expects, and is still empty when it is used."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.reference import Tokens


def without_map(row: ExactPmf, ids: Tokens, vocabulary: int) -> ExactPmf:
    """Return the row over target ids; raises ``IndexError``, as the map has no entry."""
    empty: list[int] = []
    masses = [ZERO] * vocabulary
    for token, mass in enumerate(row):
        masses[empty[token]] += mass
    return tuple(masses)


MUTANT = in_situation(
    "draft in its own ids",
    "map-never-initialised",
    "the map of ids is never filled",
    category="N",
    citation="transformers issue #45307",
    to_target=without_map,
)
