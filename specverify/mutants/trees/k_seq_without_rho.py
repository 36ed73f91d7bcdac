"""K-SEQ with rho = 1: candidates are accepted as if there were one, so the leftover would have to be negative."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import by_siblings
from specverify.reference import (
    Decoder,
    Draws,
    Pmf,
    Task,
    Tokens,
    accept_probability,
    flip,
    residual,
)
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step, tree_decoder


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Accept each candidate with min(1, p/q), emit from norm((p - q)+) if none is."""
    for k, token in enumerate(tokens):
        if flip(draws, accept_probability(p, pmfs[k], token), ("accept", depth, k)):
            return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, pmfs[0]), ("residual", depth)), accepted=False)


def build(task: Task, sequences: int = 4, depth: int = 4, bits: Any = 16) -> Decoder:
    """K sequences of one drafter."""
    return tree_decoder(task, sequences_drafter((draft_model(task),) * sequences, depth), by_siblings(rule))


MUTANT = planted(
    "k-seq",
    "k-seq-without-rho",
    "accepts K candidates with min(1, p/q) each",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"sequences": 2, "depth": 1, "bits": 8},),
)
