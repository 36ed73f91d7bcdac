"""Right caches (a buffer, and pages from a pool), and a function that returns the checks' verdicts on a cache."""

# ruff: noqa: D102, D107 (the methods are a cache's)

from __future__ import annotations

import numpy as np

from specverify.testing import CacheOperations, check_cache

CAPACITY, PAGE = 32, 4


class Static:
    """A cache in a fixed buffer, written at the current length."""

    def __init__(self):
        self.buffer, self.held = np.zeros(CAPACITY, dtype=int), 0

    def append(self, tokens):
        self.buffer[self.held : self.held + len(tokens)] = tokens
        self.held += len(tokens)

    def crop(self, length):
        self.held = length

    def __iter__(self):
        return iter(self.buffer[: self.held])

    def __len__(self):
        return self.held

    def fork(self):
        other = type(self)()
        other.buffer, other.held = self.buffer.copy(), self.held
        return other


class Paged(Static):
    """A cache in pages from a pool; empty pages are returned to it."""

    def __init__(self):
        self.pool, self.free, self.table, self.held = np.zeros(CAPACITY, dtype=int), list(range(8)), [], 0

    def append(self, tokens):
        for token in tokens:
            if self.held == PAGE * len(self.table):
                self.table.append(self.free.pop())
            self.pool[PAGE * self.table[-1] + self.held % PAGE] = token
            self.held += 1

    def crop(self, length):
        self.held = length
        while len(self.table) > self.pages(length):
            self.free.append(self.table.pop())

    def pages(self, length):
        return -(-length // PAGE)

    def __iter__(self):
        return iter([int(self.pool[PAGE * self.table[at // PAGE] + at % PAGE]) for at in range(self.held)])


def statuses(make, fork=None):
    """Return the status of each check on a cache."""
    operations = CacheOperations(length=len, fork=fork)
    found = check_cache(make, operations, capacity=CAPACITY, on_fail=None)
    return {verdict.check: verdict.status for verdict in found}
