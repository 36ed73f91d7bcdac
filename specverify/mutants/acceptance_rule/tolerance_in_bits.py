"""SpecDec with the tolerance compared in bits where it is given in nats."""

from __future__ import annotations

import math

from specverify.mutants.mutant import correct, planted
from specverify.reference import Decoder, Task


def build(task: Task, beta: int = 5, tau: float = 3.0, gamma: int = 4) -> Decoder:
    """SpecDec with a tolerance of tau bits."""
    return correct("specdec").build(task, beta=beta, tau=tau * math.log(2), gamma=gamma)


MUTANT = planted(
    "specdec",
    "tolerance-in-bits",
    "compares log2 ratios with tau in nats",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
