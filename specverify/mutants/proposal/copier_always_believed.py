"""Copied tokens carry a made-up probability of 1 into the ratio as the target's mass: every copy is accepted."""

from __future__ import annotations

from reference import Decoder, Task, chain_decoder, constant, prompt_lookup_drafter
from reference.verifiers.accept_or_replace import accept_or_replace
from specverify.mutants.mutant import planted


def build(task: Task, max_ngram: int = 3, gamma: int = 4) -> Decoder:
    """Prompt lookup whose drafts are never refused."""
    verify = accept_or_replace(lambda prefix, p, q, token: 1, lambda p, q, token: p)
    return chain_decoder(task, prompt_lookup_drafter(max_ngram, task.eos), constant(gamma), verify)


MUTANT = planted(
    "prompt-lookup",
    "copier-always-believed",
    "accepts whatever was copied",
    build,
    category="B",
    citation="openvino.genai PR #2331 (18b7b7818)",
    killed_by="tokens_are_supported",
    examples=({"max_ngram": 2, "gamma": 2},),
)
