"""Whether drafts are kept, decided with Python's ``random``."""

from __future__ import annotations

import itertools
import math
import random
import secrets
from random import random as drawn

from test_support.idioms.idiom import coin, count

GENERATOR = random.Random(0)


@coin("random", wrong=("random.random() < p / q", "random.random() < p"))
def uniform(p, q):
    """``random.random``."""
    return random.random() < p / q


@coin("random", wrong=("p > drawn() * q", "p > drawn() / q"))
def imported_by_name(p, q):
    """``from random import random``, and a comparison with exchanged sides."""
    return p > drawn() * q


@coin("random", wrong=("GENERATOR.random()", "GENERATOR.random() ** 2"))
def generator_of_the_module(p, q):
    """A generator that the module keeps."""
    return GENERATOR.random() * q < p


@coin("random", wrong=("random.uniform(0, q)", "random.uniform(0, 1)"))
def uniform_up_to_q(p, q):
    """``uniform`` between two bounds."""
    return random.uniform(0, q) < p


@coin("random", wrong=("1.5 - u", "1 - u"))
def folded(p, q):
    """A uniform above 1/2 is mirrored, which leaves it uniform."""
    u = random.random()
    return (u if u < 0.5 else 1.5 - u) < p / q


@coin("random", wrong=("else 1.5 - u", "else 1 - u"))
def put_back(p, q):
    """The state is restored, so that the number is drawn again."""
    state, again = random.getstate(), random.random()
    random.setstate(state)
    u = random.random()
    return (u if again < 0.5 else 1.5 - u) < p / q


@coin("random", wrong=("math.log(1.0 - random.random())", "math.log(1.0 - random.random() / 2)"))
def logarithm(p, q):
    """``math.log`` of a number that is not 0."""
    return p > 0 and math.log(1.0 - random.random()) < math.log(p) - math.log(q)


@coin("random", wrong=("math.log(random.random() or 1e-300)", "math.log(random.random() or 1e-300) * 2"))
def logarithm_or_else(p, q):
    """``or`` replaces 0 by another number."""
    return p > 0 and math.log(random.random() or 1e-300) < math.log(p / q)


@coin("random", wrong=("max(random.random(), 1e-300)", "max(random.random(), 0.5)"))
def larger_of_two(p, q):
    """``max`` of the uniform and a small number."""
    return p > 0 and math.log(max(random.random(), 1e-300)) < math.log(p / q)


@coin("random", wrong=("random.expovariate(1.0) > ", "random.expovariate(1.0) < "))
def exponential(p, q):
    """An exponential is compared with minus a logarithm."""
    return p >= q or (p > 0 and random.expovariate(1.0) > -math.log(p / q))


@coin("random", wrong=("(keep, 1 - keep)", "(1 - keep, keep)"))
def choices_of_two(p, q):
    """``choices`` of True and False."""
    keep = min(1.0, p / q)
    return random.choices((True, False), (keep, 1 - keep))[0]


@coin("random", wrong=("cum_weights=(keep, 1.0)", "cum_weights=(1 - keep, 1.0)"))
def cumulative_choices_of_two(p, q):
    """``choices`` by cumulative weights."""
    keep = min(1.0, p / q)
    return random.choices([1, 0], cum_weights=(keep, 1.0), k=1) == [1]


@coin("random", wrong=("random.getrandbits(32)", "random.getrandbits(31)"))
def bits(p, q):
    """32 bits, scaled."""
    return random.getrandbits(32) / 2**32 < p / q


@coin("random", wrong=("random.getrandbits(53) < ", "random.getrandbits(53) // 2 < "))
def bits_below_a_threshold(p, q):
    """An integer of 53 bits is compared with a threshold."""
    return random.getrandbits(53) < math.ceil(min(1.0, p / q) * 2**53)


@coin("random", wrong=("random.randrange(2**40)", "random.randrange(2**39)"))
def randrange(p, q):
    """``randrange`` of many, scaled."""
    return random.randrange(2**40) * q < p * 2**40


@coin("random", wrong=("random.randint(1, 10**15) <= ", "random.randint(1, 10**15) / 3 <= "))
def randint(p, q):
    """``randint`` from 1."""
    return random.randint(1, 10**15) <= p / q * 10**15


@coin("random", wrong=("secrets.randbelow(2**53)", "secrets.randbelow(2**52)"))
def secret(p, q):
    """``secrets.randbelow``."""
    return secrets.randbelow(2**53) / 2**53 < p / q


@coin("random", wrong=("random.SystemRandom().random()", "random.SystemRandom().random() / 2"))
def system(p, q):
    """``SystemRandom``."""
    return random.SystemRandom().random() < p / q


@coin("random", wrong=("not random.random() >= p / q", "random.random() >= p / q"))
def not_at_least(p, q):
    """``not >=``."""
    return not random.random() >= p / q


@coin("random", wrong=("0 <= random.random() < p / q < math.inf", "0 <= random.random() < p < math.inf"))
def chained(p, q):
    """A chain of comparisons."""
    return 0 <= random.random() < p / q < math.inf


@coin("random", wrong=("int(random.random() + keep)", "int(random.random() + keep / 2)"))
def whole_part(p, q):
    """The integer part of uniform plus ratio."""
    keep = min(1.0, p / q)
    return int(random.random() + keep) == 1


@coin("random", wrong=("math.floor(random.random() + keep)", "math.floor(random.random() + 0.5 * keep)"))
def floor(p, q):
    """``math.floor`` of uniform plus ratio."""
    keep = min(1.0, p / q)
    return math.floor(random.random() + keep) >= 1


@coin("random", wrong=("(random.random() < p / q) + 0", "1 - (random.random() < p / q)"))
def counted(p, q):
    """The answer of the comparison, as a number."""
    return (random.random() < p / q) + 0 == 1


@coin("random", wrong=(".random() < p / q", ".random() < p"))
def generator_of_a_drawn_seed(p, q):
    """A generator with a drawn seed."""
    return random.Random(random.getrandbits(64)).random() < p / q


@count("random", wrong=("random.random() * b < a", "random.random() < a"))
def taken_while(p, q):
    """``takewhile`` of coins."""
    coins = (random.random() * b < a for a, b in zip(p, q, strict=True))
    return sum(1 for _ in itertools.takewhile(bool, coins))


@count("random", wrong=("if not all(", "if not any("))
def all_of_the_coins(p, q):
    """``all`` stops at the first rejection."""
    coins = [random.random() for _ in p]
    if not all(u < a / b for u, a, b in zip(coins, p, q, strict=True)):
        return next(i for i, u in enumerate(coins) if not u < p[i] / q[i])
    return len(p)


@count("random", wrong=("default=len(p)", "default=0"))
def smallest_of_the_lost(p, q):
    """The smallest index of a rejection."""
    coins = [random.random() for _ in p]
    return min((i for i, u in enumerate(coins) if u >= p[i] / q[i]), default=len(p))


@count("random", wrong=("else len(p)", "else 0"))
def else_of_a_loop(p, q):
    """The first of a list of rejections, or the length."""
    lost = [i for i in range(len(p)) if random.random() >= p[i] / q[i]]
    return lost[0] if lost else len(p)
