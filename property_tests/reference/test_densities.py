"""Continuous tokens: the law by quadrature with a stated error, controls that it sees, and samples.

The midpoint rule with cells of width h is off by at most ``h V/2`` for a function of total variation V, whatever its
kinks; what lies outside the interval is known from the mixtures' distribution functions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from reference.densities import Mixture, by_rejection, couple, owed_chance, reflected, stay_chance

EDGE, CELLS = 12.0, 60_000
WIDTH = 2 * EDGE / CELLS
GRID = -EDGE + WIDTH * (np.arange(CELLS) + 0.5)
P = Mixture((0.3, 0.7), (-1.0, 1.5), (0.5, 1.0))
Q = Mixture((0.6, 0.4), (-0.5, 2.0), (1.0, 0.7))
PAIRS = {
    "mixtures": (P, Q),
    "near": (P, Mixture((0.3, 0.7), (-1.0, 1.6), (0.5, 1.0))),
    "one mode missed": (P, Mixture((1.0,), (1.5,), (1.0,))),
    "narrow draft": (Mixture((1.0,), (0.0,), (1.0,)), Mixture((1.0,), (0.3,), (0.4,))),
}
every_pair = pytest.mark.parametrize(("p", "q"), PAIRS.values(), ids=PAIRS)


def integral(values):
    return float(np.sum(values)) * WIDTH


def error(*mixtures):
    """What an integral of min, max or positive part of these densities may be off by: cells, tails, rounding."""
    tails = sum(m.below(-EDGE) + 1 - m.below(EDGE) for m in mixtures)
    return WIDTH * sum(m.variation for m in mixtures) / 2 + tails + 1e-12


def law(p, q, stay=stay_chance, owed=owed_chance):
    """The density of the token: kept drafts, and the mass of the others spread as accepted proposals of p are."""
    kept = q.density(GRID) * stay(p.density(GRID), q.density(GRID))
    proposed = p.density(GRID) * owed(p.density(GRID), q.density(GRID))
    return kept + (1 - integral(kept)) * proposed / integral(proposed)


def off(p, q, **rule):
    return integral(np.abs(law(p, q, **rule) - p.density(GRID))) / 2


def bound(p, q):
    """What is off is half of the difference between what is not kept and what is owed; each has one error."""
    return error(p, q)


@every_pair
def test_the_law_is_the_target(p, q):
    assert bound(p, q) < 3e-3
    assert off(p, q) <= bound(p, q)


def never_owed_less(p, q):
    """A control: what replaces a draft is drawn from p itself."""
    return np.ones_like(p)


def lenient(p, q):
    """A control: a draft stays with min(1, 1.1 p/q)."""
    return np.minimum(1.1 * p / q, 1.0)


def tempered(p, q):
    """A control: the ratio of densities flattened, as a temperature inside the exponent does."""
    return np.minimum((p / q) ** 0.5, 1.0)


@pytest.mark.parametrize(
    "rule", [{"owed": never_owed_less}, {"stay": lenient}, {"stay": tempered}], ids=["owed", "lenient", "tempered"]
)
def test_a_rule_that_is_not_it_is_seen(rule):
    assert off(P, Q, **rule) > 10 * bound(P, Q)


@every_pair
def test_a_draft_stays_as_often_as_the_densities_overlap(p, q):
    kept = integral(q.density(GRID) * stay_chance(p.density(GRID), q.density(GRID)))
    owed = integral(p.density(GRID) * owed_chance(p.density(GRID), q.density(GRID)))
    assert abs(kept + owed - 1) <= 2 * error(p, q)


def test_two_gaussians_overlap_as_their_means_say():
    p, q = Mixture((1.0,), (0.0,), (1.0,)), Mixture((1.0,), (1.0,), (1.0,))
    kept = integral(q.density(GRID) * stay_chance(p.density(GRID), q.density(GRID)))
    assert abs(kept - math.erfc(0.5 / math.sqrt(2))) <= error(p, q)


def test_the_mirror_image_of_what_q_has_more_is_what_p_has_more():
    p, q = Mixture((1.0,), (0.4,), (0.8,)), Mixture((1.0,), (-0.6,), (0.8,))
    places = GRID[::600]
    image = np.array([reflected(x, 0.4, -0.6) for x in places])
    more = np.maximum(q.density(places) - p.density(places), 0)
    assert np.allclose(more, np.maximum(p.density(image) - q.density(image), 0), atol=1e-14)
    assert more.max() > 0.1


def test_a_reflection_in_space_keeps_what_is_along_the_plane():
    point, p_mean, q_mean = np.array([1.0, 5.0]), np.array([2.0, 0.0]), np.array([0.0, 0.0])
    assert reflected(np.array([1.5, 5.0]), p_mean, q_mean).tolist() == [0.5, 5.0]
    assert reflected(point, q_mean, q_mean) is point


COUNT = 600
RADIUS = math.sqrt(math.log(2 / 1e-6) / (2 * COUNT))
"""Dvoretzky, Kiefer, Wolfowitz: an empirical distribution function is further off once in a million runs."""


def furthest(points, mixture):
    ordered = sorted(points)
    return max(
        max(abs((i + 1) / COUNT - mixture.below(x)), abs(i / COUNT - mixture.below(x))) for i, x in enumerate(ordered)
    )


def sampled(p, q, replace, seed):
    generator = np.random.default_rng(seed)
    drawn = []

    def draw():
        drawn.append(p.draw(generator))
        return drawn[-1]

    def coin(chance):
        return bool(generator.random() < chance)

    def token():
        return couple(q.draw(generator), p.density, q.density, coin, lambda x: replace(x, draw, coin))

    return [token() for _ in range(COUNT)], len(drawn)


def test_samples_of_both_replacements_fit_and_drafts_alone_do_not():
    found, extra = sampled(P, Q, lambda x, draw, coin: by_rejection(P.density, Q.density, draw, coin), 0)
    assert furthest([kept.point for kept in found], P) <= RADIUS
    assert 0.6 < extra / COUNT < 1.4  # one on average, standard error about .08
    p, q = Mixture((1.0,), (0.4,), (0.8,)), Mixture((1.0,), (-0.6,), (0.8,))
    found, extra = sampled(p, q, lambda x, draw, coin: reflected(x, 0.4, -0.6), 1)
    assert furthest([kept.point for kept in found], p) <= RADIUS
    assert extra == 0
    found, _ = sampled(p, q, lambda x, draw, coin: x, 1)
    assert furthest([kept.point for kept in found], p) > 2 * RADIUS


def test_chances_at_the_edges_of_supports():
    assert (stay_chance(0.0, 1.0), stay_chance(1.0, 0.0), stay_chance(2.0, 1.0)) == (0, 1, 1)
    assert (owed_chance(0.0, 1.0), owed_chance(1.0, 0.0), owed_chance(2.0, 1.0)) == (0, 1, 0.5)
    with pytest.raises(ValueError, match="expected numbers >= 0"):
        stay_chance(-0.1, 1.0)
