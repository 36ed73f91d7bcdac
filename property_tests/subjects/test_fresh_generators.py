"""Generators that a verifier or an engine takes as an argument: of the right library, and new in every call."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.subjects.fresh_generators import with_generator
from specverify.testing import Made, check_verifier
from test_support.subjects.engine_laws import law_verdict
from test_support.verifiers.one_round import decided, drawn, residual, unchanged_p


def by_name(p, q, draft_tokens, rng):
    return rng


def of_torch(p, q, draft_tokens, generator):
    torch.rand((), generator=generator)
    return generator


def handed_on(p, q, draft_tokens, gen):
    return of_torch(p, q, draft_tokens, gen)


def annotated(p, q, draft_tokens, source: torch.Generator | None):
    return source


def legacy(p, q, draft_tokens, source: np.random.RandomState):
    return source


def of_python(p, q, draft_tokens, *, rng: random.Random):
    return rng


KINDS = {
    by_name: np.random.Generator,
    of_torch: torch.Generator,
    handed_on: torch.Generator,
    annotated: torch.Generator,
    legacy: np.random.RandomState,
    of_python: random.Random,
}


def state_of(generator):
    if isinstance(generator, torch.Generator):
        return generator.get_state().tolist()
    return generator.random()


@pytest.mark.parametrize(("verify", "kind"), KINDS.items(), ids=lambda one: one.__name__)
def test_each_call_gets_a_new_generator_of_its_library(verify, kind):
    made = [with_generator(verify)(0, 0, 0) for _ in range(2)]
    assert all(type(one) is kind for one in made)
    assert state_of(made[0]) != state_of(made[1])


def test_a_function_with_a_generator_of_its_own_is_unchanged():
    def has_one(p, q, draft_tokens, rng=None):
        return rng

    def has_none(p, q, draft_tokens):
        return draft_tokens

    assert with_generator(has_one) is has_one
    assert with_generator(has_none) is has_none


def verify_with(replace):
    def verify(p, q, draft_tokens, rng):
        accepted, token = decided(p, q, draft_tokens, replace, rng)
        return [*accepted, token]

    return verify


def engine_with(replace):
    def make(scenario):
        def decode(prompt, rng):
            text = list(prompt)
            while len(text) < len(prompt) + scenario.horizon:
                p, q = (np.asarray(model(tuple(text)), dtype=float) for model in (scenario.target, scenario.draft))
                token = drawn(q, rng)
                text.append(token if rng.random() < p[token] / q[token] else drawn(replace(p, q), rng))
            return text[len(prompt) :]

        return Made(decode)

    return make


def verdict_of_verifier(verify):
    [verdict] = check_verifier(verify, checks=["law_is_target"], quick=True, on_fail=None)
    return verdict


def verdict_of_engine(make):
    return law_verdict(make, SCENARIOS[:3])


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("verdict_of", "subject"), [(verdict_of_verifier, verify_with), (verdict_of_engine, engine_with)]
)
def test_draws_from_a_generator_that_is_an_argument_are_examined(verdict_of, subject):
    assert verdict_of(subject(residual)).status is Status.HOLDS
    wrong = verdict_of(subject(unchanged_p))
    assert wrong.status is Status.REFUTED
    assert "replaced by a draw from p" in wrong.counterexample.fault
