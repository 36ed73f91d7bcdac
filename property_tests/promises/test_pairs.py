"""Promises that pairs of runs decide, broken and kept by engines of unlike kinds."""

import random
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from specverify.mutants.promising import DRAFTS_UNSEEDED, SEEDS, seeded_engine
from specverify.promises.pairs import OF_PROMISE, PROMISES
from specverify.testing import Made, check_engine, check_sampler

CHECK = {name: promise.check for name, promise in OF_PROMISE.items()}


def verdict(make, promise, **how):
    found = check_engine(make, promises={promise}, checks=[CHECK[promise]], on_fail=None, quick=True, **how)
    return next(v for v in found if v.check == CHECK[promise])


@pytest.mark.parametrize("fault", SEEDS)
def test_a_broken_promise_is_refuted_by_a_pair(fault):
    found = verdict(partial(seeded_engine, fault), SEEDS[fault][0])
    assert found.status == "refuted", found
    assert found.counterexample.fault.startswith(OF_PROMISE[SEEDS[fault][0]].fault)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("promise", PROMISES)
def test_the_right_engine_keeps_every_promise(promise):
    assert verdict(partial(seeded_engine, ""), promise).status == "holds"


@pytest.mark.thorough
def test_drafts_may_be_drawn_without_a_seed_where_the_text_does_not_depend_on_them():
    assert verdict(partial(seeded_engine, DRAFTS_UNSEEDED), "seed").status == "holds"


def inverse(u, pmf):
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


def agreeing(scenario, uniforms, drafts=True):
    """Return new tokens by agreement, the uniforms in the order of the tokens."""
    new = ()
    while len(new) < scenario.horizon:
        text = scenario.prompt + new
        draft = int(np.argmax(scenario.draft(text))) if drafts else None
        new += (inverse(uniforms(), scenario.target(text)),)
        if draft == new[-1]:
            new += (inverse(uniforms(), scenario.target((*text, draft))),)
    return new[: scenario.horizon]


def by_global_random(s):
    return Made(lambda: agreeing(s, random.random), lambda: agreeing(s, random.random, drafts=False))


def by_torch_generator(s):
    def decode(drafts, seed):
        generator = torch.Generator().manual_seed(seed)
        return agreeing(s, lambda: torch.rand((), generator=generator, dtype=torch.float64).item(), drafts)

    return Made(lambda seed: decode(True, seed), lambda seed: decode(False, seed))


def by_parameters(s):
    def decode(drafts, params):
        rng = np.random.default_rng(params["seed"])
        return agreeing(s, rng.random, drafts)

    return Made(lambda prompt, params: decode(True, params), lambda prompt, params: decode(False, params))


def by_optional_seed(s):
    def decode(prompt, seed=None, drafts=True):
        rng = np.random.default_rng(seed)
        return agreeing(SimpleNamespace(**{**s._asdict(), "prompt": tuple(prompt)}), rng.random, drafts)

    return Made(decode, partial(decode, drafts=False))


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("make", [by_global_random, by_torch_generator, by_parameters, by_optional_seed])
@pytest.mark.parametrize("promise", ["seed", "seed-as-plain"])
def test_right_engines_of_unlike_kinds_hold(make, promise):
    assert verdict(make, promise).status == "holds"


def coins_elsewhere(s):
    """The seed is that of torch, and NumPy draws the tokens."""

    def decode(seed):
        torch.manual_seed(seed)
        return agreeing(s, np.random.random)

    return Made(decode)


def made_without_seed(s):
    return Made(lambda seed: agreeing(s, np.random.default_rng().random))


def kept_generator(s):
    kept = []

    def decode(seed):
        kept[:] = kept or [np.random.default_rng(seed)]
        return agreeing(s, kept[0].random)

    return Made(decode)


def seeds_of_two_kinds(s):
    """Where the seed is even it is not passed on."""

    def decode(seed):
        return agreeing(s, np.random.default_rng(seed if seed % 2 else None).random)

    return Made(decode)


@pytest.mark.parametrize("make", [coins_elsewhere, made_without_seed, kept_generator, seeds_of_two_kinds])
def test_wrong_engines_of_unlike_kinds_are_refuted(make):
    assert verdict(make, "seed").status == "refuted"


T = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])


def sampler(seed_of, drafts=True):
    scenario = SimpleNamespace(
        prompt=(0,), horizon=2, target=lambda text: T[text[-1]], draft=lambda text: np.array([0.1, 0.2, 0.7])
    )

    def sample(seed, n):
        return [agreeing(scenario, np.random.default_rng(seed_of(seed, row)).random, drafts) for row in range(n)]

    return sample


def test_samplers_are_judged_by_rows_of_one_seed():
    plain = sampler(lambda seed, row: (seed, row), drafts=False)
    right = sampler(lambda seed, row: (seed, row))
    how = {"law": plain, "tv": 0.3, "promises": {"seed", "seed-as-plain"}, "on_fail": None}
    assert {v.status for v in check_sampler(right, **how)} == {"holds"}
    for seed_of, check in (
        (lambda seed, row: None, "seed_repeats"),
        (lambda seed, row: (seed, row, 1), "seed_as_plain"),
    ):
        found = check_sampler(sampler(seed_of), **how)
        assert check in {v.check for v in found if v.status == "refuted"}


def test_a_promise_that_cannot_be_compared_is_unknown():
    found = verdict(lambda s: lambda: agreeing(s, random.random), "seed-as-plain")
    assert found.status == "unknown"
    assert "no call without speculation" in found.statement


def test_names_of_promises_are_looked_at():
    with pytest.raises(ValueError, match="a promise"):
        check_engine(by_global_random, promises={"sead"})
    with pytest.raises(ValueError, match="law is "):
        check_sampler(sampler(lambda seed, row: seed), law={(0, 0): 1}, promises={"seed-as-plain"})
