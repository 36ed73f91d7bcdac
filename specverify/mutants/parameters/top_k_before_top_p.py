"""Top-k cuts and renormalises first, so top-p keeps fewer tokens than it does in plain sampling; min-p is left out."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.processors import truncated
from specverify.mutants.serving.request import ONE, ZERO, ExactPmf, Parameters


def one_after_the_other(row: ExactPmf, parameters: Parameters) -> ExactPmf:
    """Return the row cut by top-k, then by the nucleus of what is left."""
    few = truncated(row, parameters._replace(top_p=ONE, min_p=ZERO))
    return truncated(few, parameters._replace(top_k=0, min_p=ZERO))


MUTANT = in_situation(
    "top-k and top-p",
    "top-k-before-top-p",
    "the nucleus is that of the top k alone",
    category="F",
    citation="SGLang PR #36173",
    truncated=one_after_the_other,
)
