"""Explain the answers of a kernel by a known wrong recipe: another use of the same random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from specverify.laws.draws import Tape
from specverify.laws.grid import GridCell
from specverify.reference import Tokens, excess_law
from specverify.reference.verifiers.block_verification import pass_probability
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds, by_rule

Recipe = Callable[[KernelRounds, DraftCase, Sequence[float]], Tokens]
BELOW_ONE = 1 - 2**-40
MOST_CELLS = 300
"""The largest number of cells of random numbers at which a recipe is compared with the answers."""


LastNumber = Callable[[DraftCase, int, float, float], float]
"""``number(case, at, coin, last)`` returns the number by which the replacement of draft ``at`` is looked up.

``coin`` is the accept uniform of this draft, and ``last`` the last uniform.
"""


def _with_last_number(number: LastNumber) -> Recipe:
    """Return the right recipe, except that the number by which a replacement is looked up is changed.

    A recipe computes the tokens of a row from its random numbers. ``number(case, position, coin, last)`` returns the
    changed number for the drafts and rows of ``case``. ``coin`` is the uniform of the test at this position, and
    ``last`` the uniform of the last draw.
    """

    def emitted(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
        right = by_rule(rounds, case, uniforms)
        at = len(right) - 1
        if at >= len(case.draft):
            return right
        numbers = [*uniforms]
        numbers[rounds.gamma] = number(case, at, uniforms[at], uniforms[rounds.gamma])
        return by_rule(rounds, case, numbers)

    return emitted


def _unscaled(case: DraftCase, at: int, _coin: float, last: float) -> float:
    """Return the uniform ``last`` divided by the sum of the residual at position ``at``, but below 1.

    A right kernel looks the uniform up in the residual divided by its sum. With the returned number, it emits the token
    that a wrong kernel emits, which looks ``last`` up in the residual itself. ``case`` has the rows of p and q.
    """
    total = float(np.maximum(np.asarray(case.p[at]) - np.asarray(case.q[at]), 0).sum())
    return min(last / total, BELOW_ONE) if total > 0 else last


def _product_of_limited(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
    """Return the tokens of a wrong block verification: the weight of a prefix of drafts is the product of min(1, p/q).

    ``case`` has the drafts and the rows of p and q, and ``uniforms`` are the random numbers of the row. ``rounds`` is
    the kernel in one setting (gamma, vocabulary).
    """
    p, q = ([np.asarray(row, dtype=float) for row in rows] for rows in (case.p, case.q))
    weights = [1.0]
    for i, token in enumerate(case.draft):
        weights.append(weights[-1] * min(1.0, p[i][token] / q[i][token]) if q[i][token] > 0 else weights[-1])
    gamma = len(case.draft)
    bounds = [*(pass_probability(weights[i], p[i], q[i]) for i in range(1, gamma)), weights[gamma]][:gamma]
    kept = max((i + 1 for i, bound in enumerate(bounds) if uniforms[i] < bound), default=0)
    row = p[kept] if kept == gamma else excess_law(weights[kept] * p[kept], q[kept])
    site = ("last",)
    return (*case.draft[:kept], Tape(0, {(site, 0): uniforms[rounds.gamma]}).categorical(row, site))


RECIPES: Mapping[str, Mapping[str, Recipe]] = {
    "token": {
        "the residual max(p - q, 0) is not divided by its sum: the cumulative sums that the last uniform is compared "
        "with end below 1": _with_last_number(_unscaled),
        "a replacement is drawn with the accept uniform of the rejected draft, not with the last uniform": (
            _with_last_number(lambda case, at, coin, last: coin)
        ),
    },
    "block": {
        "the weight of the first i drafts is the product of min(1, p/q), expected the running product of p/q, limited "
        "to 1 after each draft": _product_of_limited
    },
}
"""Rule of a kernel -> sentence -> the tokens that a kernel with this wrong recipe emits."""


def other_recipe(rounds: KernelRounds, settled: Sequence[tuple[GridCell, Tokens]]) -> str:
    """Return the sentence about the only wrong recipe that explains the answers of a kernel; "" unless one does.

    A recipe computes the tokens of a row from its random numbers. ``settled`` has (cell, tokens): the kernel emits
    these tokens for all random numbers in the cell, a box. At most ``MOST_CELLS`` cells are compared, evenly spread
    over all situations (a target, a draft model and a number of drafts). ``rounds`` is the kernel in one setting
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
