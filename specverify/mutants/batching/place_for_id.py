"""Next to sampled rows, the argmax of a reordered array of candidates is returned as if it were a token id."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ExactPmf, argmax


def in_candidates(row: ExactPmf, mixed: bool) -> int:
    """Return the place of the best candidate among the ids in reverse order, if the batch is mixed."""
    return argmax(row[::-1]) if mixed else argmax(row)


MUTANT = in_situation(
    "greedy beside sampled",
    "place-for-id",
    "a greedy row returns a place, no id",
    category="L",
    citation="vllm-ascend issue #16396, PR #16430",
    greedy=in_candidates,
)
