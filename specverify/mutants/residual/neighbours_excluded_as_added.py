"""LANTERN's release with as many codes excluded as were added: one fewer than it excludes."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Parts, Task, from_parts, one_hot
from specverify.reference.algorithms import lantern_released
from specverify.reference.algorithms.lantern_released import nearest, together
from specverify.reference.pmf import uniform
from specverify.reference.types import Pmf
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def without(p: Pmf, token: int, neighbours: int) -> Pmf:
    """Return p without the token and its ``neighbours`` nearest."""
    left = p
    for code in (token, *nearest(token, len(p))[:neighbours]):
        left = left * (1 - one_hot(code, p))
    mass = left.sum()
    return left / mass if mass > 0 else uniform(len(p), p)


@from_parts
def build(task: Task, neighbours: int = 1, delta: Any = 0, gamma: int = 4) -> Parts:
    """Exclude what was added, whatever delta let in."""
    parts = lantern_released.build.parts(task, neighbours, delta, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        verifier=accept_or_replace(
            lambda prefix, p, q, token: together(p, token, neighbours, delta),
            lambda p, q, token: without(p, token, neighbours),
        )
    )


MUTANT = planted(
    "lantern-released",
    "neighbours-excluded-as-added",
    "excludes as many codes as it may add, not one more",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
