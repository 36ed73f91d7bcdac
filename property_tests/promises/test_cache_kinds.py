"""Sliding windows, recurrent states and pages: right ones hold when they are declared, wrong ones are refuted."""

import copy

import numpy as np
import pytest

from specverify.testing import CacheOperations, SpeculationRefuted, check_cache

W = 8


class Window:
    """Keeps everything and shows the last tokens."""

    def __init__(self):
        self.all = []

    def append(self, tokens):
        self.all += list(tokens)

    def crop(self, length):
        del self.all[length:]

    def __iter__(self):
        return iter(self.all[-W:])

    def __len__(self):
        return len(self.all)


class Ring(Window):
    """Holds four windows of slots and the length of the text; entries behind the window are spare."""

    SLOTS = 4 * W

    def __init__(self):
        self.slots, self.size = [None] * self.SLOTS, 0

    def append(self, tokens):
        for token in tokens:
            self.slots[self.size % self.SLOTS] = token
            self.size += 1

    def crop(self, length):
        self.size = length

    def __iter__(self):
        return iter([self.slots[place % self.SLOTS] for place in range(max(self.size - W, 0), self.size)])

    def __len__(self):
        return min(self.size, W)


class GrowsPast(Window):
    """Trims for one new token where several came."""

    def __init__(self):
        self.held = []
        super().__init__()

    def append(self, tokens):
        self.all += list(tokens)
        self.held = (self.held[1:] if len(self.held) >= W else self.held) + list(tokens)

    def crop(self, length):
        cut = len(self.all) - length
        del self.all[length:]
        if cut:
            del self.held[-cut:]

    def __iter__(self):
        return iter(self.held)


class CutByLength(Ring):
    """Cuts the ring at the logical length, as if its slots were in order."""

    def __iter__(self):
        return iter([slot for slot in self.slots[: self.size] if slot is not None][-W:])


class NoSpare(Ring):
    """A full window has no room for what a rejection gives back."""

    SLOTS = W


class WindowOfSeven(Window):
    def __iter__(self):
        return iter(self.all[1 - W :])


@pytest.mark.parametrize("make", [Window, Ring])
def test_a_right_window_holds_with_either_length(make):
    check_cache(make, CacheOperations(length=len), window=W)


@pytest.mark.parametrize("make", [GrowsPast, CutByLength, NoSpare, WindowOfSeven])
def test_a_wrong_window_is_refuted(make):
    with pytest.raises(SpeculationRefuted, match="holds"):
        check_cache(make, window=W)


class State:
    """A decaying sum, which checkpoints each state of the last append."""

    def __init__(self):
        self.states = [np.zeros(2)]
        self.size = 0

    def append(self, tokens):
        self.states = [self.states[-1]]
        self.start = self.size
        for token in tokens:
            self.states.append(self.states[-1] * 0.9 + np.array([token, 1.0]))
            self.size += 1

    def crop(self, length):
        del self.states[length - self.start + 1 :]
        self.size = length

    def read(self):
        return self.states[-1]


class Halved(State):
    """Takes the length of the text back and leaves the state as it is."""

    def crop(self, length):
        self.size = length


class OneTooFar(State):
    def crop(self, length):
        del self.states[max(length - self.start, 1) :]
        self.size = length


class SharedBuffer(State):
    """The checkpoint is the buffer that is updated in place."""

    def append(self, tokens):
        super().append(tokens)
        self.states[0][:] = self.states[-1]


class Clamped(State):
    """Keeps two checkpoints."""

    def crop(self, length):
        places = max(length - self.start, len(self.states) - 3)
        del self.states[places + 1 :]
        self.size = length


def test_a_right_state_holds():
    check_cache(State, CacheOperations(read=State.read), recurrent=True)


@pytest.mark.parametrize("make", [Halved, OneTooFar, SharedBuffer, Clamped])
def test_a_wrong_state_is_refuted(make):
    with pytest.raises(SpeculationRefuted, match=r"state|raised"):
        check_cache(make, CacheOperations(read=make.read), recurrent=True)


PAGE = 64


class Paged:
    """Pages that are taken from a pool and given back when a crop empties them."""

    kept = 0

    def __init__(self):
        self.pages, self.size = [], 0

    def append(self, tokens):
        for token in tokens:
            if self.size % PAGE == 0:
                self.pages.append([None] * PAGE)
            self.pages[-1][self.size % PAGE] = token
            self.size += 1

    def crop(self, length):
        self.size = length
        del self.pages[self.needed(length) :]

    def needed(self, length):
        return -(-length // PAGE)

    def __iter__(self):
        return iter([token for page in self.pages for token in page][: self.size])


class PageTooMany(Paged):
    def needed(self, length):
        return length // PAGE + 1


class PageTooFew(Paged):
    def needed(self, length):
        return max(-(-(length - 1) // PAGE), 0)


class KeepsPages(Paged):
    """Gives no page back, and writes over what a crop left."""

    def append(self, tokens):
        for token in tokens:
            if self.size == len(self.pages) * PAGE:
                self.pages.append([None] * PAGE)
            self.pages[self.size // PAGE][self.size % PAGE] = token
            self.size += 1

    def needed(self, _):
        return len(self.pages)


WRONG = (
    GrowsPast,
    CutByLength,
    NoSpare,
    WindowOfSeven,
    Halved,
    OneTooFar,
    SharedBuffer,
    Clamped,
    PageTooMany,
    PageTooFew,
)
RIGHT = (Window, Ring, State, Paged, KeepsPages)


def test_pages():
    for make in (Paged, KeepsPages):
        check_cache(make, paged=PAGE, capacity=256)
    for make in (PageTooMany, PageTooFew):
        with pytest.raises(SpeculationRefuted):
            check_cache(make, paged=PAGE, capacity=256, checks=["pages_hold_their_tokens"])


def test_what_does_not_go_together_is_said():
    with pytest.raises(ValueError, match="recurrent"):
        check_cache(State, recurrent=True, window=4)
    with pytest.raises(ValueError, match="capacity"):
        check_cache(Paged, paged=64)


@pytest.mark.parametrize("fork", [None, copy.deepcopy])
def test_a_ring_holds_for_as_many_drafts_as_it_has_spare_slots(fork):
    class Tight(Ring):
        SLOTS = W + 4

    operations = CacheOperations(fork=fork)
    check_cache(Tight, operations, window=W, gamma=4)
    for gamma in (5, None):
        with pytest.raises(SpeculationRefuted):
            check_cache(Tight, operations, window=W, gamma=gamma)


def test_a_cache_of_one_draft_a_round_is_cropped_by_one_token():
    class Tight(Ring):
        SLOTS = W + 1

    check_cache(Tight, window=W, gamma=1)
    with pytest.raises(SpeculationRefuted):
        check_cache(Tight, window=W, gamma=2)


class Snapshots(list):
    """Undoes at most ``most`` tokens, of which it has snapshots."""

    most = 20

    def append(self, tokens):
        self.extend(tokens)

    def crop(self, length):
        if len(self) - length > self.most:
            raise IndexError("no snapshot is left")
        del self[length:]


class LosesOne(Snapshots):
    most = 99

    def crop(self, length):
        super().crop(max(length - 1, 0))


def test_a_cache_that_undoes_fewer_tokens_than_fit_is_told_of_gamma():
    operations = CacheOperations(Snapshots.append, Snapshots.crop)
    check_cache(Snapshots, operations, gamma=8)
    with pytest.raises(SpeculationRefuted, match="state their largest number by gamma="):
        check_cache(Snapshots, operations)
    with pytest.raises(SpeculationRefuted) as refuted:
        check_cache(LosesOne, CacheOperations(LosesOne.append, LosesOne.crop))
    assert "gamma" not in str(refuted.value)
