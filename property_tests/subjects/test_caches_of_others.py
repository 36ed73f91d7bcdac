"""``check_cache``: right caches hold, and each planted bug is refuted with the fewest operations that show it."""

# ruff: noqa: D101, D102, D107 (a class's name says what is planted, its methods are a cache's)

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import SpeculationRefuted, UnusableSubject, check_cache

CAPACITY, PAGE = 32, 4


class Static:
    """A buffer that is written at the length."""

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
    """Pages from a pool, given back when they are empty."""

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


class CropsOneTooFew(Static):
    def crop(self, length):
        self.held = min(length + 1, self.held)


class NeverCrops(Static):
    def crop(self, length):
        pass


class WritesAtTheEnd(Static):
    """After a crop what is appended is written where the rejected drafts ended."""

    def __init__(self):
        super().__init__()
        self.end = 0

    def append(self, tokens):
        self.buffer[self.end : self.end + len(tokens)] = tokens
        self.end += len(tokens)
        self.held += len(tokens)


class KeepsTheLast(Static):
    def crop(self, length):
        self.buffer[:length] = self.buffer[self.held - length : self.held].copy()
        self.held = length


class PagesNeverGivenBack(Paged):
    def crop(self, length):
        self.held = length
        self.table = self.table[: self.pages(length)]


class PageTooManyGivenBack(Paged):
    def pages(self, length):
        return length // PAGE


class ResetsAtZero(Static):
    def crop(self, length):
        self.held = length or self.held


class Wraps(Static):
    """A ring that is one entry short."""

    def append(self, tokens):
        for token in tokens:
            self.buffer[self.held % (CAPACITY - 1)] = token
            self.held += 1


class LiesAboutItsLength(Static):
    def __len__(self):
        return max(self.held, 3)


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


def statuses(make, **options):
    found = check_cache(make, length=len, capacity=CAPACITY, on_fail=None, **options)
    return {verdict.check: verdict.status for verdict in found}


@pytest.mark.parametrize("make", [Static, Paged, Shared])
def test_a_right_cache_holds(make):
    fork = {} if make is Paged else {"fork": make.fork}
    assert set(statuses(make, **fork).values()) == {Status.HOLDS}


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (CropsOneTooFew, "crops_keep_the_first"),
        (NeverCrops, "crops_keep_the_first"),
        (WritesAtTheEnd, "crops_keep_the_first"),
        (KeepsTheLast, "crops_keep_the_first"),
        (ResetsAtZero, "crops_keep_the_first"),
        (PageTooManyGivenBack, "crops_keep_the_first"),
        (PagesNeverGivenBack, "rounds_leave_what_is_committed"),
        (Wraps, "appends_are_kept"),
        (LiesAboutItsLength, "crops_keep_the_first"),
    ],
)
def test_a_planted_bug_is_refuted(make, check):
    assert statuses(make)[check] is Status.REFUTED


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
        check_cache(SharesAllOfItsBuffer, fork=SharesAllOfItsBuffer.fork, capacity=CAPACITY)
    for line in ("append (2,)", "append to copy (4,)", "it holds (4,), expected (2,)"):
        assert line in str(raised.value)


def test_the_fewest_operations_are_told():
    with pytest.raises(SpeculationRefuted) as raised:
        check_cache(WritesAtTheEnd, checks=["crops_keep_the_first"])
    told = str(raised.value)
    assert "after 3 operations it holds (0,), expected (4,)" in told
    assert "append (0,)" in told


def test_a_function_may_return_another_cache():
    check_cache(tuple, append=lambda held, tokens: held + tokens, crop=lambda held, length: held[:length])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_cache(5), "what makes the cache is 5, expected something to call without arguments"),
        (lambda: check_cache(dict), "dict has no method 'append', expected one, or append=, a function of the cache"),
        (lambda: check_cache(Static, crop=5), "crop is 5, expected something to call with 2 arguments"),
        (lambda: check_cache(Static, capacity=2), "capacity is 2, expected a whole number of at least 16"),
        (lambda: check_cache(Static, corp=Static.crop), "check_cache has no option 'corp', did you mean crop?"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as raised:
        call()
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("read", "sentence"),
    [(lambda cache: ["a"], "read returned ['a'], expected the token ids"), (lambda cache: cache.tokens, "tokens")],
)
def test_what_cannot_be_read_is_no_refutation(read, sentence):
    with pytest.raises(UnusableSubject) as raised:
        check_cache(Static, read=read)
    assert sentence in str(raised.value)


class TwoBlocks(list):
    """A paged cache, blocks of 16, that frees a block too many where a crop of eight or more goes over an edge."""

    def crop(self, length):
        lost = len(self) - length >= 8 and -(-len(self) // 16) > -(-length // 16)
        del self[length:]
        if lost:
            self[length // 16 * 16 :] = [0] * (length % 16)


def test_a_crop_of_eight_over_the_edge_of_a_block():
    options = dict(append=lambda cache, tokens: cache.extend(tokens), on_fail=None)
    found = {verdict.check: verdict.status for verdict in check_cache(TwoBlocks, **options)}
    assert found["rounds_leave_what_is_committed"] is Status.REFUTED
