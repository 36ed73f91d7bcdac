"""The processed distribution is built and its argmax returned where a draw is meant: temperature has no effect."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_verifiers import planted_verifier, softmax_rows


def verify(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Emit argmaxes of the processed rows while they match."""
    best: list[int] = softmax_rows(target_logits, temperature).argmax(-1).tolist()
    misses = [i for i, token in enumerate(draft_tokens.tolist()) if token != best[i]]
    return best[: misses[0] + 1 if misses else len(best)]


MUTANT = planted_verifier(
    verify,
    "argmax-for-a-draw",
    "returns the mode instead of a sample",
    category="A",
    citation="mistral.rs issue #2329, PR #2424",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.0),),
)
