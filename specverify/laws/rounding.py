"""What rounding can do to a law: seen while the law is computed, derived here, written nowhere else.

An enumerated law is the law of the program that ran, in the arithmetic it ran in: its own probabilities, multiplied in
float64. Two such laws are equal up to ``ENUMERATION`` a decision if the programs are. A program may also be right and
differ, because it computes the same probabilities in another order and in coarser floats. How far is bounded below, by
the coarsest dtype that was seen at a decision (float32 at least: NumPy does not show what is computed in between).

Let u be half the spacing of the floats at 1, and p and q pmfs of the same logits, each with n tokens of positive
probability at most: n is seen, and the zeros of a vocabulary add nothing. Write d for the distance of a logit from the
largest one, Z for the sum of exp(-d) and H for the entropy. In the mean under p, E d + ln Z = H <= ln n.

* A sum of n positive floats is off by (n - 1) u at most, in whatever order. That is no waste: NumPy adds one by one in
  ``cumsum`` and along every axis but the last, and torch adds a softmax in as many lanes as the processor has, each
  one by one. Only ``np.sum`` along the last axis and ``torch.sum`` add in pairs.
* An entry of a softmax has d u from the subtraction of the largest logit, 5 u from the exponential and u from the
  division; written as the exponential of a log-softmax, 2 d u + u ln Z + 5 u. (The coarsest exponential and logarithm
  in use are NumPy's in float32, 2.52 and 3.83 units in the last place.) What all entries have in common is not seen by
  a draw, so a draw is off by half the mean of this in total variation: less than (ln n + 3) u.
* A coin that accepts x, drawn from q, with p(x) / q(x) compares stored entries. Those of q cancel against the draw, and
  those of p are a draw's. What is left is that stored pmfs do not sum to 1: a softmax by n u, one written by logarithms
  by (n + 9 ln n + 9) u, each of p and q. The division adds u. Where logarithms are subtracted instead, the entries of q
  do not cancel. Together that is less than (2 n + 20 ln n + 20) u.
* A residual p - q has the two sums and u for the subtraction, (2 n + 18 ln n + 19) u. Its own sum is common to all.

A token takes a coin and a residual on its worst path, and is compared with a draw of p that was written in another way.
Shared between the two decisions that is (2 n + 20 ln n + 22) u = (n + 10 ln n + 11) epsilon each.

Floats of 16 bits are summed up in float32 by torch, and by NumPy where it adds in pairs, so n costs what it does there.
Now stored logarithms count: ln p has an error of |ln p| u, whose mean is H u. The same steps with that, u for a stored
entry and 2 u for a sum give (3 ln n + 17/4) u. In float16 entries below 2**-14 may be lost, those of 3 pmfs a decision.

A number that is looked up in a cumulated pmf is different: every partial sum is rounded, and what one cell gains its
neighbour loses. Below 1 that is u/2 a sum, where it is added, and again if all are divided by the last one. Over n
cells of positive mass it is less than n u in total variation, and as much may be missing at the end. The same holds of
a uniform number that is compared with one bound after another.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, Self

FLOAT64, FLOAT32, FLOAT16, BFLOAT16 = 2.0**-52, 2.0**-23, 2.0**-10, 2.0**-7
"""Spacings of the floats at 1."""
LOST = 2.0**-14
"""In float16 a smaller number is not a normal one, and may become 0."""
ENUMERATION = 4 * FLOAT64
"""A decision's share of an enumeration: two weights normalised, one product, one sum."""
NEGLIGIBLE = 64 * FLOAT64
"""A run of less probability than this happens because float64 rounds: what it ends with is not judged."""
LARGEST = 1e-3
"""A bound above this is no verdict."""
UNDERFLOW = 1e-30
"""Less probability than this is what an underflowing number leaves behind, not support."""


class Rounding(NamedTuple):
    """What a run, or the worst of several, was seen to compute with."""

    epsilon: float = FLOAT64
    """Spacing at 1 of the coarsest floats."""
    decisions: int = 0
    """Draws, but for repeated questions to one uniform number."""
    cells: int = 0
    """Cells of cumulated pmfs that numbers were looked up in, and repeated questions."""
    uniforms: int = 0
    """Uniform numbers that were compared with something."""
    support: int = 1
    """The most tokens of positive probability in one draw."""
    within: float = 0.0
    """How far decisions are off, together, whose probabilities are known between bounds alone."""


def worst(one: Rounding, other: Rounding) -> Rounding:
    """Return what bounds both."""
    return one if one == other else Rounding._make(map(max, one, other))


def after(one: Rounding, other: Rounding) -> Rounding:
    """Return what bounds a run that goes through both, one after the other."""
    return Rounding(
        max(one.epsilon, other.epsilon),
        one.decisions + other.decisions,
        one.cells + other.cells,
        one.uniforms + other.uniforms,
        max(one.support, other.support),
        one.within + other.within,
    )


def of_decision(epsilon: float, support: int) -> float:
    """Return how far one decision may be off in total variation.

    ``epsilon`` is the spacing of the floats at 1, ``support`` the number of tokens of positive probability.
    """
    if epsilon <= FLOAT32:
        return (support + 10 * math.log(support) + 11) * epsilon
    lost = 3 * support * LOST if epsilon == FLOAT16 else 0.0
    return (1.5 * math.log(support) + 2.125) * epsilon + support * FLOAT32 + lost


def of_lookup(epsilon: float, cells: int) -> float:
    """Return how far look-ups among so many cells of cumulated pmfs may be off in total variation."""
    return cells * epsilon / 2


def allowed(rounding: Rounding, coarsest: float = FLOAT32) -> float:
    """Return how far in total variation rounding can move a law; floats are taken to be ``coarsest`` at least."""
    epsilon = max(rounding.epsilon, coarsest)
    floats = rounding.decisions * of_decision(epsilon, rounding.support) + of_lookup(epsilon, rounding.cells)
    return floats + rounding.within


def holds_within(distance: float, bound: float) -> bool:
    """Return whether a distance holds: rounding can do little, and the distance is small even for that."""
    return bound <= LARGEST and distance <= bound / 4


def of_enumeration(rounding: Rounding, runs: int) -> float:
    """Return how far apart in total variation two enumerations of one law can be."""
    return ENUMERATION * (rounding.decisions + rounding.cells) + FLOAT64 * runs


def left_on_nothing(rounding: Rounding) -> float:
    """Return the probability that rounding can leave on an outcome that should have none.

    Underflow leaves next to nothing; the end of a cumulated pmf, which a uniform number is compared with, leaves a
    spacing of its floats, and what its sums have lost.
    """
    return UNDERFLOW + 2 * rounding.epsilon * rounding.uniforms + of_lookup(rounding.epsilon, rounding.cells)


class _Seen:
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
        """Return what was seen of a run."""
        draws, cells = self.draws - self.again, self.cells + self.again
        return Rounding(self.epsilon, draws, cells, self.uniforms, self.support, self.within)


_COLLECTING: list[_Seen] = []
_DTYPES = {"float64": FLOAT64, "float32": FLOAT32, "float16": FLOAT16, "bfloat16": BFLOAT16}


def collected() -> _Seen:
    """Return what a run inside it, as a context, computes with."""
    return _Seen()


def saw(dtype: Any) -> None:
    """Note that numbers of a dtype of NumPy or torch reach a decision, or are made on the way there."""
    if _COLLECTING:
        seen, epsilon = _COLLECTING[-1], spacing(dtype)
        seen.epsilon = max(seen.epsilon, epsilon)


@cache
def spacing(dtype: Any) -> float:
    """Return the spacing at 1 of the floats of a dtype; that of float64 for what is no float."""
    return _DTYPES.get(str(dtype).removeprefix("torch."), FLOAT64)


def is_of_16_bits(dtype: Any) -> bool:
    """Return whether a dtype is of floats coarser than those of float32."""
    return spacing(dtype) > FLOAT32


def drew(support: int, dtype: Any = None) -> None:
    """Note a draw among so many tokens of positive probability, looked at or not; ``dtype`` is that of the pmf."""
    if _COLLECTING:
        seen = _COLLECTING[-1]
        seen.draws += 1
        seen.support = max(seen.support, support)
        seen.epsilon = max(seen.epsilon, spacing(dtype))


def looked_up(cells: int) -> None:
    """Note that a number was looked up among the bounds of so many cells of positive mass."""
    if _COLLECTING:
        _COLLECTING[-1].cells += cells


def known_within(bound: float) -> None:
    """Note a decision whose probability may be off by ``bound``: it was found between bounds."""
    if _COLLECTING:
        _COLLECTING[-1].within += bound


def asked(*, again: bool) -> None:
    """Note a question to a uniform number, the first or a further one."""
    if _COLLECTING:
        _COLLECTING[-1].again += again
        _COLLECTING[-1].uniforms += not again
