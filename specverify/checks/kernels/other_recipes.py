"""Explain the answers of a kernel by a known wrong recipe: another use of the same random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from specverify.laws.grid import GridCell
from specverify.reference import Tokens
from specverify.reference.verifiers.block_verification import pass_probability
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds, by_rule

Recipe = Callable[[KernelRounds, DraftCase, Sequence[float]], Tokens]
BELOW_ONE = 1 - 2**-40
MOST_CELLS = 300
"""The largest number of cells of random numbers at which a recipe is compared with the answers."""


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


def _coin_again(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
    """Return the tokens of ``case`` if a replacement is drawn with the accept uniform of the rejected draft."""
    at = len(by_rule(rounds, case, uniforms)) - 1
    numbers = [*uniforms]
    numbers[rounds.gamma] = numbers[at] if at < len(case.draft) else numbers[rounds.gamma]
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
        "with end below 1": _unscaled_residual,
        "a replacement is drawn with the accept uniform of the rejected draft, not with the last uniform": _coin_again,
    },
    "block": {
        "the weight of the first i drafts is the product of min(1, p/q), expected the running product of p/q, limited "
        "to 1 after each draft": _product_of_limited
    },
}
"""Rule of a kernel -> sentence -> the tokens that a kernel with this wrong recipe emits."""


def other_recipe(rounds: KernelRounds, settled: Sequence[tuple[GridCell, Tokens]]) -> str:
    """Return the sentence about the only wrong recipe that explains the answers of a kernel; "" unless one does.

    ``settled`` has (cell, tokens): the kernel emits these tokens for all random numbers in the cell. At most
    ``MOST_CELLS`` cells are compared, evenly spread over all situations. ``rounds`` is the kernel in one setting
    (gamma, vocabulary).
    """
    if rounds.kernel.race:
        return ""
    some = settled[:: 1 + len(settled) // MOST_CELLS]
    middles = [[float(a + b) / 2 for a, b in zip(cell.low, cell.high, strict=True)] for cell, _ in some]
    rows = [(rounds.cases[cell.case], numbers, tokens) for (cell, tokens), numbers in zip(some, middles, strict=True)]
    if all(by_rule(rounds, case, numbers) == tokens for case, numbers, tokens in rows):
        return ""
    fitting = [
        said
        for said, recipe in RECIPES.get(rounds.kernel.convention.rule, {}).items()
        if all(recipe(rounds, case, numbers) == tokens for case, numbers, tokens in rows)
    ]
    return fitting[0] if len(fitting) == 1 else ""
