"""The exact law of a kernel that takes its uniforms as an argument: every cell of a grid, in one batched launch.

Such a kernel is a step function of its uniforms. If along uniform i it steps only at multiples of 1/M_i, it is constant
within every cell of the grid, and its law is a count over the cells, taken at their mid-points (j + 1/2) / M_i: a
rational, with no tolerance. The mid-points keep half a cell away from every breakpoint, so the rounding of a float32
kernel changes nothing while it stays below 1 / (2 M_i).

What it cannot see. On which side the breakpoint itself falls: ``u <= r`` and ``u < r`` have one law here (a tape with
uniforms on the breakpoints tells them apart). And a step off the grid: breakpoints are those of the algorithm, and a
kernel that steps elsewhere is judged by its mid-points only. A multiple of the cells looks at more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, product
from typing import Any, TypeAlias

import numpy as np

from reference import LanguageModel, Pmf, Tokens, accept_probability, excess_law
from specverify.base.arguments import argument_error, check_callable, check_integer, check_seed
from specverify.laws.law import Law

DEFAULT_ROWS = 2**22
MOST_CELLS = 2**16
"""Along one uniform: half a cell is then 2**-17, 128 times the spacing of float32 below 1."""

Breakpoints: TypeAlias = Sequence[Iterable[Fraction]]
"""For each uniform, the places in [0, 1] where the outcome may change."""

Kernel: TypeAlias = Callable[[Any], Any]
"""From uniforms, float64 ``[rows, uniforms]``, to outcomes, integers ``[rows, width]`` padded with -1."""

ChainKernel: TypeAlias = Callable[[Any, Any, Tokens, Any], Any]
"""``(p, q, draft, uniforms)``: float64 ``[gamma + 1, V]`` and ``[gamma, V]``, then as ``Kernel``, the last uniform for
the token after the accepted drafts."""


class GridRefused(ValueError):  # noqa: N818 - reads as the sentence it is
    """No grid of affordable size has all breakpoints on its lines."""


def grid_law(kernel: Kernel, breakpoints: Breakpoints, cells: int | None = None, budget: int = DEFAULT_ROWS) -> Law:
    """Return the law of what ``kernel`` emits: outcome without its padding -> count of cells / number of cells.

    ``cells`` along every uniform, or by default as few along each as its breakpoints allow. Raises ``GridRefused`` if a
    breakpoint is not on the grid, or the launch would have more than ``budget`` rows, and ``ValueError`` if the kernel
    answers another number of rows than it was given.
    """
    check_callable(kernel, "the kernel", arguments=1)
    if cells is not None:
        check_integer(cells, "the number of cells")
    check_integer(budget, "the budget")
    places = [_places(points, index) for index, points in enumerate(breakpoints)]
    counts = [cells or math.lcm(*(point.denominator for point in points)) for points in places]
    _check_grid(places, counts, budget)
    rows = math.prod(counts)
    outcomes = np.asarray(kernel(midpoints(counts)))
    if outcomes.ndim != 2 or len(outcomes) != rows:
        raise ValueError(f"the kernel answered an array {outcomes.shape}, expected [{rows}, tokens]")
    law: dict[Tokens, Fraction] = {}
    for outcome, count in zip(*np.unique(outcomes, axis=0, return_counts=True), strict=True):
        tokens = tuple(token for token in outcome.tolist() if token != -1)
        law[tokens] = law.get(tokens, Fraction(0)) + Fraction(int(count), rows)
    return Law(law, runs=rows, decisions=len(counts))


def midpoints(cells: Sequence[int]) -> Any:
    """Return the mid-points of all cells, float64 ``[product of cells, uniforms]``."""
    for index, count in enumerate(cells):
        check_integer(count, f"the number of cells along uniform {index}")
    axes = np.meshgrid(*((np.arange(count) + 0.5) / count for count in cells), indexing="ij")
    return np.stack([axis.reshape(-1) for axis in axes], axis=-1)


def chain_grid_law(
    kernel: ChainKernel,
    models: tuple[LanguageModel, LanguageModel],
    prompt: Tokens,
    gamma: int,
    cells: int | None = None,
    budget: int = DEFAULT_ROWS,
) -> Law:
    """Return the law of the tokens emitted by one round of a chain verifier: gamma drafts from q, then ``kernel``.

    ``models`` are (target, draft), rational. Every draft is a launch of its own, weighted with its probability. Raises
    as ``grid_law``; the budget is that of one launch.
    """
    check_callable(kernel, "the kernel", arguments=4)
    check_integer(gamma, "gamma", least=0)
    target, drafter = models
    law: dict[Tokens, Fraction] = {}
    runs = 0
    for draft in product(range(len(target(prompt))), repeat=gamma):
        contexts = [prompt + draft[:i] for i in range(gamma + 1)]
        p, q = [target(context) for context in contexts], [drafter(context) for context in contexts[:-1]]
        weight = math.prod(row[token] for row, token in zip(q, draft, strict=True))
        if not weight:
            continue
        rows = np.array(p, dtype=np.float64), np.array(q, dtype=np.float64).reshape(gamma, len(p[0]))
        part = grid_law(partial(kernel, *rows, draft), chain_breakpoints(p, q, draft), cells, budget)
        runs += part.runs
        for tokens, mass in part.probabilities.items():
            law[tokens] = law.get(tokens, Fraction(0)) + weight * mass
    return Law(law, runs=runs, decisions=2 * gamma + 1)


def chain_breakpoints(p: Sequence[Pmf], q: Sequence[Pmf], draft: Tokens) -> tuple[frozenset[Fraction], ...]:
    """Return where a chain verifier of ``draft`` steps: ``p(x)/q(x)`` for each draft, then the cumulative masses.

    The last uniform steps at those of every residual and of every row of p, which is one more set than a correct
    verifier needs and what many wrong ones use. Float entries count as the dyadic rationals they are.
    """
    if not (len(draft) <= len(q) and len(draft) < len(p)):
        raise ValueError(
            f"{len(draft)} drafts with {len(p)} rows of p and {len(q)} of q, expected a row of each for every draft "
            "and one more of p"
        )
    pairs = [(_exact(mine), _exact(theirs)) for mine, theirs in zip(p, q, strict=False)]
    accepts = [frozenset({accept_probability(*pair, token)}) for pair, token in zip(pairs, draft, strict=True)]
    drawn = [*map(_exact, p), *(excess_law(*pair) for pair in pairs)]
    return (*accepts, frozenset(total for row in drawn for total in accumulate(row.tolist())))


def grid_tables(vocabulary: int, denominator: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) as full-context tables whose entries are multiples of 1/denominator, zeros among them.

    Whatever the rows, ratios and cumulative masses then have denominators up to ``denominator``, so a grid of
    ``lcm(1, ..., denominator)`` cells holds every breakpoint. One context in six has p = q.
    """
    check_integer(vocabulary, "the vocabulary")
    check_integer(denominator, "the denominator")
    check_seed(seed)

    @cache
    def pair(tokens: Tokens) -> tuple[Pmf, Pmf]:
        rng = np.random.default_rng([vocabulary, denominator, seed, *tokens])
        p, q = rng.integers(vocabulary, size=(2, denominator))
        rows: Any = [np.bincount(drawn, minlength=vocabulary) for drawn in (p, p if rng.random() < 1 / 6 else q)]
        return rows[0] * Fraction(1, denominator), rows[1] * Fraction(1, denominator)

    return (lambda tokens: pair(tokens)[0]), (lambda tokens: pair(tokens)[1])


def _places(points: Iterable[Fraction], index: int) -> tuple[Fraction, ...]:
    """Return the breakpoints of one uniform, as rationals from 0 to 1."""
    places = tuple(points)
    for point in places:
        if not isinstance(point, (Fraction, int)) or not 0 <= point <= 1:
            raise argument_error(f"a breakpoint of uniform {index}", point, "a Fraction from 0 to 1")
    return places


def _exact(row: Pmf) -> Pmf:
    return np.array([Fraction(mass) for mass in row.tolist()], dtype=object)


def _check_grid(breakpoints: Breakpoints, cells: Sequence[int], budget: int) -> None:
    remedy = "use pmfs that are multiples of 1/d for a small d, as those of grid_tables"
    for index, (points, count) in enumerate(zip(breakpoints, cells, strict=True)):
        if count > MOST_CELLS:
            raise GridRefused(f"uniform {index} needs {count} cells, at most {MOST_CELLS} are allowed: {remedy}")
        if off := [point for point in points if count % point.denominator]:
            raise GridRefused(f"breakpoint {min(off)} of uniform {index} is not a multiple of 1/{count}: {remedy}")
    if math.prod(cells) > budget:
        raise GridRefused(
            f"a grid of {' x '.join(map(str, cells))} cells has {math.prod(cells)} rows, and the budget is {budget}: "
            f"use fewer drafts or a larger budget, or {remedy}"
        )
