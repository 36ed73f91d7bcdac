"""Speculative sampling of continuous tokens: the coupling of two densities (arXiv 2411.11925; arXiv 2501.05370).

The rule for pmfs holds for densities. A draft x from q is accepted with probability ``min(1, p(x)/q(x))`` and otherwise
replaced by a draw from ``norm((p - q)+)``; the law is p, and a draft is accepted with probability ``1 - TV(p, q)``,
which no lossless rule exceeds. There are two ways to draw the replacement:

* ``by_rejection`` (2411.11925): draw from p until a draw is kept with probability ``max(0, 1 - q/p)``; no integral is
  needed. A draw is kept with probability TV(p, q), and a replacement is needed with the same probability: one extra
  draw a token on average, whatever p and q are, but with no bound for a single token if p and q are close.
* ``reflected`` (2501.05370): if p and q are Gaussians with one covariance s^2 I, mirror the draft at the plane between
  their means. ``(q - p)+`` is the mirror image of ``(p - q)+``, so nothing is drawn.

Points are floats or float64 arrays ``[dimensions]``. Randomness comes from two functions: one draws a point of p, one
returns True with a given probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Point: TypeAlias = Any
Density: TypeAlias = Callable[[Point], Any]
"""Maps points to densities: values >= 0 that integrate to 1, one value for each point."""
Coin: TypeAlias = Callable[[float], bool]
"""``coin(chance)``: draw a Bernoulli; True with probability ``chance``."""


class Kept(NamedTuple):
    """A continuous token (``point``), and whether it is the accepted draft."""

    point: Point
    accepted: bool


def stay_chance(p: Any, q: Any) -> Any:
    """Return the acceptance probability ``min(1, p/q)`` of two densities at a draft, floats or arrays; 0 if p = 0."""
    _check(p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(p) < np.asarray(q), np.divide(p, q), np.asarray(p) > 0) * 1.0


def owed_chance(p: Any, q: Any) -> Any:
    """Return ``max(0, 1 - q/p)``, the probability with which a point drawn from p becomes a draw from the residual."""
    _check(p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(p) > np.asarray(q), 1 - np.divide(q, p), 0.0)


def _check(p: Any, q: Any) -> None:
    if not (np.all(np.asarray(p) >= 0) and np.all(np.asarray(q) >= 0)):
        raise ValueError(f"the densities are p = {p} and q = {q}, expected numbers >= 0")


def by_rejection(p: Density, q: Density, draw: Callable[[], Point], coin: Coin) -> Point:
    """Return a point with the law ``norm((p - q)+)``, by rejection sampling from p. It does not end if p = q.

    ``draw()`` returns a point of p. ``coin(probability)`` returns True with this probability.
    """
    while True:
        point = draw()
        if coin(float(owed_chance(p(point), q(point)))):
            return point


def reflected(point: Point, p_mean: Point, q_mean: Point) -> Point:
    """Return the mirror image of ``point`` at the plane between ``p_mean`` and ``q_mean``, the means of p and q.

    If the means are equal, the point itself is returned.
    """
    across = np.asarray(p_mean, dtype=float) - np.asarray(q_mean, dtype=float)
    square = float(np.sum(across * across))
    if square == 0:
        return point
    beyond = np.asarray(point, dtype=float) - (np.asarray(p_mean, dtype=float) + np.asarray(q_mean, dtype=float)) / 2
    return point - 2 * np.sum(beyond * across) / square * across


def couple(draft: Point, p: Density, q: Density, coin: Coin, replace: Callable[[Point], Point]) -> Kept:
    """Return ``draft`` if it is accepted, else ``replace(draft)``, and which of the two it is.

    ``draft`` was drawn from the density q, and is accepted as a draw from the density p. ``coin(probability)`` returns
    True with this probability.
    """
    if coin(float(stay_chance(p(draft), q(draft)))):
        return Kept(draft, accepted=True)
    return Kept(replace(draft), accepted=False)


class Mixture(NamedTuple):
    """A mixture of Gaussians on the real line, for tests and examples.

    Each Gaussian has an entry in ``weights`` (its probability), ``means`` and ``deviations`` (standard deviations).
    """

    weights: Sequence[float]
    means: Sequence[float]
    deviations: Sequence[float]

    def density(self, x: Any) -> Any:
        """Return the density at ``x``, a float or an array of floats."""
        parts = zip(self.weights, self.means, self.deviations, strict=True)
        scale = math.sqrt(2 * math.pi)
        return sum(w * np.exp(-0.5 * ((x - mean) / s) ** 2) / (s * scale) for w, mean, s in parts)

    def below(self, x: float) -> float:
        """Return the probability of ``(-inf, x]``."""
        parts = zip(self.weights, self.means, self.deviations, strict=True)
        return math.fsum(w * math.erfc((mean - x) / (s * math.sqrt(2))) / 2 for w, mean, s in parts)

    def draw(self, generator: np.random.Generator) -> float:
        """Return one point drawn from the mixture."""
        part = generator.choice(len(self.weights), p=np.asarray(self.weights))
        return float(generator.normal(self.means[part], self.deviations[part]))

    @property
    def variation(self) -> float:
        """Return an upper bound of the total variation of the density as a function, the sum of its rises and falls.

        The bound is twice the sum of the peaks of the Gaussians.
        """
        return math.fsum(
            2 * w / (s * math.sqrt(2 * math.pi)) for w, s in zip(self.weights, self.deviations, strict=True)
        )
