# ruff: noqa: NPY002 - legacy calls are among the sources
"""Where an engine may take its randomness from, each as a coin that comes up with a given probability.

``SOURCES`` maps what is said of a source to a function from the probability to the coin. ``HIDDEN`` are those whose
draws cannot be answered: every engine that tosses them must end as UNKNOWN. The others have an exact law.
"""

from __future__ import annotations

import functools
import math
import os
import random
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from random import random as random_by_name
from statistics import NormalDist

import numpy as np
import torch
from numpy.random import random as numpy_random_by_name

MODULE_GENERATOR = np.random.default_rng(0)
MODULE_STATE = np.random.RandomState(0)
MODULE_RANDOM = random.Random(0)
MODULE_TORCH = torch.Generator().manual_seed(0)
BOUND = MODULE_GENERATOR.random
IN_A_TUPLE = (MODULE_STATE.random_sample,)
IN_A_LIST = [np.random.random]
PARTIAL = functools.partial(MODULE_GENERATOR.random, 1)
POOL = ThreadPoolExecutor(1)
POOL.submit(int).result()
TASKS, ANSWERS = Queue(), Queue()
threading.Thread(target=lambda: [ANSWERS.put(task()) for task in iter(TASKS.get, None)], daemon=True).start()


class Holder:
    """Holds a bound method in a slot, and another as an attribute of the class."""

    __slots__ = ("draw",)
    of_class = MODULE_STATE.rand

    def __init__(self):  # noqa: D107
        self.draw = MODULE_GENERATOR.random


HOLDER = Holder()


def by_default(draw=MODULE_GENERATOR.random):
    return draw()


SCRIPT = torch.jit.CompilationUnit("""
def toss(p: float) -> bool:
    return bool(torch.rand([]) < p)
""")


def by_an_old_thread(toss):
    TASKS.put(toss)
    return ANSWERS.get()


def of_generator(generator, p):
    return lambda: generator.random() < p


def of_function(draw, p):
    return lambda: draw() < p


def in_a_thread(toss):
    found = []
    thread = threading.Thread(target=lambda: found.append(toss()))
    thread.start()
    thread.join()
    return found[0]


def congruential(p, state=None):
    """Toss a coin by a congruential generator written in Python; its state is kept from call to call."""
    state = [1] if state is None else state

    def toss():
        state[0] = (1103515245 * state[0] + 12345) % 2**31
        return state[0] / 2**31 < p

    return toss


def by_a_local_import(p):
    def toss():
        import torch as torch_by_local_import

        return bool(torch_by_local_import.rand(()) < p)

    return toss


def with_a_temporary_file(p):
    def toss():
        with tempfile.NamedTemporaryFile():
            return random.random() < p

    return toss


def child(p):
    code = f"import random; print(int(random.random() < {p}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"1"


def over_a_socket(p):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("127.0.0.1", 9))
        return connection.getsockname()[1] % 1000 < 1000 * p


def device(p):
    with Path("/dev/urandom").open("rb") as file:
        return file.read(1)[0] < 256 * p


def swallowing(p):
    """Toss a coin by a uniform, but use another value if drawing the uniform raises."""
    try:
        return struct.unpack("d", struct.pack("d", random.random()))[0] < p
    except Exception:  # noqa: BLE001 - what it is here for
        return True


def alike(p):
    """Toss a coin by two generators with one seed: the second repeats what the first drew."""
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    return first.random() < p and second.random() < p


NORMAL = NormalDist()
SOURCES = {
    "torch.rand": lambda p: lambda: bool(torch.rand(()) < p),
    "torch.bernoulli": lambda p: lambda: bool(torch.bernoulli(torch.tensor(p, dtype=torch.float64))),
    "torch.multinomial": lambda p: (
        lambda: int(torch.multinomial(torch.tensor([1 - p, p], dtype=torch.float64), 1)) == 1
    ),
    "torch.rand with a Generator of the module": lambda p: lambda: bool(torch.rand((), generator=MODULE_TORCH) < p),
    "Tensor.uniform_": lambda p: lambda: bool(torch.empty(()).uniform_() < p),
    "Tensor.exponential_ in a race": lambda p: (
        lambda: bool((torch.tensor([1 - p, p]) / torch.empty(2).exponential_()).argmax())
    ),
    "torch imported inside the call": by_a_local_import,
    "torch.rand in a thread": lambda p: lambda: in_a_thread(lambda: bool(torch.rand(()) < p)),
    "torch.rand in a thread pool made before the run": lambda p: (
        lambda: POOL.submit(lambda: bool(torch.rand(()) < p)).result()
    ),
    "np.random.random": lambda p: lambda: np.random.random() < p,
    "np.random.random in a thread": lambda p: lambda: in_a_thread(lambda: np.random.random() < p),
    "from numpy.random import random": lambda p: lambda: numpy_random_by_name() < p,
    "np.random.default_rng() in the call": lambda p: lambda: np.random.default_rng().random() < p,
    "default_rng(0) of the module": lambda p: lambda: MODULE_GENERATOR.random() < p,
    "default_rng(0) in a closure": lambda p: of_generator(np.random.default_rng(0), p),
    "default_rng(0).random kept in the module": lambda p: lambda: BOUND() < p,
    "default_rng(0).random kept in a closure": lambda p: of_function(MODULE_GENERATOR.random, p),
    "default_rng(0).random kept in a slot": lambda p: lambda: HOLDER.draw() < p,
    "default_rng(0).random as a default argument": lambda p: lambda: by_default() < p,
    "default_rng(0).random in a functools.partial": lambda p: lambda: bool(PARTIAL()[0] < p),
    "RandomState(0) of the module": lambda p: lambda: MODULE_STATE.random_sample() < p,
    "RandomState(0).rand kept in a class": lambda p: lambda: Holder.of_class() < p,
    "np.random.random in a list": lambda p: lambda: IN_A_LIST[0]() < p,
    "Generator of a Philox in the call": lambda p: lambda: np.random.Generator(np.random.Philox(3)).random() < p,
    "two generators of one seed": lambda p: lambda: alike(p),
    "random.random": lambda p: lambda: random.random() < p,
    "random.choices": lambda p: lambda: random.choices([True, False], [p, 1 - p])[0],
    "from random import random": lambda p: lambda: random_by_name() < p,
    "random.Random(0) of the module": lambda p: lambda: MODULE_RANDOM.random() < p,
    "random.SystemRandom": lambda p: lambda: random.SystemRandom().random() < p,
    "secrets.randbelow": lambda p: lambda: secrets.randbelow(10) < 10 * p,
    "secrets.SystemRandom kept in a closure": lambda p: of_generator(secrets.SystemRandom(), p),
    "torch.poisson": lambda p: lambda: bool(torch.poisson(torch.tensor(-math.log(p))) < 1),
    "torch.randn": lambda p: lambda: bool(torch.randn(()) < NORMAL.inv_cdf(p)),
    "np.random.normal": lambda p: lambda: np.random.normal() < NORMAL.inv_cdf(p),
    "np.random.poisson": lambda p: lambda: np.random.poisson(-math.log(p)) < 1,
    "random.gauss": lambda p: lambda: random.gauss(0, 1) < NORMAL.inv_cdf(p),
    "random.triangular": lambda p: lambda: random.triangular(0, 1, 1) < math.sqrt(p),
    "a temporary file beside the coin": with_a_temporary_file,
    "a uuid beside the coin": lambda p: lambda: (uuid.uuid4(), random.random() < p)[1],
    "a clock beside the coin": lambda p: lambda: (time.perf_counter(), random.random() < p)[1],
}
HIDDEN = {
    "torch.distributions.Gamma": lambda p: lambda: bool(torch.distributions.Gamma(1.0, 1.0).sample() < p),
    "np.random.gamma": lambda p: lambda: np.random.gamma(2) < p,
    "random.gammavariate": lambda p: lambda: random.gammavariate(2, 1) < p,
    "RandomState(0).random_sample kept in a tuple": lambda p: lambda: IN_A_TUPLE[0]() < p,
    "torch.rand in a thread started before the run": lambda p: (
        lambda: by_an_old_thread(lambda: bool(torch.rand(()) < p))
    ),
    "torch.distributions.Beta": lambda p: lambda: bool(torch.distributions.Beta(1.0, 1.0).sample() < p),
    "torch.binomial of 1000 trials": lambda p: (
        lambda: bool(torch.binomial(torch.tensor(1000.0), torch.tensor(0.5)) < 1000 * p)
    ),
    "F.dropout": lambda p: lambda: bool(torch.nn.functional.dropout(torch.ones(()), 1 - p) > 0),
    "torch.jit.script": lambda p: lambda: SCRIPT.toss(p),
    "PCG64.random_raw": lambda p: lambda: MODULE_GENERATOR.bit_generator.random_raw() < p * 2**64,
    "os.urandom": lambda p: lambda: os.urandom(1)[0] < 256 * p,
    "secrets.token_bytes": lambda p: lambda: secrets.token_bytes(1)[0] < 256 * p,
    "uuid.uuid4": lambda p: lambda: uuid.uuid4().int % 1000 < 1000 * p,
    "/dev/urandom": lambda p: lambda: device(p),
    "time.time_ns": lambda p: lambda: time.time_ns() % 1000 < 1000 * p,
    "time.time in whole seconds": lambda p: lambda: int(time.time()) % 10 < 10 * p,
    "datetime.now": lambda p: lambda: datetime.now(UTC).second % 10 < 10 * p,
    "a child process": lambda p: lambda: child(p),
    "a socket": lambda p: lambda: over_a_socket(p),
    "a generator written in Python": congruential,
    "bytes of a uniform, with the refusal caught": lambda p: lambda: swallowing(p),
}
