"""What rounding can do to a law: seen while the law is computed, derived here, written nowhere else.

An enumerated law is the law of the program that ran, in the arithmetic it ran in: its own probabilities, multiplied in
float64. Two such laws are equal up to ``ENUMERATION`` a decision if the programs are. A program may also be right and
differ, because it computes the same probabilities in another order and in coarser floats. How far is bounded below, by
the coarsest dtype that was seen at a decision (float32 at least: NumPy does not show what is computed in between).

Let u be half the spacing of the floats at 1. A decision compares with, or draws from, numbers made of pmfs p and q:

* An entry of a softmax has 2 u from the exponential, u from the division, and the error of the sum. Sums are made in
  pairs, as torch and NumPy make them, over at most 2**18 terms: 18 u. So p and q are off by 21 u each, their ratio by
  43 u, and so is the probability of a coin. The law it is compared with has the 21 u of p.
* A residual p - q has an absolute error of 21 u (p + q) + u |p - q| an entry: 22 u in total variation at most, weighted
  by the probability that it is drawn from. Its own sum is a common factor, which a draw does not see.

That is 64 u = 32 epsilon a decision. Floats of 16 bits are summed up in float32 by every library, so there a decision
has the rounding of a few stored numbers and their ratio: less than 8 u = 4 epsilon.

A number that is looked up in a cumulated pmf is different: every partial sum is rounded, and what one cell gains its
neighbour loses. Over n cells of positive mass that is n u at most in total variation; n is what was seen there, not the
vocabulary. The same holds of a uniform number that is compared with one bound after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

FLOAT64, FLOAT32 = 2.0**-52, 2.0**-23
"""Spacings of the floats at 1."""
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


def worst(one: Rounding, other: Rounding) -> Rounding:
    """Return what bounds both."""
    counts = (max(mine, its) for mine, its in zip(one[1:], other[1:], strict=True))
    return Rounding(max(one.epsilon, other.epsilon), *counts)


def after(one: Rounding, other: Rounding) -> Rounding:
    """Return what bounds a run that goes through both, one after the other."""
    counts = (mine + its for mine, its in zip(one[1:], other[1:], strict=True))
    return Rounding(max(one.epsilon, other.epsilon), *counts)


def of_decision(epsilon: float = FLOAT32) -> float:
    """Return how far one decision may be off in total variation, with ``epsilon`` the spacing of the floats at 1."""
    return (4 if epsilon > FLOAT32 else 32) * epsilon


def allowed(rounding: Rounding, coarsest: float = FLOAT32) -> float:
    """Return how far in total variation rounding can move a law; floats are taken to be ``coarsest`` at least."""
    epsilon = max(rounding.epsilon, coarsest)
    return rounding.decisions * of_decision(epsilon) + rounding.cells * epsilon / 2


def of_enumeration(rounding: Rounding, runs: int) -> float:
    """Return how far apart in total variation two enumerations of one law can be."""
    return ENUMERATION * (rounding.decisions + rounding.cells) + FLOAT64 * runs


def left_on_nothing(rounding: Rounding) -> float:
    """Return the probability that rounding can leave on an outcome that should have none.

    Underflow leaves next to nothing; the end of a cumulated pmf, which a uniform number is compared with, leaves a
    spacing of its floats.
    """
    return UNDERFLOW + 2 * rounding.epsilon * rounding.uniforms


class _Seen:
    def __init__(self) -> None:
        self.epsilon, self.cells, self.uniforms, self.again = FLOAT64, 0, 0, 0

    def rounding(self, draws: int) -> Rounding:
        """Return what was seen of a run with so many draws."""
        return Rounding(self.epsilon, draws - self.again, self.cells + self.again, self.uniforms)


_COLLECTING: list[_Seen] = []
_DTYPES = {"float64": FLOAT64, "float32": FLOAT32, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@contextmanager
def collected() -> Iterator[_Seen]:
    """Collect what a run computes with."""
    seen = _Seen()
    _COLLECTING.append(seen)
    try:
        yield seen
    finally:
        _COLLECTING.remove(seen)


def saw(dtype: Any) -> None:
    """Note that numbers of a dtype of NumPy or torch reach a decision, or are made on the way there."""
    if _COLLECTING:
        epsilon = spacing(dtype)
        _COLLECTING[-1].epsilon = max(_COLLECTING[-1].epsilon, epsilon)


@cache
def spacing(dtype: Any) -> float:
    """Return the spacing at 1 of the floats of a dtype; that of float64 for what is no float."""
    return _DTYPES.get(str(dtype).removeprefix("torch."), FLOAT64)


def looked_up(cells: int) -> None:
    """Note that a number was looked up among the bounds of so many cells of positive mass."""
    if _COLLECTING:
        _COLLECTING[-1].cells += cells


def asked(*, again: bool) -> None:
    """Note a question to a uniform number, the first or a further one."""
    if _COLLECTING:
        _COLLECTING[-1].again += again
        _COLLECTING[-1].uniforms += not again
