"""Checks of a batched verification kernel: exact with given uniforms, or by samples of the kernel's own generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from specverify.base.arguments import check_number, check_probability, check_seed
from specverify.checks.check import Check
from specverify.checks.kernels import (
    answers_are_rounds,
    calls_repeat,
    kernel_draws_are_independent,
    kernel_law_is_target,
    kernel_rows_are_independent,
    kernel_samples_fit_law,
    kernel_support_at_boundary_draws,
    streams_are_independent,
)
from specverify.statistics.independence import samples_of_tables
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_rounds import (
    KernelRounds,
    Placement,
    deep_rounds_of,
    rounds_of,
    runs_on,
    three_left_rounds_of,
)
from specverify.subjects.kernel_samples import Calls
from specverify.subjects.kernel_tables import SIZE

CHECKS = 7
"""The largest number of checks of samples; they share the alarm budget."""
COARSEST = 0.2
"""The largest total variation that may be requested as detectable."""
FOUR: tuple[Placement, ...] = ("ends", "thirds")
"""The placements of four tokens."""
LARGE = 2**12
"""The most rows of one evaluation if the vocabulary is larger than that of the tables."""


def checks_of_uniforms(
    kernel: Kernel, gammas: Sequence[int], vocabularies: Sequence[int], rows: int, *, deep: bool = False
) -> tuple[Check, ...]:
    """Return the checks of a kernel that takes its uniforms as arguments.

    Args:
        kernel: The kernel.
        gammas: All numbers of drafts to check.
        vocabularies: All vocabulary sizes to check.
        rows: The most rows of one evaluation.
        deep: Whether the law is also examined with more drafts, if the kernel runs on them.

    Raises:
        ValueError: ``rows`` is too small.
    """
    sizes = (max(gammas),) if kernel.ragged else tuple(gammas)
    all_rounds, elsewhere = list[KernelRounds](), list[KernelRounds]()
    for vocabulary in (SIZE, *vocabularies):
        for gamma in sizes:
            budget = rows // len(sizes) if vocabulary == SIZE else min(rows // len(sizes), LARGE)
            all_rounds.append(rounds_of(kernel, gamma, vocabulary, budget))
            if vocabulary != SIZE:
                elsewhere += [rounds_of(kernel, gamma, vocabulary, budget, place) for place in ("block", "far")]
                if not kernel.race:
                    elsewhere += [three_left_rounds_of(kernel, gamma, vocabulary, budget, place) for place in FOUR]
    deeper = [result for result in [deep_rounds_of(kernel, rows)] if runs_on(result)] if deep else []
    return (
        answers_are_rounds.check_of(all_rounds),
        *calls_repeat.checks_of(all_rounds),
        kernel_rows_are_independent.check_of(all_rounds),
        *kernel_law_is_target.checks_of([*all_rounds, *elsewhere, *deeper]),
        *kernel_support_at_boundary_draws.checks_of(all_rounds),
    )


class Precision(NamedTuple):
    """The total variations that samples of a kernel detect, and the error probabilities of the tests.

    ``miss`` is the probability that a deviation of the detectable size is missed, and ``seed`` the seed of the samples.
    """

    tv: float
    """Detectable total variation of the law."""
    dependence: float
    """Detectable total variation of a table from independence."""
    large: float
    """Detectable total variation of the law in larger vocabularies."""
    alarm: float
    """The probability that any of the tests refutes a right kernel."""
    miss: float = 1e-3
    seed: int = 0


def precision_of(tv: float, alarm: float, seed: int) -> Precision:
    """Return the precision of samples that detect a total variation of ``tv`` between laws.

    Other tests are coarser: tests of independence detect 10 times ``tv``, and tests at larger vocabularies 30 times
    ``tv``; neither value exceeds ``COARSEST``. ``alarm`` is the probability that any test refutes a right kernel.
    Raises ``ValueError`` for an invalid number. ``seed`` is that of the samples.
    """
    check_number(tv, "tv", "a total variation above 0 and at most 0.2", lambda value: 0 < value <= COARSEST)
    check_probability(alarm, "alarm")
    check_seed(seed)
    return Precision(tv, min(10 * tv, COARSEST), min(30 * tv, COARSEST), alarm, seed=seed)


def checks_of_samples(
    kernel: Kernel,
    gammas: Sequence[int],
    vocabularies: Sequence[int],
    calls: Calls,
    precision: Precision,
    *,
    deep: bool = False,
) -> tuple[Check, ...]:
    """Return the checks, by samples, of a kernel with an internal generator.

    Args:
        kernel: The kernel.
        gammas: All numbers of drafts to check.
        vocabularies: All vocabulary sizes to check.
        calls: How the sampled rows are divided among calls of the kernel.
        precision: The differences to detect and the error probabilities.
        deep: Whether the law is also sampled with more drafts.
    """
    tv, dependence, large, alarm, miss, seed = precision
    sampled = kernel_samples_fit_law.situations_to_sample(kernel, gammas, vocabularies, tv, large, calls)
    sampled += kernel_samples_fit_law.deep_situations_to_sample(kernel, tv, calls) if deep else []
    gamma, share = max(gammas), alarm / CHECKS
    tables = samples_of_tables(0.85 * dependence, 1, share / 1000, miss)
    return (
        *streams_are_independent.checks_of(kernel, gamma, tables, share, calls, seed),
        *kernel_draws_are_independent.checks_of(kernel, gamma, 2 * tables, share, calls),
        *kernel_samples_fit_law.checks_of(sampled, share),
    )
