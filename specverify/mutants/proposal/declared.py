"""A drafter that draws from one model and declares another: what all dishonest drafters are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Task,
    Tokens,
    Verifier,
    chain,
    chain_decoder,
    constant,
    model_drafter,
)
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def declaring(
    task: Task,
    gamma: int,
    sampled: LanguageModel,
    declared: Callable[[Tokens], Pmf | None],
    verify: Verifier = speculative_sampling,
) -> Decoder:
    """Return the decoder that drafts from ``sampled`` and says it was ``declared``."""
    drafter = model_drafter(sampled)

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tokens = drafter.propose(draws, state, prefix, count, stop_after).tokens
        return chain(tokens, tuple(declared(prefix + tokens[:i]) for i in range(len(tokens))))

    return chain_decoder(task, drafter._replace(propose=propose), constant(gamma), verify)
