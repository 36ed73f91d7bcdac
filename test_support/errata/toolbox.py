"""Laws of one position and of one round, random pairs of pmfs, and sample shares with their confidence intervals."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
from scipy.stats import binomtest

from reference import Task, accept_probability, flip, overlap, residual
from reference.algorithms import speculative_sampling
from test_support.laws.rational import P, Q, always, as_law, distance, law_of, pmf, project, vector

F = Fraction


def ratio(p, q):
    """Return the accept probability min(1, p/q) of a token."""
    return lambda token: accept_probability(p, q, token)


def rule_law(accept, fallback, p=P, q=Q):
    """Return the law of the token that an accept-or-replace rule emits at one position.

    A draft d ~ q is kept with probability ``accept(d)``, else the token is drawn from the pmf ``fallback(d)``.
    """

    def program(draws):
        drafted = draws.categorical(q, ("draft", 0))
        if flip(draws, accept(drafted), ("accept", 0)):
            return drafted
        return draws.categorical(fallback(drafted), ("residual", 0))

    return vector(law_of(program), len(p))


def bias(law, p=P):
    """Return the total variation between the law of one token, as a vector, and p."""
    return distance(dict(enumerate(law)), as_law(p))


def with_overlap(alpha):
    """Return a pair of pmfs (p, q) whose overlap sum min(p, q) is ``alpha``."""
    return pmf(alpha, 1 - F(alpha)), pmf(1, 0)


def lengths(p, q, gamma, horizon=None):
    """Return the law of the number of tokens that one round of speculative sampling emits.

    The models have the pmfs p and q in every context. ``horizon`` is the maximum number of tokens; None for gamma + 1.
    """
    decoder = speculative_sampling.build(Task(always(p), always(q), horizon=horizon or gamma + 1), gamma=gamma)
    return law_of(lambda draws: len(decoder.step(draws, decoder.init((0,)))[1].tokens))


def mean(law):
    """Return the expectation of a law of numbers, a mapping from numbers to probabilities."""
    return sum(outcome * mass for outcome, mass in law.items())


def tokens_per_round(alpha, gamma):
    """Return (1 - alpha^(gamma + 1))/(1 - alpha), the mean for a constant acceptance rate below 1."""
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def speed_up(alpha, gamma, rho):
    """Return the speed-up over plain decoding: tokens per round over the cost of a round.

    A round costs one target call (cost 1) and ``gamma`` drafts of cost ``rho`` each. ``alpha`` is the acceptance rate.
    """
    return tokens_per_round(alpha, gamma) / (1 + gamma * rho)


def sampled_law(p, q):
    """Return the law of one position under speculative sampling."""
    return rule_law(ratio(p, q), lambda _: residual(p, q), p, q)


def dirichlet(rng, vocabulary):
    """Return a pmf drawn uniformly from the simplex, as floats."""
    weights = [-math.log(1 - rng.random()) for _ in range(vocabulary)]
    return np.array(weights) / sum(weights)


def random_pairs(vocabulary, count, seed=0):
    """Return ``count`` pairs of pmfs (p, q) drawn uniformly from the simplex, as floats."""
    rng = random.Random(f"{seed}/{vocabulary}")
    return [(dirichlet(rng, vocabulary), dirichlet(rng, vocabulary)) for _ in range(count)]


def rational_pairs(vocabulary, count, seed=0):
    """Return ``count`` pairs of exact pmfs with entries k/n, some of them 0."""
    rng = random.Random(f"{seed}/{vocabulary}")

    def row():
        weights = [rng.choice((0, 1, 1, 2, 3, 5)) for _ in range(vocabulary)]
        weights[rng.randrange(vocabulary)] += 1
        return pmf(*(F(weight, sum(weights)) for weight in weights))

    return [(row(), row()) for _ in range(count)]


def divergence(p, q):
    """Return KL(p || q) in nats."""
    return math.fsum(float(a) * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def share_of(count, total):
    """Return ``count / total`` in words, with its exact 95 % confidence interval."""
    low, high = binomtest(count, total).proportion_ci()
    return f"{100 * count / total:.1f} % of {total} (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


def entropy(row):
    """Return the entropy of a pmf in nats."""
    return -math.fsum(float(mass) * math.log(mass) for mass in row if mass > 0)


def softmax_two_ways(rows):
    """Return softmax of float32 logits ``[rows, V]`` by exp(x - max)/sum, and by exp(x - logsumexp).

    They are equal but for rounding. Exponentials are rounded once from float64 and sums go from left to right, so that
    no instruction set decides the answer.
    """
    single = np.float32
    shifted = rows - rows.max(axis=1, keepdims=True)
    weights = np.exp(shifted.astype(float)).astype(single)
    total = weights.cumsum(axis=1, dtype=single)[:, -1:]
    log_total = np.log(total.astype(float)).astype(single)
    return weights / total, np.exp((shifted - log_total).astype(float)).astype(single)


def normal_logits(count, vocabulary, seed=0):
    """Return float32 logits ``[count, vocabulary]`` of standard deviation 2."""
    rng = random.Random(seed)
    return np.array([[rng.gauss(0, 2) for _ in range(vocabulary)] for _ in range(count)], dtype=np.float32)


def overlap_share(p, q):
    """Return sum min(p, q) as a float."""
    return float(overlap(np.asarray(p, dtype=float), np.asarray(q, dtype=float)))


def accepted_share(law):
    """Return the probability that a candidate is accepted, from a law of ``one_level``."""
    return sum(mass for (_, accepted), mass in law.items() if accepted)


def first_of(law, vocabulary=3):
    """Return the law of the first component, as a vector ``[vocabulary]``, from a law of pairs (token, anything)."""
    return vector(project(law, lambda outcome: outcome[0]), vocabulary)
