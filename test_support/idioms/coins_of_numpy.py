"""Whether drafts are kept, decided with NumPy."""

from __future__ import annotations

import math

import numpy as np

from test_support.idioms.idiom import coin, count

RNG = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)


@coin("NumPy", wrong=("< p / q", "< p"))
def generator_of_the_module(p, q):
    """A generator that the module keeps."""
    return RNG.random() < p / q


@coin("NumPy", wrong=("np.random.rand()", "np.random.rand() / 2"))
def legacy_function(p, q):
    """The functions of ``np.random``."""
    return np.random.rand() < min(1, p / q)  # noqa: NPY002


@coin("NumPy", wrong=("random_sample()", "random_sample() ** 2"))
def legacy_generator(p, q):
    """A ``RandomState``."""
    return LEGACY.random_sample() * q < p


@coin("NumPy", wrong=("uniform(0, q)", "uniform(0, 1)"))
def uniform_up_to_q(p, q):
    """``uniform`` between two bounds."""
    return RNG.uniform(0, q) < p


@coin("NumPy", wrong=("dtype=np.float32)", "dtype=np.float32) ** 2"))
def uniform_of_float32(p, q):
    """A uniform of float32."""
    return RNG.random(dtype=np.float32) < p / q


@coin("NumPy", wrong=("math.log(1 - u)", "math.log(1 - u / 2)"))
def logarithm(p, q):
    """``math.log`` of a number that is not 0."""
    u = RNG.random()
    return p > 0 and math.log(1 - u) < math.log(p) - math.log(q)


@coin("NumPy", wrong=("-RNG.exponential()", "-RNG.exponential() * 4"))
def exponential(p, q):
    """Minus an exponential is compared with the difference of logarithms; the exponential may be 0."""
    return p > 0 and (p >= q or -RNG.exponential() < np.log(p) - np.log(q))


@coin("NumPy", wrong=("RNG.standard_exponential() > ", "RNG.standard_exponential() < "))
def standard_exponential(p, q):
    """An exponential lasts longer than the difference of logarithms."""
    return p >= q or (p > 0 and bool(RNG.standard_exponential() > np.log(q / p)))


@coin("NumPy", wrong=("RNG.binomial(1, min(p / q, 1.0))", "RNG.binomial(1, min(p, 1.0))"))
def binomial(p, q):
    """A binomial number of one trial."""
    return RNG.binomial(1, min(p / q, 1.0)) == 1


@coin("NumPy", wrong=("[keep, 1 - keep]", "[1 - keep, keep]"))
def choice_of_two(p, q):
    """``choice`` of True and False."""
    keep = min(p / q, 1.0)
    return bool(RNG.choice([True, False], p=[keep, 1 - keep]))


@coin("NumPy", wrong=("RNG.multinomial(1, [keep, 1 - keep])[0]", "RNG.multinomial(1, [keep, 1 - keep])[1]"))
def multinomial_of_two(p, q):
    """``multinomial`` of two."""
    keep = min(p / q, 1.0)
    return RNG.multinomial(1, [keep, 1 - keep])[0] == 1


@coin("NumPy", wrong=("RNG.integers(2**53)", "RNG.integers(2**52)"))
def integers_of_53_bits(p, q):
    """An integer of 53 bits, scaled."""
    return RNG.integers(2**53) * 2.0**-53 < p / q


@coin("NumPy", wrong=("dtype=np.uint32)", "dtype=np.uint32) // 2"))
def threshold_of_32_bits(p, q):
    """An integer of 32 bits is compared with a threshold, as in hardware."""
    return RNG.integers(0, 2**32, dtype=np.uint32) < math.ceil(min(p / q, 1.0) * 2**32)


@coin("NumPy", wrong=("buffer[0] < p / q", "buffer[0] < p"))
def into_a_buffer(p, q):
    """``out=``, with a buffer that is reused."""
    buffer = np.empty(1)
    RNG.random(out=buffer)
    return bool(buffer[0] < p / q)


@coin("NumPy", wrong=("np.less(u, p / q)", "np.less(u, p)"))
def ufunc(p, q):
    """The comparison as a named function (ufunc)."""
    u = RNG.random(1)
    return np.less(u, p / q).item()


@coin("NumPy", wrong=("np.asarray(RNG.random())", "np.asarray(RNG.random()) / 2"))
def converted(p, q):
    """A number as an array without dimensions."""
    return bool(np.asarray(RNG.random()) < p / q)


@coin("NumPy", wrong=("np.where(u < p / q, 1, 0)", "np.where(u < p / q, 0, 1)"))
def where(p, q):
    """``where`` of a comparison."""
    u = RNG.random()
    return np.where(u < p / q, 1, 0) == 1


@coin("NumPy", wrong=("np.floor(u + keep)", "np.floor(u + keep / 2)"))
def floor_of_the_sum(p, q):
    """The integer part of uniform plus ratio."""
    u, keep = RNG.random(), min(p / q, 1.0)
    return int(np.floor(u + keep)) == 1


@coin("NumPy", wrong=("np.heaviside(p / q - u, 0.0)", "np.heaviside(p - u, 0.0)"))
def step_function(p, q):
    """``heaviside``."""
    u = RNG.random()
    return bool(np.heaviside(p / q - u, 0.0))


@coin("NumPy", wrong=("(u, u * u)[0]", "(u, u * u)[1]"))
def one_of_two_functions(p, q):
    """Two functions of one number, only one of which is used."""
    u = RNG.random()
    return (u, u * u)[0] < p / q


@coin("NumPy", wrong=("RNG.beta(1, 1)", "RNG.beta(2, 1)"))
def beta(p, q):
    """A beta of 1 and 1 is a uniform."""
    return bool(RNG.beta(1, 1) < p / q)


@coin("NumPy", wrong=("RNG.geometric(1 - keep) > 1", "RNG.geometric(keep) > 1"))
def geometric(p, q):
    """The first failure does not come at once."""
    keep = min(p / q, 1.0)
    return keep == 1 or bool(RNG.geometric(1 - keep) > 1)


@coin("NumPy", wrong=("RNG.logistic() < ", "RNG.logistic(scale=3) < "))
def logistic(p, q):
    """A logistic number is compared with the log-odds."""
    return p >= q or (p > 0 and bool(RNG.logistic() < np.log(p) - np.log(q - p)))


@coin("NumPy", wrong=("u = next(numbers)", "u = next(numbers) / 2"))
def generator_function(p, q):
    """Numbers come from a Python generator that draws blocks."""
    numbers = _numbers()
    u = next(numbers)
    return u < p / q


def _numbers():
    while True:
        yield from RNG.random(4)


@coin("NumPy", wrong=("spawn(1)[0].random()", "spawn(1)[0].random() / 2"))
def spawned(p, q):
    """A generator that is spawned."""
    return np.random.default_rng().spawn(1)[0].random() < p / q


@coin("NumPy", wrong=("rng.random() < p / q", "rng.random() < p"))
def seed_sequence(p, q):
    """A generator of its own bits, seeded by the operating system."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence()))
    return rng.random() < p / q


@count("NumPy", wrong=("np.logical_and.accumulate(kept)", "np.logical_or.accumulate(kept)"))
def accumulated_mask(p, q):
    """``logical_and.accumulate``."""
    kept = RNG.random(len(p)) < p / q
    return np.logical_and.accumulate(kept).sum()


@count("NumPy", wrong=("np.minimum(1, p / q)", "np.minimum(1, p)"))
def cumprod(p, q):
    """``cumprod`` of the mask."""
    kept = RNG.random(p.shape) < np.minimum(1, p / q)
    return np.cumprod(kept, axis=-1).sum()


@count("NumPy", wrong=("np.argmin([*kept, False])", "np.argmax([*kept, False])"))
def argmin_with_a_stop(p, q):
    """``argmin`` of the mask with a False appended."""
    kept = RNG.random(len(p)) < p / q
    return np.argmin([*kept, False])


@count("NumPy", wrong=("np.flatnonzero(~kept)", "np.flatnonzero(kept)"))
def flatnonzero(p, q):
    """``flatnonzero`` of the rejections."""
    kept = RNG.uniform(size=len(p)) * q < p
    lost = np.flatnonzero(~kept)
    return lost[0] if lost.size else len(p)


@count("NumPy", wrong=("np.log(p / q)", "np.log(p)"))
def logarithms_of_a_row(p, q):
    """Logarithms of a row of 1 - u, so that no logarithm of 0 occurs."""
    with np.errstate(divide="ignore"):
        kept = np.log1p(-RNG.random(len(p))) < np.log(p / q)
    return np.cumprod(kept).sum()


@count("NumPy", wrong=("buffer[: len(p)] = RNG.random(len(p))", "buffer[: len(p)] = RNG.random(1)"))
def slice_of_a_buffer(p, q):
    """The row is written into the front of a buffer."""
    buffer = np.ones(8)
    buffer[: len(p)] = RNG.random(len(p))
    return np.cumprod(buffer[: len(p)] < p / q).sum()


@count("NumPy", wrong=("RNG.random(len(p), dtype=np.float32)", "RNG.random(1, dtype=np.float32)"))
def row_of_float32(p, q):
    """A row of float32."""
    return np.cumprod(RNG.random(len(p), dtype=np.float32) < p / q).sum()


@count("NumPy", wrong=("takewhile(lambda pair: pair[0] < pair[1]", "takewhile(lambda pair: pair[0] < pair[1] / 2"))
def taken_while(p, q):
    """``takewhile`` of pairs."""
    from itertools import takewhile

    pairs = zip(RNG.random(len(p)), p / q, strict=True)
    return len(list(takewhile(lambda pair: pair[0] < pair[1], pairs)))


@count("NumPy", wrong=("if np.all(u < p / q)", "if np.any(u < p / q)"))
def all_or_the_first(p, q):
    """All are kept, or the first rejection is searched."""
    u = RNG.random(len(p))
    if np.all(u < p / q):
        return len(p)
    return int(np.argmax(u >= p / q))


@count("NumPy", wrong=("np.max(u * q - p) < 0", "np.min(u * q - p) < 0"))
def largest_difference(p, q):
    """All are kept if the largest difference is below 0."""
    u = RNG.random(len(p))
    return len(p) if np.max(u * q - p) < 0 else int(u[0] * q[0] < p[0])


@count("NumPy", wrong=("np.array([RNG.random() for _ in p])", "np.array([RNG.random() for _ in p]) / 2"))
def array_of_numbers(p, q):
    """An array of numbers that were drawn one by one."""
    u = np.array([RNG.random() for _ in p])
    return np.cumprod(u < p / q).sum()


@count("NumPy", wrong=("count=len(p))", "count=len(p)) ** 2"))
def fromiter(p, q):
    """``fromiter``."""
    u = np.fromiter((RNG.random() for _ in p), dtype=np.float64, count=len(p))
    return np.cumprod(u < p / q).sum()
