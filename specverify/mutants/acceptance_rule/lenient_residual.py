"""Lenience with the lenient target in the residual too: not the declared bias, though of the same size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Decoder, Task, excess_law
from specverify.reference.algorithms.lenience import lenient_probability
from specverify.reference.parameters import parameter
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def build(task: Task, lenience: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """Lenience, its residual too."""
    verify = accept_or_replace(
        lambda prefix, p, q, token: lenient_probability(p, q, token, lenience),
        lambda p, q, token: excess_law(p / parameter(lenience, p), q),
    )
    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "lenience",
    "lenient-residual",
    "emits from norm((p/l - q)+) after a rejection",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
