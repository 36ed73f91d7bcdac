"""``CacheOperations(fork=)``: a change of a copy of a cache is not seen in the cache, nor the other way round."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import CacheOperations, SpeculationRefuted, UnusableSubject, check_cache
from test_support.subjects.right_caches import CAPACITY, PAGE, Paged, Static, statuses


class SharesItsBuffer(Static):
    def fork(self):
        other = type(self)()
        other.buffer, other.held = self.buffer, max(self.held - 1, 0)
        return other


class SharesAllOfItsBuffer(Static):
    """Only what is written after the copy was made shows that it is none."""

    def fork(self):
        other = type(self)()
        other.buffer, other.held = self.buffer, self.held
        return other


class Shared(Paged):
    """Pages that copies share until one of them writes, counted by who holds them."""

    def __init__(self, pool=None):
        self.storage = pool or {"tokens": np.zeros(8 * CAPACITY, dtype=int), "held by": [0] * 64}
        self.pool, self.holders, self.table, self.held = self.storage["tokens"], self.storage["held by"], [], 0

    def append(self, tokens):
        for token in tokens:
            if self.held == PAGE * len(self.table):
                self.table.append(self.new())
            elif self.is_shared(self.table[-1]):
                self.holders[self.table[-1]] -= 1
                self.table[-1] = self.copied(self.table[-1])
            self.pool[PAGE * self.table[-1] + self.held % PAGE] = token
            self.held += 1

    def is_shared(self, page):
        return self.holders[page] > 1

    def copied(self, page):
        fresh = self.new()
        self.pool[PAGE * fresh : PAGE * (fresh + 1)] = self.pool[PAGE * page : PAGE * (page + 1)]
        return fresh

    def new(self):
        page = self.holders.index(0)
        self.holders[page] = 1
        return page

    def crop(self, length):
        self.held = length
        while len(self.table) > self.pages(length):
            self.holders[self.table.pop()] -= 1

    def fork(self):
        other = type(self)(self.storage)
        other.table, other.held = [*self.table], self.held
        for page in self.table:
            self.holders[page] += 1
        return other


class WritesIntoSharedPages(Shared):
    def is_shared(self, page):
        return page < 0


class CopiesCountNoPages(Shared):
    """A copy's crop gives pages back that the cache still reads."""

    def fork(self):
        other = super().fork()
        for page in self.table:
            self.holders[page] = 1
        return other


class CountsTheLastPageOnly(Shared):
    def fork(self):
        other = super().fork()
        for page in self.table[:-1]:
            self.holders[page] -= 1
        return other


class CopiesOfCopiesShare(Shared):
    """The first copy is apart; what is copied from a copy writes into its pages."""

    generation = 0

    def fork(self):
        other = super().fork()
        other.generation = self.generation + 1
        return other

    def is_shared(self, page):
        return super().is_shared(page) and self.generation < 2


class FewPages(Shared):
    """As many pages as four full caches have."""

    def __init__(self, pool=None):
        pages = 4 * -(-CAPACITY // PAGE)
        super().__init__(pool or {"tokens": np.zeros(PAGE * pages, dtype=int), "held by": [0] * pages})


class WritesIntoFewPages(FewPages):
    def is_shared(self, page):
        return page < 0


def test_a_pool_whose_copies_must_be_freed_is_told_how():
    with pytest.raises(UnusableSubject, match=r"ValueError: .* pass CacheOperations\(release=...\)"):
        check_cache(FewPages, CacheOperations(fork=FewPages.fork), capacity=CAPACITY)
    freed = CacheOperations(fork=FewPages.fork, release=lambda cache: cache.crop(0))
    check_cache(FewPages, freed, capacity=CAPACITY)
    with pytest.raises(SpeculationRefuted, match="expected"):
        check_cache(WritesIntoFewPages, freed, capacity=CAPACITY)


@pytest.mark.parametrize("make", [Static, Shared])
def test_a_right_cache_holds(make):
    assert set(statuses(make, fork=make.fork).values()) == {Status.HOLDS}


@pytest.mark.parametrize(
    "make",
    [
        SharesItsBuffer,
        SharesAllOfItsBuffer,
        WritesIntoSharedPages,
        CopiesCountNoPages,
        CountsTheLastPageOnly,
        CopiesOfCopiesShare,
    ],
)
def test_a_copy_that_shares_is_refuted(make):
    found = statuses(make, fork=make.fork)
    assert found.pop("forks_are_apart") is Status.REFUTED
    assert set(found.values()) == {Status.HOLDS}  # nothing else has to do with copies


def test_what_was_done_to_the_copy_is_told():
    with pytest.raises(SpeculationRefuted) as raised:
        check_cache(SharesAllOfItsBuffer, CacheOperations(fork=SharesAllOfItsBuffer.fork), capacity=CAPACITY)
    for line in ("append (2,)", "append to copy (4,)", "it holds (4,), expected (2,)"):
        assert line in str(raised.value)
