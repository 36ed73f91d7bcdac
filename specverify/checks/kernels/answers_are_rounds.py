"""Every row of a kernel's output is a possible result of a round: accepted drafts, one more token, then padding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.kernels.row_texts import described_rounds, described_row, emitted_ids, kernel_check, models_of
from specverify.subjects.kernel_rounds import KernelRounds, decided

SIZES = (1, 2, 3, 31, 32, 33, 64, 65, 127, 128, 129, 257)
"""Numbers of rows per launch: just below and above usual block sizes."""


def examine(rounds: KernelRounds, _: Conditions) -> Examination:
    """Examine calls of several sizes: each row of the output must be a possible result of one round.

    ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    rng, runs = np.random.default_rng(0), 0
    for size in (size for size in SIZES if size <= rounds.most):
        cases, uniforms = ordinary_rows(rounds, size, rng)
        answers = decided(rounds, cases, uniforms)
        runs += size
        for row in range(size):
            reason = fault(rounds, int(cases[row]), answers[row].tolist())
            if reason:
                where = described_row(rounds, int(cases[row]), uniforms[row], f"row {row + 1} of {size}")
                then = f"row {row + 1} of {size} {reason}"
                let = (described_rounds(rounds), *models_of(rounds, int(cases[row])), where)
                example = Counterexample(
                    let, f"it {reason}: its answer is {emitted_ids(rounds, answers[row].tolist())}"
                )
                return Examination(then, failed=True, counterexample=example, figures={"runs": runs})
    return Examination("every row is accepted drafts and one token more", figures={"runs": runs})


def ordinary_rows(rounds: KernelRounds, size: int, rng: Any) -> tuple[Any, Any]:
    """Return (case of each row, uniforms ``[size, draws]``) for ``size`` random rows.

    A case is an index in ``rounds.cases``, which has the drafts of the row. The uniforms are far from all values at
    which the outcome changes. ``rng`` draws both. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    cells = [rounds.cells[i] for i in rng.integers(len(rounds.cells), size=size)]
    low, high = (np.array([cell[side] for cell in cells], dtype=np.float64) for side in (1, 2))
    uniforms = low + (high - low) * rng.uniform(0.25, 0.75, size=low.shape)
    return np.array([cell.case for cell in cells]), uniforms


def fault(rounds: KernelRounds, case: int, answer: Sequence[int]) -> str | None:
    """Describe why a row of the output is no possible result of a round; None if it is one.

    A result is accepted drafts, one more token, and padding. ``answer`` is the row, and ``case`` an index in
    ``rounds.cases``, which has the drafts of the row. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    draft, tokens = rounds.cases[case].draft, list(answer)
    while tokens and tokens[-1] == -1:
        tokens.pop()
    if not tokens:
        return "emits nothing"
    if len(tokens) > len(draft) + 1:
        return f"emits {len(tokens)} tokens at {len(draft)} drafts"
    if -1 in tokens:
        return "has padding before its last token"
    outside = [token for token in emitted_ids(rounds, tokens) if not 0 <= token < rounds.vocabulary]
    if outside:
        return f"emits {outside[0]}, outside the vocabulary of {rounds.vocabulary}"
    kept = len(tokens) - 1
    if tuple(tokens[:kept]) != draft[:kept]:
        return f"emits {kept + 1} tokens, and the first {kept} are not its drafts"
    return None


def check_of(all_rounds: Sequence[KernelRounds]) -> Check:
    """Return the check of one kernel; ``all_rounds`` are its settings (gamma, vocabulary)."""
    return kernel_check(
        "answers_are_rounds",
        "a row is its accepted drafts, one token more, and padding",
        None,
        Evidence.EQUAL,
        {described_rounds(rounds): partial(examine, rounds) for rounds in all_rounds},
    )
