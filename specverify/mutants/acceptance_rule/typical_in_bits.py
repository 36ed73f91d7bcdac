"""Typical acceptance with the entropy in bits where the rule has nats: the threshold is too low."""

from __future__ import annotations

import math

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Decoder, Pmf, Task, point_on_argmax
from specverify.reference.algorithms.typical_acceptance import typical_threshold
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def build(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Decoder:
    """Typical acceptance, entropies divided by ln 2."""

    def threshold(p: Pmf) -> float:
        nats = -math.log(typical_threshold(p, 1, 1))
        return min(epsilon, delta * math.exp(-nats / math.log(2)))

    verify = accept_or_replace(
        lambda prefix, p, q, token: int(p[token] > threshold(p)),
        lambda p, q, token: point_on_argmax(p),
        point_on_argmax,
    )
    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "typical-acceptance",
    "typical-in-bits",
    "delta 2^-H for delta e^-H, H in nats",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
