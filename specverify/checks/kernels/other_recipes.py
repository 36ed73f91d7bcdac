"""Explain all answers of a kernel by a known wrong recipe: another use of the same random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from specverify.checks.kernels.row_texts import emitted_ids
from specverify.reference import Tokens
from specverify.reference.verifiers.block_verification import pass_probability
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds, by_rule

Recipe = Callable[[KernelRounds, DraftCase, Sequence[float]], Tokens]
BELOW_ONE = 1 - 2**-40


def _unscaled_residual(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
    """Return the tokens of ``case`` if the residual is not divided by its sum: its last token gets the missing mass."""
    right = by_rule(rounds, case, uniforms)
    at = len(right) - 1
    if at >= len(case.draft):
        return right
    total = float(np.maximum(np.asarray(case.p[at]) - np.asarray(case.q[at]), 0).sum())
    numbers = [*uniforms]
    numbers[rounds.gamma] = min(numbers[rounds.gamma] / total, BELOW_ONE) if total > 0 else numbers[rounds.gamma]
    return by_rule(rounds, case, numbers)


def _product_of_limited(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
    """Return the tokens of block verification with the product of min(1, p/q) as the weight of a prefix of drafts."""
    p, q = ([np.asarray(row, dtype=float) for row in rows] for rows in (case.p, case.q))
    weights = [1.0]
    for i, token in enumerate(case.draft):
        weights.append(weights[-1] * min(1.0, p[i][token] / q[i][token]) if q[i][token] > 0 else weights[-1])
    gamma = len(case.draft)
    bounds = [*(pass_probability(weights[i], p[i], q[i]) for i in range(1, gamma)), weights[gamma]][:gamma]
    kept = max((i + 1 for i, bound in enumerate(bounds) if uniforms[i] < bound), default=0)
    row = p[kept] if kept == gamma else np.maximum(weights[kept] * p[kept] - q[kept], 0)
    sums = np.cumsum(row if row.sum() > 0 else p[kept])
    last = int(np.searchsorted(sums, uniforms[rounds.gamma] * sums[-1], side="right"))
    return (*case.draft[:kept], min(last, int(np.flatnonzero(np.diff(sums, prepend=0))[-1])))


RECIPES: Mapping[str, Mapping[str, Recipe]] = {
    "token": {
        "the residual max(p - q, 0) is not divided by its sum: the cumulative sums that the last uniform is compared "
        "with end below 1": _unscaled_residual
    },
    "block": {
        "the weight of the first i drafts is the product of min(1, p/q), expected the running product of p/q, limited "
        "to 1 after each draft": _product_of_limited
    },
}
"""Rule of a kernel -> sentence -> the tokens that a kernel with this wrong recipe emits."""


def other_recipe(rounds: KernelRounds, cases: Any, uniforms: Any, answers: Sequence[Tokens]) -> str:
    """Return the sentence about a wrong recipe that explains the answers of all rows of a call; "" if none does.

    ``cases`` ``[rows]`` and ``uniforms`` ``[rows, k]`` are those of the call, in one situation, and ``answers`` the
    emitted tokens of its rows. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    if rounds.kernel.race:
        return ""
    for said, recipe in RECIPES.get(rounds.kernel.convention.rule, {}).items():
        ruled = (recipe(rounds, rounds.cases[case], numbers) for case, numbers in zip(cases, uniforms, strict=True))
        if all(emitted_ids(rounds, tokens) == answer for tokens, answer in zip(ruled, answers, strict=True)):
            return said
    return ""
