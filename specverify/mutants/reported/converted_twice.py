"""Where each step waits for its results, lists of probabilities are turned into lists once more, and that fails."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from specverify.mutants.serving.planted import in_situation


def twice(probabilities: Sequence[Any], waits: bool) -> tuple[Fraction, ...]:
    """Return the probabilities; raises ``TypeError`` when each of them is taken for a list."""
    return tuple(row[0] for row in map(tuple, probabilities)) if waits else tuple(probabilities)


MUTANT = in_situation(
    "reported probabilities, each step waiting",
    "converted-twice",
    "probabilities are converted twice",
    category="O",
    citation="vllm-ascend PR #7861",
    listed=twice,
)
