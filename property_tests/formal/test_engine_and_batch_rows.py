"""Rows of engines, batches, old responses and keys have the joint law of their programs in ``proofs/``."""

from __future__ import annotations

from fractions import Fraction

import pytest

from property_tests.formal.test_rows_are_the_programs_of_the_theories import (
    PROMPT,
    best,
    disagreements,
    random_models,
    verified,
)
from reference import as_pmf
from reference.algorithms.fly import top_entropy
from reference.algorithms.relaxed_acceptance import is_near, thinking
from reference.algorithms.watermarked import reweighted
from reference.batches import best_slots, of_the_draft
from reference.types import chain as chain_draft
from test_support.formal import engine_programs as engines
from test_support.formal import theory_programs as theory

TABLES = 6
"""Random pairs of models for each case."""
FEW = {"lockstep-batch": 4, "lockstep-batch of longer blocks": 1}
"""The same for the cases that take seconds."""
HALF = Fraction(1, 2)
BESIDE = (1, 0)


def deferring(p, q, eos, window=1):
    def excused(c, ds, up, i):
        row = p(c + ds[:i])
        behind = up[i + 1 : i + 1 + window]
        return row[ds[i]] > 0 and top_entropy(as_pmf(row)) >= HALF and len(behind) == window and all(behind)

    return theory.block_round(verified(p, q, 3), lambda c, ds: engines.deferring_judge(p, q, excused, c, ds))


def relaxed(p, q, eos, delta=Fraction(2, 5)):
    def near(c, ks, d):
        return is_near(as_pmf(p(c + ks)), d, 2, delta if thinking(c, 0, 1) else 0)

    step = engines.relaxed_step((best(q), best(p)), near, 2)
    return lambda s, n, c: theory.ret(step(s, n, c))


def old_response(p, q, eos, lenience=Fraction(2)):
    return engines.response_round(eos, p, q, lenience)


def other_block(q, gamma):
    return lambda s: theory.propose(verified(None, q, gamma), gamma, None, BESIDE, ())


def scheduled(p, q, eos, confidence=of_the_draft):
    plan = best_slots(2, confidence)

    def slots(c, ds):
        return chain_draft(ds, tuple(as_pmf(q(c + ds[:i])) for i in range(len(ds))))

    def room(c, ds, other):
        return plan((slots(c, ds), slots(BESIDE, other)))[0]

    return engines.scheduled_round(verified(p, q, 2), other_block(q, 2), room)


def lockstep(gamma, length=lambda result: len(result[0]) + 1):
    def round_(p, q, eos):
        own = verified(p, q, gamma)

        def others(s):
            return theory.bind(other_block(q, gamma)(s), lambda ds: theory.judge(own, None, BESIDE, (), ds))

        return engines.cut_round(others, length, theory.chain_round(own))

    return round_


KEYS = (HALF, HALF)


def strength(p, q, eos):
    return engines.keyed_round(KEYS, engines.two_orders, 2, p, q, engines.strength_rule(engines.two_orders, p, q))


def efficiency(p, q, eos):
    return engines.keyed_round(
        KEYS, engines.two_orders, 2, p, q, engines.efficiency_rule(KEYS, engines.two_orders, p, q)
    )


PROGRAMS = {
    "fly-vllm": ({"window": 1, "threshold": 0.5, "gamma": 3}, deferring, None),
    "relaxed-acceptance": ({"top": 2, "delta": Fraction(2, 5), "begin": 0, "end": 1, "gamma": 2}, relaxed, None),
    "spec-rl": ({"lenience": 2}, old_response, False),
    "scheduled-by-draft": ({"gamma": 2, "budget": 2, "beside": BESIDE}, scheduled, None),
    "lockstep-batch": ({"gamma": 1, "beside": BESIDE}, lockstep(1), None),
    "lockstep-batch of longer blocks": ({"gamma": 2, "beside": BESIDE}, lockstep(2), None),
    "watermarked of full strength": ({"keep": "strength", "gamma": 2}, strength, None),
    "watermarked of full efficiency": ({"keep": "efficiency", "gamma": 2}, efficiency, None),
}
"""Row, perhaps at two options -> its options, the round of its program, and the state that it starts in."""


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_row_has_the_joint_law_of_its_program(name):
    assert disagreements(name, *PROGRAMS[name], FEW.get(name, TABLES)) == []


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("fly-vllm", lambda p, q, eos: deferring(p, q, eos, window=2)),
        ("relaxed-acceptance", lambda p, q, eos: relaxed(p, q, eos, delta=1)),
        ("spec-rl", lambda p, q, eos: old_response(p, q, eos, lenience=Fraction(1))),
        ("scheduled-by-draft", lambda p, q, eos: scheduled(p, q, eos, confidence=lambda q, token: q.max())),
        ("lockstep-batch", lockstep(1, length=lambda result: 2)),
        ("watermarked of full strength", efficiency),
    ],
)
def test_another_program_is_told_apart(name, wrong):
    options, _, start = PROGRAMS[name]
    assert disagreements(name, options, wrong, start, FEW.get(name, TABLES))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_reweighting_of_the_row_is_that_of_two_orders_and_averages_out(size):
    for seed in range(TABLES):
        for model in random_models(f"reweighted {seed}", size):
            r = model(PROMPT)
            rows = [engines.two_orders(key, r) for key in range(2)]
            assert rows == [tuple(reweighted(as_pmf(r), key).tolist()) for key in range(2)]
            assert tuple(sum(column) / 2 for column in zip(*rows, strict=True)) == r
