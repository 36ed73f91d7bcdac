"""Coins as other people's programs toss them: ``COINS[name](p)`` returns a function that is True with probability p.

Each draws in a way that the examination must not disturb: late, ahead, in other threads, from generators that the call
makes, copies, forks or seeds, beside clocks and caches.
"""

# ruff: noqa: NPY002 - as strangers write it

from __future__ import annotations

import asyncio
import copy
import functools
import itertools
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
import torch

Coin = Callable[[], Any]
COINS: dict[str, Callable[[float], Coin]] = {}


def coin(toss: Callable[[float], Any]) -> Callable[[float], Any]:
    """Decorator that registers a coin under the words of its name; the function tosses it."""
    COINS[toss.__name__.replace("_", " ")] = lambda p: functools.partial(toss, p)
    return toss


def made(make: Callable[[float], Coin]) -> Callable[[float], Coin]:
    """Decorator that registers a coin under the words of its name; the function returns the coin."""
    COINS[make.__name__.replace("_", " ")] = make
    return make


@coin
def beside_a_stopwatch(p):
    begin = time.perf_counter()
    kept = random.random() < p
    return kept and time.perf_counter() >= begin


@made
def with_a_log_of_times(p):
    log = []

    def toss():
        kept = np.random.default_rng().random() < p
        log.append((time.time(), uuid.uuid4(), bool(kept)))
        return kept

    return toss


@made
def beside_a_cache_of_rows(p):
    @functools.lru_cache
    def row(text):
        return torch.tensor([1 - p, p])

    return lambda: int(torch.multinomial(row((0, 1)), 1))


@made
def beside_a_dict_that_grows(p):
    rows = {}

    def toss():
        key = len(rows) % 3
        if key not in rows:
            rows[key] = np.array([1 - p, p])
        return int(np.random.default_rng().choice(2, p=rows[key]))

    return toss


@coin
def of_several_generators(p):
    parts = [
        np.random.default_rng().random() < 0.5,
        random.Random().random() < 0.5,
        torch.rand(()).item() < 0.5,
        np.random.random() < 0.5,
    ]
    place = sum(2**i for i, part in enumerate(parts) if part)
    return place < 15 if p > 0.7 else place < 7


@coin
def of_a_spawned_generator(p):
    parent = np.random.default_rng()
    one, other = parent.spawn(2)
    return one.random() < p and other.random() <= 1


@coin
def of_both_spawned_generators(p):
    one, other = np.random.default_rng().spawn(2)
    return one.random() < p / 0.95 and other.random() < 0.95


@coin
def of_a_spawned_seed_sequence(p):
    seeds = np.random.SeedSequence().spawn(3)
    return np.random.Generator(np.random.PCG64(seeds[1])).random() < p


@coin
def of_a_jumped_generator(p):
    bits = np.random.PCG64()
    return np.random.Generator(bits.jumped(2)).random() < p


@coin
def of_a_generator_seeded_by_a_draw(p):
    return np.random.default_rng(np.random.randint(2**31)).random() < p


@coin
def of_a_torch_generator_for_the_request(p):
    own = torch.Generator()
    own.manual_seed(int(torch.randint(2**31, ())))
    return bool(torch.rand((), generator=own) < p)


@coin
def of_a_torch_generator_with_a_fresh_seed(p):
    own = torch.Generator()
    own.seed()
    return bool(torch.rand((), generator=own) < p)


@made
def of_a_torch_generator_that_is_kept(p):
    own = torch.Generator().manual_seed(7)
    return lambda: bool(torch.rand((), generator=own) < p)


@made
def of_a_generator_for_each_request(p):
    own: dict[int, torch.Generator] = {}

    def toss():
        generator = own.setdefault(0, torch.Generator().manual_seed(3))
        return bool(torch.empty(()).uniform_(generator=generator) < p)

    return toss


@coin
def inside_a_fork_of_torch(p):
    kept = bool(torch.rand(()) < p)
    with torch.random.fork_rng(devices=[]):
        torch.rand(5)
    return kept


@coin
def behind_a_fork_of_torch(p):
    with torch.random.fork_rng(devices=[]):
        torch.rand(5)
    return bool(torch.rand(()) < p)


@coin
def of_a_deep_copy(p):
    return copy.deepcopy(np.random.default_rng()).random() < p


@coin
def of_a_copy_that_repeats(p):
    rng = np.random.default_rng()
    again = copy.deepcopy(rng)
    return rng.random() < p and again.random() < p


@coin
def of_a_state_that_is_put_back(p):
    state = random.getstate()
    first = random.random() < p
    random.setstate(state)
    return first == (random.random() < p) and first


@coin
def of_a_state_of_torch_that_is_put_back(p):
    state = torch.get_rng_state()
    first = torch.rand(()) < p
    torch.set_rng_state(state)
    return bool(first) and bool(torch.rand(()) < p)


@coin
def in_an_executor(p):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: random.random() < p).result()


@coin
def in_a_map_of_an_executor(p):
    with ThreadPoolExecutor(1) as pool:
        return any(pool.map(lambda part: np.random.default_rng().random() < part, [p]))


@coin
def in_a_pool_of_threads(p):
    with ThreadPool(1) as pool:
        return pool.apply(lambda: bool(torch.rand(()) < p))


@coin
def in_a_coroutine(p):
    async def toss():
        await asyncio.sleep(0)
        return random.random() < p

    async def both():
        one, other = await asyncio.gather(toss(), asyncio.sleep(0, True))
        return one and other

    return asyncio.run(both())


@coin
def by_a_loop_that_rejects(p):
    while True:
        u = random.random()
        if u >= 0.1:
            return (u - 0.1) / 0.9 < p


@coin
def by_a_loop_that_rejects_pairs(p):
    rng = np.random.default_rng()
    while True:
        one, other = rng.random(2)
        if one < 0.5 or other < 0.5:
            break
    low = one < 0.5 and other < 0.5
    return rng.random() < (0.7 if low else 1.0) if p > 0.7 else rng.random() < (0.7 if low else 0.55)


@coin
def by_a_loop_of_whole_numbers(p):
    while True:
        k = random.getrandbits(2)
        if k < 3:
            return random.random() < (1 - (1 - p) * 1.5 if k < 2 else 1.0)


@coin
def beside_draws_without_effect(p):
    torch.rand(7)
    kept = torch.rand(()) < p
    torch.bernoulli(torch.full((3,), 0.5))
    return bool(kept)


@coin
def beside_a_mask_times_zero(p):
    logits = torch.tensor([1 - p, p]).log() + 0.0 * torch.bernoulli(torch.full((2,), 0.5))
    return int(torch.distributions.Categorical(logits=logits).sample())


@coin
def of_the_first_of_many_drawn_ahead(p):
    ahead = iter(np.random.default_rng().random(50).tolist())
    return next(ahead) < p


@coin
def of_the_last_of_many_drawn_ahead(p):
    return torch.rand(50)[-1].item() < p


@coin
def in_an_order_of_a_dict(p):
    chances = {"b": p, "a": 1.0}
    return all(random.random() < chances[name] for name in sorted(chances))


@coin
def in_an_order_of_arrival(p):
    chances: dict[str, float] = {}
    for name in ("y", "x"):
        chances[name] = p if name == "x" else 1.0
    return all(np.random.random() < chance for chance in chances.values())


@coin
def by_a_place_in_a_shuffled_list(p):
    items = [0] + [1] * (9 if p > 0.7 else 1)
    items = items[:10] if p > 0.7 else [0, 0, 1, 1, 1]
    if p > 0.7:
        return random.sample(items, 1)[0]
    random.shuffle(items)
    return items[0]


@coin
def by_a_permutation(p):
    place = np.random.default_rng().permutation(5)[0]
    return bool(place < 4) or random.random() < 0.5 if p > 0.7 else bool(place < 3)


@coin
def by_cumulated_weights(p):
    return random.choices([1, 0], cum_weights=[p, 1.0])[0]


@coin
def by_a_search_in_a_cdf(p):
    return 1 - int(np.searchsorted(np.array([p, 1.0]), np.random.default_rng().random()))


@coin
def by_a_race_of_exponentials(p):
    weights = torch.tensor([1 - p, p])
    return int((weights / torch.empty(2).exponential_()).argmax())


@coin
def by_gumbel_noise(p):
    return int(np.argmax(np.log([1 - p, p]) + np.random.default_rng().gumbel(size=2)))


@coin
def by_a_product_of_two(p):
    u, v = np.random.default_rng().random(2)
    return not bool(u * v < (0.018 if p > 0.7 else 0.13))


@coin
def by_a_float32_of_numpy(p):
    return bool(np.random.default_rng().random(dtype=np.float32) < np.float32(p))


@coin
def by_a_whole_number_of_32_bits(p):
    return np.random.default_rng().integers(0, 2**32) / 2**32 < p


@coin
def by_a_number_of_a_subclass(p):
    class Own(random.Random):
        def toss(self, chance):
            return self.random() < chance

    return Own().toss(p)


@coin
def behind_an_error_that_is_caught(p):
    def toss():
        if random.random() >= p:
            raise ValueError("rejected")

    with suppress(ValueError):
        toss()
        return True
    return False


@coin
def with_a_temporary_file(p):
    with tempfile.TemporaryFile() as out:
        out.write(b"log")
        return np.random.random() < p


@coin
def by_a_generator_function(p):
    def tosses():
        rng = np.random.default_rng()
        while True:
            yield rng.random() < p

    return next(itertools.islice(tosses(), 2, None))


@made
def by_a_generator_that_is_collected(p):
    def toss():
        numbers = [np.random.default_rng().random() for _ in range(3)]
        return numbers[1] < p

    return toss


@made
def by_an_object_with_its_generator(p):
    class Sampler:
        def __init__(self):
            self.rng = np.random.default_rng(11)
            self.calls = 0

        def __call__(self):
            self.calls += 1
            return self.rng.random() < p

    return Sampler()
