"""A rejection across the edge of a page leaves that page taken: after a few of them nothing can go on."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def lost(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pages that are needed; the others are nobody's."""
    return pages[:needed], free


MUTANT = in_situation(
    "few pages",
    "pages-never-given-back",
    "a rewind gives no page back",
    category="H",
    citation="TensorRT-LLM issue #16448",
    trimmed=lost,
)
