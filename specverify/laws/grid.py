"""The exact law of a kernel that takes its uniforms as an argument, from evaluations in every cell of uniforms.

Such a kernel is a step function of its uniforms. If it only compares each of them with thresholds, as every acceptance
test and inverse CDF does, each outcome is a union of boxes. The thresholds of a right kernel are known, and cut [0,
1]^k into cells with one outcome each. The kernel is evaluated a margin inside each corner of a cell, in its middle and
at random points. If all results agree, the cell has that outcome, and the law is the sum of the volumes: rationals,
without tolerance. If they differ, the kernel steps at a wrong place, and the cell is halved until the remaining cells
are too small to matter; their volume is the ``missing`` probability of the law.

Not covered: the side on which a breakpoint itself falls (``u <= r`` and ``u < r`` have the same law; uniforms at the
ends of their interval distinguish them); a step closer than the margin to its right place; an outcome on a box inside a
cell that contains none of the evaluated points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.base.arguments import argument_error, check_callable, check_integer, check_number, check_seed
from specverify.base.host_arrays import host_array
from specverify.laws.law import Law
from specverify.laws.paths import paths
from specverify.reference import (
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Tokens,
    Verified,
    Verifier,
    chain,
)
from specverify.reference.verifiers.speculative_sampling import speculative_sampling

DEFAULT_ROWS = 2**22
MARGIN = 2.0**-18
"""Tolerance for the position of a breakpoint in [0, 1]: 32 times the spacing of float32 below 1."""
INSIDE = 2
"""Number of random points tested in each cell, besides its corners and its centre."""

Breakpoints: TypeAlias = Sequence[Iterable[Fraction]]
"""For each uniform, the points in [0, 1] at which the outcome may change."""

Kernel: TypeAlias = Callable[[Any], Any]
"""Maps uniforms, float64 ``[rows, uniforms]``, to outcomes, integers ``[rows, width]`` padded with -1."""

ChainKernel: TypeAlias = Callable[[Any, Any, Tokens, Any], Any]
"""``kernel(p, q, draft, uniforms)`` with p float64 ``[gamma + 1, V]`` and q float64 ``[gamma, V]``; uniforms and result
as in ``Kernel``. The last uniform draws the token after the accepted drafts."""


class GridRefused(ValueError):  # noqa: N818 - reads as the sentence it is
    """Raised if the kernel would have to be evaluated for more vectors of uniforms than the budget permits."""


class GridCell(NamedTuple):
    """A box of uniforms: uniform i lies between ``low[i]`` and ``high[i]``.

    ``case`` is an index of the kernel's other inputs, such as the drafted tokens.
    """

    case: int
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    @property
    def volume(self) -> Fraction:
        """Return the volume of the box, which is the probability of the cell."""
        sides = (high - low for low, high in zip(self.low, self.high, strict=True))
        return math.prod(sides, start=Fraction(1))


class Looked(NamedTuple):
    """The result of evaluating a kernel in some cells of its uniforms.

    ``settled`` has the cells with one outcome, ``others`` the cells with several outcomes. A cell of ``others`` is
    halved, and its parts are in ``halves``. If it is too small to be halved, it is listed in ``unsettled`` too.
    """

    settled: tuple[tuple[GridCell, Tokens], ...]
    """Pairs (cell, outcome) of the cells with a single outcome, without padding."""
    others: tuple[GridCell, ...]
    """All cells with several outcomes."""
    halves: tuple[GridCell, ...]
    """The halves of the cells in ``others``, to be examined next."""
    unsettled: tuple[GridCell, ...]
    """Those of ``others`` that are too small to be halved."""


def grid_law(kernel: Kernel, breakpoints: Breakpoints, budget: int = DEFAULT_ROWS, margin: float = MARGIN) -> Law:
    """Return the law of the tokens that ``kernel`` emits: outcome without padding -> volume of its cells.

    Args:
        kernel: ``kernel(uniforms)`` returns the tokens ``[rows, tokens]`` for uniforms ``[rows, number of uniforms]``.
        breakpoints: For each uniform, the thresholds of a right kernel.
        budget: Largest number of rows; the probability of cells that need more is ``missing`` in the law.
        margin: Distance of evaluated points from the ends of a cell.

    Raises:
        GridRefused: The first evaluation takes more than ``budget`` rows.
        ValueError: The kernel returns another number of rows than it was given.
    """
    check_callable(kernel, "the kernel", arguments=1)
    check_integer(budget, "the budget")
    cells = cells_between(breakpoints)
    law, missing, rows = dict[Tokens, Fraction](), Fraction(0), 0
    while cells:
        wanted = rows_of(cells)
        if rows + wanted > budget:
            if not rows:
                raise GridRefused(
                    f"{len(cells)} cells take {wanted} rows, and the budget is {budget}: use fewer drafts"
                )
            break
        rows += wanted
        looked = look(lambda _, uniforms: kernel(uniforms), cells, margin)
        for cell, outcome in looked.settled:
            law[outcome] = law.get(outcome, Fraction(0)) + cell.volume
        missing += sum(cell.volume for cell in looked.unsettled)
        cells = looked.halves
    missing += sum(cell.volume for cell in cells)
    return Law(law, missing=missing, runs=rows, decisions=len(breakpoints))


def cells_between(breakpoints: Breakpoints, case: int = 0) -> tuple[GridCell, ...]:
    """Return the cells into which the breakpoints cut the unit cube, which has one dimension for each uniform.

    ``case`` is stored in every cell: the index of the kernel's other inputs.
    """
    lines = [sorted({Fraction(0), Fraction(1), *_places(points, i)}) for i, points in enumerate(breakpoints)]
    sides = product(*(pairwise(line) for line in lines))
    return tuple(GridCell(case, tuple(low for low, _ in side), tuple(high for _, high in side)) for side in sides)


def rows_of(cells: Sequence[GridCell]) -> int:
    """Return the number of rows (points) at which the kernel is evaluated for these cells."""
    return len(cells) * (2 ** len(cells[0].low) + 1 + INSIDE) if cells else 0


def look(launch: Callable[[Any, Any], Any], cells: Sequence[GridCell], margin: float = MARGIN, seed: int = 0) -> Looked:
    """Evaluate the kernel in all cells by one call of ``launch``, and return which cells have one outcome.

    Args:
        launch: Gets the case index ``[rows]`` and the uniforms ``[rows, number of uniforms]``, and returns the
            emitted tokens ``[rows, tokens]``.
        cells: The cells. Each is evaluated near each corner, in the middle, and at random points.
        margin: Distance of the points at the corners from the sides of the cell.
        seed: Seed of the random points.

    Raises:
        ValueError: If ``launch`` returns another number of rows.
    """
    check_number(margin, "the margin", "a number above 0 and below 1/8", lambda value: 0 < value < 1 / 8)
    cases, uniforms = places_in(cells, margin, seed)
    answers = host_array(launch(cases, uniforms))
    if answers.ndim != 2 or len(answers) != len(cases):
        raise ValueError(f"the kernel answered an array {answers.shape}, expected [{len(cases)}, tokens]")
    answers = answers.reshape(len(cells), -1, answers.shape[1])
    alike = (answers == answers[:, :1]).all(axis=(1, 2))
    settled = tuple((cells[i], _outcome(answers[i, 0])) for i in np.flatnonzero(alike).tolist())
    parts = [(cells[i], _halves(cells[i], answers[i], margin)) for i in np.flatnonzero(~alike).tolist()]
    halves = tuple(half for _, result in parts for half in result)
    unsettled = tuple(cell for cell, result in parts if not result)
    return Looked(settled, tuple(cell for cell, _ in parts), halves, unsettled)


def places_in(cells: Sequence[GridCell], margin: float = MARGIN, seed: int = 0) -> tuple[Any, Any]:
    """Return the points of all ``cells`` at which the kernel is evaluated, as (cases, uniforms).

    The cases are ``[rows]``, the uniforms ``[rows, number of uniforms]``. The points of a cell are ``margin`` inside
    each corner, in the middle, and random by ``seed``.
    """
    low, high = (np.array([cell[side] for cell in cells], dtype=np.float64) for side in (1, 2))
    inset = np.minimum(margin, (high - low) / 4)
    ends = np.stack([low + inset, high - inset])
    uniforms = range(low.shape[1])
    corners = [np.stack([ends[bits[i], :, i] for i in uniforms], axis=-1) for bits in _bits(len(uniforms))]
    rng = np.random.default_rng(seed)
    inside = [ends[0] + rng.random(low.shape) * (ends[1] - ends[0]) for _ in range(INSIDE)]
    points = np.stack([*corners, (low + high) / 2, *inside], axis=1)
    return np.repeat([cell.case for cell in cells], points.shape[1]), points.reshape(-1, low.shape[1])


def _bits(uniforms: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=uniforms))


def _halves(cell: GridCell, answers: Any, margin: float) -> tuple[GridCell, ...]:
    """Return the parts of ``cell``, halved along each uniform along which the results at the corners differ.

    The cell is halved along all uniforms if the corners agree. A side of at most 8 ``margin`` is not halved; the result
    is () if no side can be halved. ``answers`` are the kernel's results at the points of the cell, the corners first.
    """
    uniforms = len(cell.low)
    corners = answers[: 2**uniforms].reshape(*(2,) * uniforms, -1)
    differs = [bool((corners.take(0, axis=i) != corners.take(1, axis=i)).any()) for i in range(uniforms)]
    wide = [high - low > 8 * margin for low, high in zip(cell.low, cell.high, strict=True)]
    cut = [a and b for a, b in zip(differs if any(differs) else [True] * uniforms, wide, strict=True)]
    if not any(cut):
        return ()
    middles = [((low + high) / 2,) if here else () for low, high, here in zip(cell.low, cell.high, cut, strict=True)]
    sides = zip(cell.low, middles, cell.high, strict=True)
    parts = product(*(pairwise((low, *middle, high)) for low, middle, high in sides))
    return tuple(cell._replace(low=tuple(a for a, _ in part), high=tuple(b for _, b in part)) for part in parts)


def _outcome(answer: Any) -> Tokens:
    tokens = answer.tolist()
    while tokens and tokens[-1] == -1:
        tokens.pop()
    return tuple(tokens)


def chain_grid_law(
    kernel: ChainKernel,
    models: tuple[LanguageModel, LanguageModel],
    prompt: Tokens,
    gamma: int,
    rule: Verifier = speculative_sampling,
    budget: int = DEFAULT_ROWS,
) -> Law:
    """Return the law of the tokens of one round of a chain verifier: gamma drafts from q, then ``kernel``.

    ``models`` are (target, draft), both rational, and the round starts after ``prompt``. ``rule`` is a right verifier:
    its acceptance probabilities and last draws give the values at which the outcome may change with a uniform. For each
    sequence of drafts, ``grid_law`` evaluates the kernel between these values, for at most ``budget`` vectors of
    uniforms. Its errors are raised.
    """
    check_callable(kernel, "the kernel", arguments=4)
    check_integer(gamma, "gamma", least=0)
    law, missing, runs = dict[Tokens, Fraction](), Fraction(0), 0
    for draft, p, q, weight in drafted(models, prompt, gamma):
        rows = np.array(p, dtype=np.float64), np.array(q, dtype=np.float64).reshape(gamma, len(p[0]))
        part = grid_law(partial(kernel, *rows, draft), chain_breakpoints(p, q, draft, rule), budget)
        runs, missing = runs + part.runs, missing + weight * part.missing
        for tokens, mass in part.probabilities.items():
            law[tokens] = law.get(tokens, Fraction(0)) + weight * mass
    return Law(law, missing=missing, runs=runs, decisions=2 * gamma + 1)


def drafted(
    models: tuple[LanguageModel, LanguageModel], prompt: Tokens, gamma: int
) -> Iterable[tuple[Tokens, list[Pmf], list[Pmf], Fraction]]:
    """Yield every sequence of ``gamma`` drafts from q after ``prompt``, with its rows of p and q and its probability.

    ``models`` are (target, draft).
    """
    target, drafter = models
    for draft in product(range(len(target(prompt))), repeat=gamma):
        contexts = [prompt + draft[:i] for i in range(gamma + 1)]
        p, q = [target(context) for context in contexts], [drafter(context) for context in contexts[:-1]]
        weight = math.prod((row[token] for row, token in zip(q, draft, strict=True)), start=Fraction(1))
        if weight:
            yield draft, p, q, weight


def chain_breakpoints(
    p: Sequence[Pmf], q: Sequence[Pmf], draft: Tokens, rule: Verifier = speculative_sampling
) -> tuple[frozenset[Fraction], ...]:
    """Return the thresholds of a chain verifier for ``draft``: acceptance probabilities, and sums for the last draw.

    ``p`` and ``q`` are the rows of each position, ``rule`` the right verifier. The sums are those of all subsets of the
    row from which the last token is drawn. An inverse CDF changes its token at some of these sums, whatever the order
    of the tokens is.
    """
    if not (len(draft) <= len(q) and len(draft) < len(p)):
        raise ValueError(
            f"{len(draft)} drafts with {len(p)} rows of p and {len(q)} of q, expected a row of each for every draft "
            "and one more of p"
        )
    exact_p, exact_q = [_exact(row) for row in p], tuple(_exact(row) for row in q[: len(draft)])

    def judged(draws: Draws) -> Verified:
        return rule(draws, lambda tokens: exact_p[len(tokens)], (), drafts)

    drafts: Draft = chain(draft, exact_q)
    places: list[set[Fraction]] = [set() for _ in range(len(draft) + 1)]
    for path in paths(judged):
        for site, weights, _ in path.decisions:
            coin = site[1] if site[0] == "accept" else None
            if isinstance(coin, int):
                places[coin].add(weights[0])
            else:
                places[-1].update(_subset_sums(weights))
    return tuple(map(frozenset, places))


def _subset_sums(weights: Sequence[Fraction]) -> set[Fraction]:
    masses = [mass for mass in weights if mass]
    return {sum(part, start=Fraction(0)) for size in range(len(masses)) for part in combinations(masses, size)}


def grid_tables(vocabulary: int, denominator: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) over ``vocabulary`` tokens as full-context tables of multiples of 1/``denominator``.

    Some entries are 0, and one context in six has p = q. ``seed`` selects the rows.
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
    """Return ``points``, the thresholds of uniform number ``index``, as a tuple.

    Raises ``ValueError`` unless all of them are rationals in [0, 1].
    """
    places = tuple(points)
    for point in places:
        if not isinstance(point, (Fraction, int)) or not 0 <= point <= 1:
            raise argument_error(f"a breakpoint of uniform {index}", point, "a Fraction from 0 to 1")
    return places


def _exact(row: Pmf) -> Pmf:
    return np.array([Fraction(mass) for mass in row.tolist()], dtype=object)
