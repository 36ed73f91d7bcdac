"""Sampling functions: the parameter that gets the seed."""

from __future__ import annotations

import inspect

import pytest

from specverify.subjects.sampler import with_seed_first


def first(seed, n):
    return seed, n


def last(n, seed=None):
    return seed, n


def between(n, seed, prefix):
    return seed, n, prefix


def by_name(n_samples, *, rng_seed):
    return rng_seed, n_samples


@pytest.mark.parametrize("sample", [first, last, by_name])
def test_the_parameter_named_as_a_seed_gets_the_seed(sample):
    called = with_seed_first(sample)
    assert called(7, 32) == (7, 32)
    inspect.signature(called).bind(7, 32)


def test_further_arguments_follow_in_their_order():
    assert with_seed_first(between)(7, 32, (0,)) == (7, 32, (0,))


@pytest.mark.parametrize("sample", [first, lambda n, m: 0, lambda n, seed, seeds: 0, len])
def test_another_sampler_is_called_as_it_is(sample):
    assert with_seed_first(sample) is sample
