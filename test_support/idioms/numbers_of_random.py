"""Integers of ``random`` with more values than are enumerated, and decisions made from them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np

from test_support.idioms.idiom import coin, count

RNG = np.random.default_rng(0)


@coin("random", wrong=("random.randint(0, 255)", "random.randint(0, 127)"))
def byte_and_a_uniform(p, q):
    """One of 256 numbers decides, unless it is the number of the threshold: then a uniform decides."""
    keep, number = 256 * min(1.0, p / q), random.randint(0, 255)
    return number < math.floor(keep) or (number == math.floor(keep) and random.random() < keep % 1.0)


@count("random", wrong=("number < whole", "number > whole"))
def thousandths(p, q):
    """A number below 1000 for each draft, and a uniform if it is the number of the threshold."""
    kept = []
    for ratio in 1000 * p / q:
        number, whole = random.randrange(1000), math.floor(ratio)
        kept.append(number < whole or (number == whole and random.random() < ratio - whole))
    return np.cumprod(kept).sum()


@coin("random", wrong=("bit < wanted", "bit > wanted"))
def bit_by_bit(p, q):
    """Bits are compared with those of the ratio until one differs."""
    keep = min(1.0, p / q)
    if keep == 1:
        return True
    for place in range(1, 54):
        bit, wanted = random.getrandbits(1), int(keep * 2**place) % 2
        if bit != wanted:
            return bit < wanted
    return False


@coin("random", wrong=("Fraction(p) / Fraction(q)", "Fraction(p)"))
def exact_ratio(p, q):
    """A ratio that is a ``Fraction``, compared with a number of ``random``."""
    return random.random() < Fraction(p) / Fraction(q)


@coin("random", wrong=("-p / q", "-p"))
def copied_sign(p, q):
    """``math.copysign`` gives the uniform another sign."""
    return math.copysign(random.random(), -1.0) > -p / q
