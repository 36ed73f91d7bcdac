"""The watermark's key of a draft is used again for what replaces it: the two are not independent."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draws, Pmf, Site, Task
from specverify.reference.algorithms import watermarked


class _OneKey:
    """Draws that answer the key of a replacement with the key of its draft."""

    def __init__(self, draws: Draws) -> None:
        self._draws, self._keys = draws, dict[object, int]()

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[:2] == ("key", "residual"):
            return self._keys[site[2]]
        outcome = self._draws.categorical(pmf, site)
        if site[:2] == ("key", "draft"):
            self._keys[site[2]] = outcome
        return outcome


def build(task: Task, keep: str = "efficiency", gamma: int = 4) -> Decoder:
    """The watermark that keeps its drafts' efficiency, with one key a place."""
    decoder = watermarked.build(task, keep, gamma)
    return decoder._replace(step=lambda draws, state: decoder.step(_OneKey(draws), state))


MUTANT = planted(
    "watermarked",
    "key-of-the-draft-again",
    "replaces a draft by the key that drew it",
    build,
    category="D",
    citation="plausible: one key a place",
    killed_by="law_is_target",
    examples=({"keep": "efficiency", "gamma": 1},),
)
