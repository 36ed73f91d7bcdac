"""What is asked of a batched verification kernel: its uniforms given, or its samples on its own device."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.checks.check import Check
from specverify.checks.kernels import (
    answers_are_rounds,
    calls_repeat,
    law_is_target,
    rows_are_independent,
    support_at_boundary_draws,
)
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_rounds import Rounds, rounds_of
from specverify.subjects.kernel_tables import SIZE

LARGE = 2**12
"""Rows of one look, at most, where the vocabulary is larger than the tables."""


def checks_of_uniforms(
    kernel: Kernel, gammas: Sequence[int], vocabularies: Sequence[int], rows: int
) -> tuple[Check, ...]:
    """Return the checks of a kernel whose uniforms are arguments; its rounds are made here.

    Raises ``ValueError`` if ``rows`` of one look are too few for one table.
    """
    sizes = (max(gammas),) if kernel.ragged else tuple(gammas)
    all_rounds: list[Rounds] = []
    for vocabulary in (SIZE, *vocabularies):
        for gamma in sizes:
            budget = rows // len(sizes) if vocabulary == SIZE else min(rows // len(sizes), LARGE)
            all_rounds.append(rounds_of(kernel, gamma, vocabulary, budget))
    return (
        answers_are_rounds.check_of(all_rounds),
        *calls_repeat.checks_of(all_rounds),
        rows_are_independent.check_of(all_rounds),
        *law_is_target.checks_of(all_rounds),
        support_at_boundary_draws.check_of(all_rounds),
    )
