"""A forward pass that is remembered is the one that would be computed: of the same inputs, cache and what is beside."""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.torch.passes import Memory, Passes, remembered


class Output(dict):
    """What a model returns: a dict with attributes."""

    __getattr__ = dict.__getitem__


class State:
    """A cache: the sum of what was fed."""

    def __init__(self):
        """Nothing has been fed."""
        self.total = torch.zeros(1, dtype=torch.int64)


class Model:
    """Returns the sum of all it was fed, times its depth, and keeps the sum in a cache called ``state``."""

    def __init__(self):
        """One layer, no pass yet."""
        self.depth, self.computed = 1, 0

    def forward(self, ids, state=None):
        """Return ``logits`` of shape ``[1]`` and the cache."""
        self.computed += 1
        state = State() if state is None else state
        state.total = state.total + ids.sum()
        return Output(logits=state.total * self.depth, state=state)


PASSES = Passes("state", lambda model: model.depth)


def by_name(model, ids, state):
    return model.forward(ids=ids, state=state)


def by_place(model, ids, state):
    return model.forward(ids, state)


def answers(passes, feed, *depths):
    """Feed 2 and then 3 to a new cache, once for each depth; return the answers, and how many passes were computed."""
    model, found = Model(), []
    with remembered(model, Memory({}, [0]), passes):
        for model.depth in depths:
            state = State()
            found += [int(feed(model, torch.tensor([token]), state).logits) for token in (2, 3)]
    return found, model.computed


@pytest.mark.parametrize("feed", [by_name, by_place])
def test_a_cache_is_as_the_pass_left_it_however_it_was_handed_in(feed):
    assert answers(PASSES, feed, 1, 1) == ([2, 5, 2, 5], 2)


def test_what_a_pass_depends_on_beside_its_inputs_is_looked_at():
    assert answers(PASSES, by_name, 1, 2) == ([2, 5, 4, 10], 4)


def test_without_it_an_old_pass_answers():
    """The control of the test above."""
    assert answers(Passes("state"), by_name, 1, 2) == ([2, 5, 2, 5], 2)


def test_an_argument_given_twice_is_refused_as_python_does_it():
    model = Model()
    with remembered(model, Memory({}, [0]), PASSES), pytest.raises(TypeError, match="multiple values"):
        model.forward(torch.tensor([1]), ids=torch.tensor([1]))


class Replacing(Model):
    """Keeps its sum in another cache than the one that it was handed."""

    def forward(self, ids, state=None):
        """Return ``logits`` and a new cache."""
        made = State()
        made.total = state.total.clone()
        return super().forward(ids, made)


def test_a_pass_that_returns_another_cache_than_it_was_handed_is_not_remembered():
    model = Replacing()
    with remembered(model, Memory({}, [0]), PASSES):
        for _ in range(2):
            first = model.forward(torch.tensor([2]), state=State())
            assert int(model.forward(torch.tensor([3]), state=first.state).logits) == 5
    assert model.computed == 4
