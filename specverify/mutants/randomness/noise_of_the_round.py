"""Edge and cloud index their common noise by the round instead of the position: all its tokens win one race.

Each race is drawn given the one before it, so two neighbours have the joint law of winners over common noise.
"""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Decoder, Draws, Pmf, Site, Task, constant
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.shared_noise import DrawnNoise, SharedNoise
from specverify.reference.verifiers.gumbel_coupling import draft_given_target


class _OneRace:
    """Draws in which the first race of a position is run over the noise of the position before."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._before: tuple[Pmf, int] | None = None

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[-1] == "other":
            return self._draws.categorical(pmf, site)
        law = pmf if self._before is None else draft_given_target(self._before[0], pmf, self._before[1])
        token = self._draws.categorical(law, site)
        self._before = pmf, token
        return token


def noise(draws: Draws) -> SharedNoise:
    """Return the noise of a round, whose positions share one race."""
    return DrawnNoise(_OneRace(draws))


def build(task: Task, gamma: int = 4) -> Decoder:
    """Shared noise that belongs to rounds."""
    return edge_cloud_decoder(task, "gumbel", constant(gamma), noise=noise)


MUTANT = planted(
    "edge-cloud-gumbel",
    "noise-of-the-round",
    "reads one race for all positions of a round",
    build,
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
