"""Tokens are drawn from a truncated q while the raw q is declared: the ratio is off by the truncated mass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reference import Decoder, Draft, Draws, Pmf, Task, Tokens, chain, chain_decoder, constant, model_drafter, top_k
from reference.models import draft_model
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.mutants.mutant import Mutant, planted


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose drafter samples its top token set only and does not say so."""
    raw = draft_model(task)
    drafter = model_drafter(lambda tokens: top_k(raw(tokens), 1))

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tokens = drafter.propose(draws, state, prefix, count, stop_after).tokens
        return chain(tokens, tuple(raw(prefix + tokens[:i]) for i in range(len(tokens))))

    return chain_decoder(task, drafter._replace(propose=propose), constant(gamma), speculative_sampling)


MUTANT = Mutant(
    planted("speculative-sampling", "raw-draft-declared", "samples a truncated q, declares the raw one", build),
    citation="transformers issues #47932, #32867; jaymody/speculative-sampling issue #3",
    killed_by="draft_is_honest",
)
