"""Verifiers that ask what their random numbers are made of, and are right only while the numbers are unknown ones.

Each is run as it is, too, by what it draws itself: there it rejects drafts that it should keep, or the other way round.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import CHECKS
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.verifier import verifier_subject

CHECK = tuple(check for check in CHECKS if check.name == "program_is_its_draws")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _new_generator(monkeypatch):
    """Make the generator anew: a search finds it beside all that tests keep out."""
    monkeypatch.setattr(sys.modules[__name__], "RNG", np.random.default_rng(0))


def of_coin(uniform):
    """Return the rejection sampler whose coins are made by a function without arguments."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not bool(uniform() < p[i, token] / q[i, token]):
                left = np.maximum(p[i] - q[i], 0)
                row = left if left.any() else p[i]
                return [*draft_tokens[:i].tolist(), random.choices(range(len(row)), row.tolist())[0]]
        return [*draft_tokens.tolist(), random.choices(range(p.shape[1]), p[-1].tolist())[0]]

    return verify


def of_its_type():
    u = random.random()
    return u**1.3 if type(u) is float else u


def of_its_attributes():
    u = random.random()
    return u**1.3 if hasattr(u, "hex") and not hasattr(u, "unknown") else u


def of_what_it_shows():
    u = random.random()
    return u if "Symbolic" in repr(u) else u**1.3


def of_its_size():
    u = random.random()
    return u**1.3 if sys.getsizeof(u) == sys.getsizeof(0.5) else u


def of_a_type_of_tensors():
    u = torch.rand(())
    return (u**1.3 if type(u) is torch.Tensor else u).item()


def of_a_type_of_arrays():
    row = RNG.random(2)
    return row[0] ** 1.3 if type(row) is np.ndarray else row[0]


def of_the_memory_of_an_array():
    row = RNG.random(2)
    return row[0] ** 1.3 if row.flags.owndata else row[0]


def of_clocks():
    clock = random.expovariate(1.0)
    return 0.5 if type(clock) is float else np.exp(-clock)


LOOKING = [value for name, value in list(globals().items()) if name.startswith("of_") and name != "of_coin"]


def asked(verify):
    return next(iter(verify_subject(verifier_subject(verify, "verify", (2,)), Checklist(CHECK, quick=True))))


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("uniform", LOOKING)
def test_a_verifier_that_looks_at_its_numbers_is_unknown_with_the_reason_and_the_way_out(uniform):
    verdict = asked(of_coin(uniform))
    assert verdict.status is Status.UNKNOWN
    assert verdict.figures["function_of_draws"] is False
    assert "for its random numbers it" in verdict.statement or "with the same random numbers" in verdict.statement
    assert verdict.statement.endswith("let samples decide (sampled=True)")


def of_an_expected_type():
    row = RNG.random(2)
    if row.dtype != np.float64:
        raise TypeError("float64 is expected")
    return row[0]


def of_the_limits_of_its_type():
    row = RNG.random(2)
    return np.maximum(row, np.finfo(row.dtype).tiny)[0]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("uniform", [of_an_expected_type, of_the_limits_of_its_type])
def test_a_right_verifier_that_raises_for_unknown_numbers_alone_is_no_unusable_one(uniform):
    verdict = asked(of_coin(uniform))
    assert verdict.status is Status.UNKNOWN
    assert "it raises" in verdict.statement
    assert "for its random numbers it continues" in verdict.statement


@pytest.mark.thorough
def test_a_verifier_that_raises_for_numbers_as_well_is_unusable():
    def wrong():
        if random.random() < 1:
            raise ValueError("no coin")

    verdict = asked(of_coin(wrong))
    assert verdict.status is Status.UNUSABLE
    assert "ValueError: no coin" in verdict.statement


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(
    "uniform",
    [
        lambda: random.random() + 0.0,
        lambda: RNG.random(3)[::-1][0],
        lambda: torch.rand(2, dtype=torch.float64)[1].item() + 0.0,
        lambda: np.exp(-random.expovariate(1.0)),
        lambda: float(np.exp(-1)) if isinstance(random.random(), int) else random.random(),
        lambda: random.getrandbits(53) / 2**53,
    ],
)
def test_a_verifier_that_does_not_is_run_again_and_holds(uniform):
    assert asked(of_coin(uniform)).status is Status.HOLDS


@pytest.mark.thorough
def test_a_race_is_run_again_with_clocks_that_ring_in_its_order():
    def raced(p, q, draft_tokens):
        weights = torch.from_numpy(np.ascontiguousarray(p[-1]))
        clocks = torch.empty_like(weights).exponential_()
        return [*draft_tokens.tolist(), int((weights / clocks).argmax())]

    def raced_otherwise(p, q, draft_tokens):
        weights = torch.from_numpy(np.ascontiguousarray(p[-1]))
        clocks = torch.empty_like(weights).exponential_()
        scores = weights / clocks if type(clocks) is not torch.Tensor else clocks / weights
        return [*draft_tokens.tolist(), int(scores.argmax())]

    assert asked(raced).status is Status.HOLDS
    assert asked(raced_otherwise).status is Status.UNKNOWN
