"""Bounds on the effect of rounding on a law, derived from observations made while the law was computed.

An enumerated law is the law of the program that ran, in the arithmetic in which it ran: its own probabilities,
multiplied in float64. Two such laws are equal up to ``ENUMERATION`` per decision if the programs are equal. A right
program may still differ, because it computes the same probabilities in another order and in coarser floats. The
following bounds the difference by the coarsest dtype observed at a decision (at least float32: NumPy does not show
intermediate results).

Let u be half the spacing of the floats at 1, and p and q pmfs of the same logits, each with at most n tokens of
positive probability: n is observed, and the zeros of a vocabulary add nothing. Write d for the distance of a logit from
the largest one, Z for the sum of exp(-d) and H for the entropy. In the mean under p, E d + ln Z = H <= ln n.

* A sum of n positive floats has an error of at most (n - 1) u, in any order. The bound is attained in practice: NumPy
  adds one by one in ``cumsum`` and along every axis but the last, and torch adds a softmax in as many lanes as the
  processor has, each one by one. Only ``np.sum`` along the last axis and ``torch.sum`` add pairwise.
* An entry of a softmax has d u from the subtraction of the largest logit, 5 u from the exponential and u from the
  division; written as the exponential of a log-softmax, 2 d u + u ln Z + 5 u. (The coarsest exponential and logarithm
  in use are NumPy's in float32, 2.52 and 3.83 units in the last place.) A factor common to all entries does not affect
  a draw, so the error of a draw is half the mean of this in total variation: less than (ln n + 3) u.
* An acceptance test of x, drawn from q, with p(x) / q(x) compares stored entries. The errors of q cancel against the
  draw, and those of p are the errors of a draw. The remainder is that stored pmfs do not sum to 1: a softmax by n u, a
  softmax computed by logarithms by (n + 9 ln n + 9) u, for each of p and q. The division adds u. If logarithms are
  subtracted instead, the entries of q do not cancel. Together this is less than (2 n + 20 ln n + 20) u.
* A residual p - q has the two sums and u for the subtraction, (2 n + 18 ln n + 19) u. Its own sum is a common factor.

A token takes an acceptance test and a residual on its worst path, and is compared with a draw of p that was computed in
another way. Shared between the two decisions this is (2 n + 20 ln n + 22) u = (n + 10 ln n + 11) epsilon each.

Floats of 16 bits are summed in float32 by torch, and by NumPy where it adds pairwise, so n costs as much as in float32.
Here stored logarithms count: ln p has an error of |ln p| u, whose mean is H u. The same steps with this error, with u
for a stored entry and 2 u for a sum, give (3 ln n + 17/4) u. In float16 entries below 2**-14 may be lost, in 3 pmfs per
decision.

A lookup in a cumulative pmf differs: every partial sum is rounded, and one cell gains what its neighbour loses. Below 1
that is u/2 per sum, once for the addition and again if all are divided by the last one. Over n cells of positive mass
it is less than n u in total variation, and as much may be missing at the end. The same holds for a uniform number that
is compared with one bound after another.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, Self

FLOAT64, FLOAT32, FLOAT16, BFLOAT16 = 2.0**-52, 2.0**-23, 2.0**-10, 2.0**-7
"""Machine epsilons: the spacing of each dtype's numbers at 1."""
LOST = 2.0**-14
"""Smallest normal number of float16; smaller numbers may become 0."""
ENUMERATION = 4 * FLOAT64
"""Rounding of an enumeration per decision: two normalised weights, one product and one sum."""
NEGLIGIBLE = 64 * FLOAT64
"""A run with a probability below this exists only because float64 rounds; its result is not checked."""
LARGEST = 1e-3
"""A rounding bound above this is too weak for a verdict."""
UNDERFLOW = 1e-30
"""A probability below this counts as an underflow and not as support."""


class Rounding(NamedTuple):
    """The dtypes, supports and lookups observed in a run, or the worst of several runs."""

    epsilon: float = FLOAT64
    """Machine epsilon of the coarsest dtype."""
    decisions: int = 0
    """Number of draws; further comparisons of the same uniform do not count."""
    cells: int = 0
    """Number of cells of positive mass in the lookups of all draws, plus further comparisons of the same uniform."""
    uniforms: int = 0
    """Number of uniforms that were compared."""
    support: int = 1
    """Largest support of a draw, in tokens."""
    within: float = 0.0
    """Total width of the intervals of those probabilities that are only enclosed."""


def worst(one: Rounding, other: Rounding) -> Rounding:
    """Return the larger value of each observation of ``one`` and ``other``: a bound on the error of either run."""
    return one if one == other else Rounding._make(map(max, one, other))


def after(one: Rounding, other: Rounding) -> Rounding:
    """Return the observations of a run ``one`` followed by a run ``other``.

    Counts are added; of the two dtypes the coarser is used, and of the two supports the larger.
    """
    return Rounding(
        max(one.epsilon, other.epsilon),
        one.decisions + other.decisions,
        one.cells + other.cells,
        one.uniforms + other.uniforms,
        max(one.support, other.support),
        one.within + other.within,
    )


def of_decision(epsilon: float, support: int) -> float:
    """Return an upper bound on the total variation by which rounding changes one decision, such as an acceptance test.

    ``epsilon`` is the spacing of the floats at 1, ``support`` the number of tokens of positive probability.
    """
    if epsilon <= FLOAT32:
        return (support + 10 * math.log(support) + 11) * epsilon
    lost = 3 * support * LOST if epsilon == FLOAT16 else 0.0
    return (1.5 * math.log(support) + 2.125) * epsilon + support * FLOAT32 + lost


def of_lookup(epsilon: float, cells: int) -> float:
    """Return an upper bound on the total variation caused by lookups in cumulative pmfs, with ``cells`` cells in total.

    ``epsilon`` is the spacing of the floats at 1.
    """
    return cells * epsilon / 2


def allowed(rounding: Rounding, coarsest: float = FLOAT32) -> float:
    """Return an upper bound on the total variation by which rounding can change a law.

    ``rounding`` has the observations of its runs. The bound assumes floats with a spacing at 1 of at least
    ``coarsest``.
    """
    epsilon = max(rounding.epsilon, coarsest)
    floats = rounding.decisions * of_decision(epsilon, rounding.support) + of_lookup(epsilon, rounding.cells)
    return floats + rounding.within


def at_most_float32(rounding: Rounding) -> Rounding:
    """Return ``rounding`` as if no dtype were coarser than float32.

    A law holds by the bound of the result. In 16 bits a right program may be farther off, and is then not decided.
    """
    return rounding._replace(epsilon=min(rounding.epsilon, FLOAT32))


def holds_within(distance: float, bound: float) -> bool:
    """Return whether ``distance`` is explained by rounding, so that the two laws count as equal.

    Rounding explains ``distance`` if it is at most a quarter of ``bound``, the rounding bound. A bound above
    ``LARGEST`` is too weak for a verdict, and the result is then False.
    """
    return bound <= LARGEST and distance <= bound / 4


def of_enumeration(rounding: Rounding, runs: int) -> float:
    """Return an upper bound on the total variation that rounding can cause between two enumerations of one law.

    Each enumeration has ``runs`` runs; ``rounding`` has the observations of the worst run.
    """
    return ENUMERATION * (rounding.decisions + rounding.cells) + FLOAT64 * runs


def left_on_nothing(rounding: Rounding) -> float:
    """Return an upper bound on the probability that rounding can give to an outcome whose probability is 0.

    It adds the bounds of underflow, of comparisons with the end of a cumulative pmf, and of lookups.
    """
    return UNDERFLOW + 2 * rounding.epsilon * rounding.uniforms + of_lookup(rounding.epsilon, rounding.cells)


class _SeenLookups:
    __slots__ = ("again", "cells", "draws", "epsilon", "support", "uniforms", "within")

    def __init__(self) -> None:
        self.epsilon, self.support, self.within = FLOAT64, 1, 0.0
        self.draws = self.cells = self.uniforms = self.again = 0

    def __enter__(self) -> Self:
        _COLLECTING.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _COLLECTING.remove(self)

    def rounding(self) -> Rounding:
        """Return the dtypes, supports and lookups observed in the run, from which the effect of rounding is bounded."""
        draws, cells = self.draws - self.again, self.cells + self.again
        return Rounding(self.epsilon, draws, cells, self.uniforms, self.support, self.within)


_COLLECTING: list[_SeenLookups] = []
_DTYPES = {"float64": FLOAT64, "float32": FLOAT32, "float16": FLOAT16, "bfloat16": BFLOAT16}


def floats_named(epsilon: float) -> str:
    """Return the name of the floats with the spacing ``epsilon`` at 1, with this spacing, for a message."""
    name = next((name for name, spacing in _DTYPES.items() if spacing == epsilon), "floats")
    return f"{name} with a spacing of {epsilon:.1g} at 1"


def collected() -> _SeenLookups:
    """Return a context manager that collects the dtypes, supports and lookups of the run in its block.

    The effect of rounding on the law of the run is bounded from them.
    """
    return _SeenLookups()


def saw(dtype: Any) -> None:
    """Record that numbers of a NumPy or torch dtype contribute to a decision."""
    if _COLLECTING:
        saw_spacing(spacing(dtype))


def saw_spacing(epsilon: float) -> None:
    """Record that floats with the spacing ``epsilon`` at 1 contribute to a decision."""
    if _COLLECTING:
        seen = _COLLECTING[-1]
        seen.epsilon = max(seen.epsilon, epsilon)


@cache
def spacing(dtype: Any) -> float:
    """Return the spacing at 1 of the floats of a dtype; for other dtypes that of float64."""
    return _DTYPES.get(str(dtype).removeprefix("torch."), FLOAT64)


def is_of_16_bits(dtype: Any) -> bool:
    """Return whether a dtype is a float coarser than float32."""
    return spacing(dtype) > FLOAT32


def drew(support: int, dtype: Any = None) -> None:
    """Record that the observed run drew a token, so that the bound on rounding counts the draw.

    Nothing is recorded outside the block of ``collected``. A draw counts whether or not the program reads its outcome.
    ``support`` is the number of tokens of positive probability. ``dtype`` is the dtype of the pmf; None, like every
    dtype that is no float type, counts as float64.
    """
    if _COLLECTING:
        seen = _COLLECTING[-1]
        seen.draws += 1
        seen.support = max(seen.support, support)
        seen.epsilon = max(seen.epsilon, spacing(dtype))


def looked_up(cells: int) -> None:
    """Record that the program looked up a number in a cumulative pmf with ``cells`` cells of positive mass."""
    if _COLLECTING:
        _COLLECTING[-1].cells += cells


def known_within(bound: float) -> None:
    """Record a decision whose probability was computed with an error of at most ``bound``."""
    if _COLLECTING:
        _COLLECTING[-1].within += bound


def count_comparison(*, again: bool) -> None:
    """Record a comparison of a uniform number with a threshold.

    ``again`` states that the program compared the same number before.
    """
    if _COLLECTING:
        _COLLECTING[-1].again += again
        _COLLECTING[-1].uniforms += not again
