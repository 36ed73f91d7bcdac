"""Whoever looks from another thread at how many draws a run has made leaves the run as it is."""

from __future__ import annotations

import random
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
import torch

from specverify.foreign.draws_made import draws_made
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law


def tosses(draws):
    """Toss a coin of NumPy and one of Python, three times; return the number of heads."""
    with answered_everywhere(draws):
        legacy = np.random.random
        return sum(int(legacy() < 0.5) + int(random.random() < 0.5) for _ in range(3))


@pytest.mark.thorough
def test_a_look_is_no_draw():
    """The states were read by the libraries' own methods, which are answered while a program runs."""
    over = threading.Event()

    def look():
        while not over.is_set():
            draws_made(None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(8):
            assert program_law(tosses).probabilities[0] == Fraction(1, 64)
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_every_draw_of_a_library_is_seen():
    states = [draws_made(None)]
    for draw in (np.random.random, random.random, lambda: torch.rand(()), lambda: torch.manual_seed(1), torch.seed):
        draw()
        states.append(draws_made(None))
    assert len(set(map(repr, states))) == 6
    assert draws_made(None) == states[-1]


def test_a_look_takes_no_lock_of_torch(monkeypatch):
    """A signal arrives in a callback of the garbage collector, while the thread reads the state of the generator."""

    class Locked:
        def __getattr__(self, name):
            raise AssertionError(f"{name} waits for the lock")

    draws_made(None)
    monkeypatch.setattr(torch, "default_generator", Locked())
    assert draws_made(None) == draws_made(None)
