"""``check_cache``: right caches hold, and each planted bug is refuted with the fewest operations that show it."""

# ruff: noqa: D101, D102, D107 (a class's name says what is planted, its methods are a cache's)

from __future__ import annotations

import ast
from functools import partial

import pytest

from specverify.base.verdict import Status
from specverify.subjects.cache import CacheUnderTest, first_difference
from specverify.testing import CacheOperations, SpeculationRefuted, UnusableSubject, check_cache
from test_support.subjects.right_caches import CAPACITY, PAGE, Paged, Static, statuses


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


class KeepsOneOfAWholeAppend(Static):
    """If all drafts of a long round are rejected, one stays."""

    def append(self, tokens):
        self.before = self.held
        super().append(tokens)

    def crop(self, length):
        super().crop(length + (length == self.before and self.held - length > 4))


@pytest.mark.parametrize("make", [Static, Paged])
def test_a_right_cache_holds(make):
    assert set(statuses(make).values()) == {Status.HOLDS}


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
        (KeepsOneOfAWholeAppend, "rounds_leave_what_is_committed"),
        (Wraps, "appends_are_kept"),
        (LiesAboutItsLength, "crops_keep_the_first"),
    ],
)
def test_a_planted_bug_is_refuted(make, check):
    assert statuses(make)[check] is Status.REFUTED


def test_the_fewest_operations_are_told():
    with pytest.raises(SpeculationRefuted) as raised:
        check_cache(WritesAtTheEnd, checks=["crops_keep_the_first"])
    told = str(raised.value)
    assert "after 3 operations it holds (0,), expected (4,)" in told
    assert "append (0,)" in told


class Ring:
    """A sliding window of eight tokens as a ring; ``room`` is the number of drafts that it can take back."""

    def __init__(self, room):
        self.ids, self.end = [-1] * (8 + room), 0

    def append(self, tokens):
        for token in tokens:
            self.ids[self.end % len(self.ids)] = token
            self.end += 1

    def crop(self, length):
        self.end = length

    def __iter__(self):
        return iter([self.ids[place % len(self.ids)] for place in range(max(self.end - 8, 0), self.end)])


def test_what_is_told_of_a_window_crops_no_more_than_a_round_does():
    def difference(room, operations):
        append, crop = (lambda cache, given: cache.append(given)), (lambda cache, given: cache.crop(given))
        return first_difference(CacheUnderTest(partial(Ring, room), append, crop, list, window=8), operations)

    right, wrong = (check_cache(partial(Ring, room), window=8, on_fail=None) for room in (9, 8))
    assert {verdict.status for verdict in right} == {Status.HOLDS}
    (refuted,) = (verdict for verdict in wrong if verdict.status is Status.REFUTED)
    lines = (line.partition(" ") for line in refuted.counterexample.let[1:])
    operations = [(name, ast.literal_eval(given)) for name, _, given in lines]
    assert difference(8, operations) is not None
    assert difference(9, operations) is None


@pytest.mark.parametrize("length", [lambda cache: cache.end, lambda cache: min(cache.end, 8)])
def test_a_window_may_report_all_tokens_or_those_in_it(length):
    """What a faulty cache holds is named, not a length that it rightly reports."""
    right, wrong = (
        check_cache(partial(Ring, room), CacheOperations(length=length), window=8, on_fail=None) for room in (9, 8)
    )
    assert {verdict.status for verdict in right} == {Status.HOLDS}
    (refuted,) = (verdict for verdict in wrong if verdict.status is Status.REFUTED)
    assert " it holds (" in refuted.statement


def test_a_method_that_makes_copies_is_named_if_copies_are_not_examined():
    def noted(operations):
        (verdict,) = check_cache(Static, operations, capacity=CAPACITY, checks=["appends_are_kept"])
        return verdict.figures.get("notes", [])

    assert noted(CacheOperations(fork=Static.fork)) == []
    assert "CacheOperations(fork=lambda cache: cache.fork())" in noted(CacheOperations())[0]


def test_a_function_may_return_another_cache():
    operations = CacheOperations(lambda held, tokens: held + tokens, lambda held, length: held[:length])
    check_cache(tuple, operations)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_cache(5), "what makes the cache is 5, expected something to call without arguments"),
        (lambda: check_cache(dict), "dict has no method 'append', expected one, or CacheOperations(append=...)"),
        (
            lambda: check_cache(Static, CacheOperations(crop=5)),
            "crop is 5, expected something to call with 2 arguments",
        ),
        (lambda: check_cache(Static, capacity=2), "capacity is 2, expected an integer from 16 to 1000"),
        (lambda: check_cache(Static, window=64), "window is 64, expected an integer from 0 to 63"),
        (lambda: check_cache(Static, capcity=20), "check_cache has no option 'capcity', did you mean capacity?"),
        (
            lambda: check_cache(Static, crop=Static.crop),
            "check_cache has no option 'crop': write check_cache(make, CacheOperations(crop=...))",
        ),
        (lambda: check_cache(Static, Static.crop), "expected CacheOperations(...), such as CacheOperations(read=read)"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as raised:
        call()
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda cache: ["a"], "read returned ['a'], expected the token ids"),
        (lambda cache: [token + 0.5 for token in cache], "expected the token ids that"),
        (lambda cache: cache.tokens, "tokens"),
    ],
)
def test_what_cannot_be_read_is_no_refutation(read, sentence):
    with pytest.raises(UnusableSubject) as raised:
        check_cache(Static, CacheOperations(read=read))
    assert sentence in str(raised.value)


class TwoBlocks(list):
    """A paged cache, blocks of 16, that frees a block too many where a crop of eight or more goes over an edge."""

    def crop(self, length):
        lost = len(self) - length >= 8 and -(-len(self) // 16) > -(-length // 16)
        del self[length:]
        if lost:
            self[length // 16 * 16 :] = [0] * (length % 16)


def test_a_crop_of_eight_over_the_edge_of_a_block():
    operations = CacheOperations(append=lambda cache, tokens: cache.extend(tokens))
    found = {verdict.check: verdict.status for verdict in check_cache(TwoBlocks, operations, on_fail=None)}
    assert found["rounds_leave_what_is_committed"] is Status.REFUTED


def test_a_length_that_is_no_whole_number_is_refuted():
    operations = CacheOperations(length=lambda cache: cache.held + 0.5)
    with pytest.raises(SpeculationRefuted, match=r"it reports 1.5 entries, expected 1"):
        check_cache(Static, operations, checks=["appends_are_kept"])
