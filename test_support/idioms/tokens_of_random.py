"""A token drawn from weights with Python's ``random``."""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import random

from test_support.idioms.idiom import token


@token("random", wrong=("weights=w", "weights=[x**2 for x in w]"))
def choices(w):
    """``choices``."""
    return random.choices(range(len(w)), weights=w)[0]


@token(
    "random", wrong=("cum_weights=list(itertools.accumulate(w))", "cum_weights=list(itertools.accumulate(sorted(w)))")
)
def cumulative_choices(w):
    """``choices`` by cumulative weights, and ``pop`` of the list."""
    return random.choices(list(range(len(w))), cum_weights=list(itertools.accumulate(w)), k=1).pop()


@token("random", wrong=("random.random() * cdf[-1]", "random.random() ** 2 * cdf[-1]"))
def bisected(w):
    """``bisect`` in cumulative weights."""
    cdf = list(itertools.accumulate(w))
    return bisect.bisect(cdf, random.random() * cdf[-1])


@token("random", wrong=("bisect.bisect_right(cdf, u)", "bisect.bisect_right(cdf, u * u)"))
def bisected_with_an_end(w):
    """``bisect_right`` with an upper end."""
    cdf = list(itertools.accumulate(x / sum(w) for x in w))
    u, last = random.random(), max(i for i, x in enumerate(w) if x > 0)
    return min(last, bisect.bisect_right(cdf, u))


@token("random", wrong=("if u < 0", "if u < -0.1"))
def taken_away(w):
    """Weights are subtracted until the number is below 0."""
    u = random.random() * sum(w)
    last = max(i for i, x in enumerate(w) if x > 0)
    for i, weight in enumerate(w):
        u -= weight
        if u < 0:
            return i
    return last


@token("random", wrong=("if u < total", "if u < weight"))
def added_up(w):
    """Weights are added until their sum is above the number."""
    u, total, last = random.uniform(0, sum(w)), 0.0, 0
    for i, weight in enumerate(w):
        total += weight
        if weight > 0:
            last = i
            if u < total:
                break
    return last


@token("random", wrong=("if c > u", "if c > u * u"))
def first_of_a_generator(w):
    """``next`` of the tokens above."""
    cdf = list(itertools.accumulate(w))
    u = random.random() * cdf[-1]
    return next(i for i, c in enumerate(cdf) if c > u)


@token("random", wrong=("sum(c <= u for c in cdf)", "sum(c <= u / 2 for c in cdf)"))
def counted_below(w):
    """``sum`` of comparisons."""
    cdf = list(itertools.accumulate(w))
    u = random.random() * cdf[-1]
    return sum(c <= u for c in cdf)


@token("random", wrong=("random.random() < weight / left", "random.random() < weight"))
def coin_by_coin(w):
    """A coin for each remaining token."""
    left, last = sum(w), 0
    for i, weight in enumerate(w):
        if weight > 0:
            last = i
            if random.random() < weight / left:
                return i
            left -= weight
    return last


@token("random", wrong=("** (1 / w[i])", "** w[i]"))
def largest_power(w):
    """``max`` with a key: uniforms to the power of reciprocal weights."""
    return max((i for i, x in enumerate(w) if x > 0), key=lambda i: random.random() ** (1 / w[i]))


@token("random", wrong=("random.expovariate(w[i])", "random.expovariate(1 / w[i])"))
def smallest_exponential(w):
    """``min`` with a key: exponentials, each with its rate."""
    return min((i for i, x in enumerate(w) if x > 0), key=lambda i: random.expovariate(w[i]))


@token("random", wrong=("key=lambda pair: pair[0])[1]", "key=lambda pair: -pair[0])[1]"))
def smallest_pair(w):
    """``min`` of pairs of time and token."""
    pairs = [(random.expovariate(1.0) / x, i) for i, x in enumerate(w) if x > 0]
    return min(pairs, key=lambda pair: pair[0])[1]


@token("random", wrong=("min(pairs)", "max(pairs)"))
def smallest_tuple(w):
    """``min`` of tuples, in the order of tuples."""
    pairs = [(-math.log(1.0 - random.random()) / x, i) for i, x in enumerate(w) if x > 0]
    return min(pairs)[1]


@token("random", wrong=("heapq.nlargest", "heapq.nsmallest"))
def heap(w):
    """The first of a heap."""
    keys = {i: math.log(1.0 - random.random()) / x for i, x in enumerate(w) if x > 0}
    return heapq.nlargest(1, keys, key=keys.__getitem__)[0]


@token("random", wrong=("order[0]", "order[-1]"))
def sorted_by_time(w):
    """``sorted`` by times."""
    times = {i: random.expovariate(x) for i, x in enumerate(w) if x > 0}
    order = sorted(times, key=times.get)
    return order[0]


@token("random", wrong=("random.random() < share[column]", "random.random() > share[column]"))
def alias_table(w):
    """An alias table and ``randrange``."""
    share, other = _alias([x / sum(w) for x in w])
    column = random.randrange(len(w))
    return column if random.random() < share[column] else other[column]


@token("random", wrong=("divmod(random.random() * len(w), 1)", "divmod(random.random() ** 2 * len(w), 1)"))
def alias_table_by_divmod(w):
    """Integer part and remainder by ``divmod``."""
    share, other = _alias([x / sum(w) for x in w])
    column, rest = divmod(random.random() * len(w), 1)
    return int(column) if rest < share[int(column)] else other[int(column)]


@token("random", wrong=("math.modf(random.random() * len(w))", "math.modf(random.random() ** 2 * len(w))"))
def alias_table_by_modf(w):
    """Integer part and fractional part by ``math.modf``."""
    share, other = _alias([x / sum(w) for x in w])
    rest, column = math.modf(random.random() * len(w))
    return int(column) if rest < share[int(column)] else other[int(column)]


def _alias(pmf):
    share, other = [mass * len(pmf) for mass in pmf], list(range(len(pmf)))
    while True:
        low = [i for i, mass in enumerate(share) if mass < 1 - 1e-12 and other[i] == i]
        high = [i for i, mass in enumerate(share) if mass > 1 + 1e-12]
        if not low or not high:
            return share, other
        other[low[0]] = high[0]
        share[high[0]] -= 1 - share[low[0]]


@token("random", wrong=("random.choice(bag)", "bag[0]"))
def bag_of_tokens(w):
    """``choice`` from a bag if the weights are multiples of 1/6; else ``choices``."""
    whole = [x / sum(w) * 6 for x in w]
    if any(abs(x - round(x)) > 1e-9 for x in whole):
        return random.choices(range(len(w)), w)[0]
    bag = [i for i, x in enumerate(whole) for _ in range(round(x))]
    return random.choice(bag)


@token("random", wrong=("counts=whole", "counts=[1] * len(w)"))
def sample_with_counts(w):
    """``sample`` with counts."""
    whole = [round(x / sum(w) * 6) for x in w]
    if any(abs(x / sum(w) * 6 - n) > 1e-9 for x, n in zip(w, whole, strict=True)):
        return random.choices(range(len(w)), w)[0]
    return random.sample(range(len(w)), 1, counts=whole)[0]


@token("random", wrong=("math.log(x) -", "math.log(x) / 3 -"))
def gumbel(w):
    """Gumbel noise of exponentials."""
    scores = {i: math.log(x) - math.log(random.expovariate(1.0) or 1e-300) for i, x in enumerate(w) if x > 0}
    return max(scores, key=scores.__getitem__)
