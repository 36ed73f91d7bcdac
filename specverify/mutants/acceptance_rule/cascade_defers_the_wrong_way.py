"""A speculative cascade whose deferral rule is asked with the two models exchanged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Decoder, Task
from specverify.reference.algorithms.speculative_cascade import cascade
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def build(task: Task, rule: str = "opt", alpha: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """The cascade of (q, p) in place of (p, q), still drafted from q."""
    exchanged = cascade(task._replace(target=draft_model(task), draft=task.target), rule, alpha)
    return with_verifier(speculative_sampling)(task._replace(target=exchanged), gamma)


MUTANT = planted(
    "speculative-cascade",
    "cascade-defers-the-wrong-way",
    "defers where the draft is good",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
