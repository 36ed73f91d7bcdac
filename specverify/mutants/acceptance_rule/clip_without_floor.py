"""Mentored decoding that clips q by b p from above and does not raise what is left: the rest goes to p instead."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Decoder, Pmf, Task, Tokens
from specverify.reference.coupling import positive_part
from specverify.reference.models import draft_model
from specverify.reference.parameters import parameter
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def build(task: Task, clip: Any = 2, gamma: int = 4) -> Decoder:
    """Mentored decoding without the floor a p."""
    draft = draft_model(task)

    def mixed(tokens: Tokens) -> Pmf:
        p, q = task.target(tokens), draft(tokens)
        raised = p * parameter(clip, p)
        kept = q - positive_part(q - raised)
        return kept + (1 - kept.sum()) * p

    return with_verifier(speculative_sampling)(task._replace(target=mixed), gamma)


MUTANT = planted(
    "mentored-decoding",
    "clip-without-floor",
    "pi = min(q, b p) filled up with p",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
