"""Faults at an end of a random number, by how likely they are: notes of textbook samplers, and what always refutes."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status, is_edge
from specverify.checks import Conditions, check_named
from specverify.checks.graded_edges import WIDEST, Look, is_below, probability_of
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine import engine_subject
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.given_calls import calls_subject
from specverify.testing import Call
from test_support.verifiers import samplers
from test_support.verifiers.examined import narrowed

CHECK = check_named("support_at_boundary_draws")
LAW = check_named("law_is_target")


SHAPES = ("zeros", "just_below")


def verdict_of(verify, edge=None, check=CHECK, shapes=SHAPES):
    """Return the verdict in a few scenarios of float64 rows, which are named by their shape."""

    def is_among_few(situation):
        here = situation.scenario
        return here.shape in shapes and here.horizon == 3 and here.vocabulary > 2 and not here.float32

    subject = verifier_subject_of(verify, "verify", None, (2,))
    conditions = Conditions() if edge is None else Conditions(edge=edge)
    return run_check(subject, narrowed(check, is_among_few), Checklist((check,), conditions))


# Textbook samplers


def by_choice(p, q, draft_tokens, residual=lambda p, q: np.maximum(p - q, 0)):
    """NumPy: the positive part of p - q divided by its sum, and ``choice``."""
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens):
        if rng.random() < min(1, p[i, token] / q[i, token]):
            continue
        left = residual(p[i], q[i])
        return [*draft_tokens[:i], rng.choice(len(left), p=left / left.sum())]
    return [*draft_tokens, rng.choice(p.shape[-1], p=p[-1])]


def by_searching(p, q, draft_tokens):
    """NumPy: a coin that may be the ratio, and a search of cumulated probabilities."""
    rng = np.random.default_rng()

    def sample(weights):
        return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(), side="right"))

    for i, token in enumerate(draft_tokens):
        if rng.random() <= p[i, token] / q[i, token]:
            continue
        left = np.maximum(p[i] - q[i], 0)
        return [*draft_tokens[:i], sample(left if left.any() else p[i])]
    return [*draft_tokens, sample(p[-1])]


def in_torch(p, q, draft_tokens, dtype=torch.float64, keeps=samplers.not_above):
    """Torch: coins of one dtype, and ``multinomial`` of a residual that is looked at."""
    coins = torch.rand(len(draft_tokens), dtype=dtype)
    for i, token in enumerate(draft_tokens):
        if not keeps(coins[i], p[i, token] / q[i, token]):
            return torch.cat([draft_tokens[:i], torch.multinomial(samplers.owed(p[i], q[i]), 1)])
    return torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])


def in_torch_float32(p, q, draft_tokens):
    return in_torch(p, q, draft_tokens, torch.float32, samplers.below)


@pytest.mark.parametrize("verify", [by_choice, by_searching, in_torch])
def test_a_textbook_sampler_is_green_beside_a_note(verify):
    verdict = verdict_of(verify)
    assert verdict.status is Status.HOLDS
    edges = verdict.figures["edges"]
    assert edges
    assert all(2.0**-53 <= edge["probability"] <= 2.0**-49 for edge in edges)
    assert all(" at test_graded_edges.py:" in edge["when"] for edge in edges)
    assert "; edge: " in verdict.statement
    assert ": at most once in " in verdict.statement


@pytest.mark.parametrize("verify", [by_choice, in_torch])
def test_with_an_edge_of_0_every_edge_refutes(verify):
    verdict = verdict_of(verify, 0.0)
    assert verdict.status is Status.REFUTED
    assert is_edge(verdict)
    assert 2.0**-53 <= verdict.figures["edge"] <= 2.0**-49


def test_a_sampler_without_edges_has_no_note():
    verdict = verdict_of(in_torch_float32)
    assert verdict.status is Status.HOLDS
    assert "edges" not in verdict.figures


def from_p(p, q, draft_tokens):
    """Wrong: a rejected draft is replaced from p."""
    return by_choice(p, q, draft_tokens, residual=lambda p, q: p)


def test_a_wrong_law_is_refuted_whatever_edges_are_tolerated():
    verdict = verdict_of(from_p, 0.9, LAW, ("generic",))
    assert verdict.status is Status.REFUTED
    assert not is_edge(verdict)


# Coins of few bits


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)], ids=str)
def test_an_inclusive_coin_of_few_bits_refutes(dtype, bits):
    def verify(p, q, draft_tokens):
        return in_torch(p, q, draft_tokens, dtype)

    verdict = verdict_of(verify, shapes=("zeros",))
    assert verdict.status is Status.REFUTED
    assert 2.0**-bits <= verdict.figures["edge"] <= 8 * 2.0**-bits
    tolerated = verdict_of(verify, 1e-3, shapes=("zeros",))
    assert tolerated.status is (Status.REFUTED if dtype is torch.bfloat16 else Status.HOLDS)


def test_a_coin_that_is_rounded_refutes_as_often_as_it_is():
    """The draw has 53 bits, the coin 24."""

    def verify(p, q, draft_tokens):
        coin = np.float32(np.random.default_rng().random())
        return [0] if coin >= 1 else in_torch_float32(*map(torch.as_tensor, (p, q, draft_tokens))).tolist()

    verdict = verdict_of(verify, shapes=("zeros",))
    assert verdict.status is Status.REFUTED
    assert 2.0**-25 <= verdict.figures["edge"] <= 2.0**-23


def with_a_summand(summand):
    """Return a verifier that divides by q plus a small number, and cannot draw from an empty residual."""

    def verify(p, q, draft_tokens):
        rng = np.random.default_rng()
        for i, token in enumerate(draft_tokens):
            if rng.random() >= p[i, token] / (q[i, token] + summand):
                left = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], rng.choice(len(left), p=left / left.sum())]
        return [*draft_tokens, rng.choice(len(p[-1]), p=p[-1])]

    return verify


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("summand", [1e-5, 1e-7])
def test_an_edge_between_two_distances_is_searched_there(summand):
    verdict = verdict_of(with_a_summand(summand))
    assert verdict.status is Status.REFUTED
    assert summand <= verdict.figures["edge"] <= 32 * summand  # the smallest q is about 1/12


# Widths


def below_a_bound(bound):
    """Return an engine whose token is forbidden where a double is below a bound."""
    return lambda: [0] if random.random() < bound else [1]


def of_engine(decode, edge):
    return run_check(engine_subject(decode, {(1,): 1.0}, "engine"), CHECK, Checklist((CHECK,), Conditions(edge=edge)))


@pytest.mark.parametrize("exponent", [52, 44, 35, 31])
def test_the_probability_of_an_engine_s_edge_bounds_the_interval(exponent):
    verdict = of_engine(below_a_bound(2.0**-exponent), 1e-9)
    (edge,) = verdict.figures["edges"]
    assert verdict.status is Status.HOLDS
    assert 2.0**-exponent <= edge["probability"] < 1e-9
    assert of_engine(below_a_bound(2.0**-exponent), 2.0**-exponent).status is Status.REFUTED


@pytest.mark.parametrize("exponent", [29, 20, 10])
def test_an_interval_as_wide_as_the_threshold_is_never_a_note(exponent):
    verdict = of_engine(below_a_bound(2.0**-exponent), 1e-9)
    assert verdict.status is Status.REFUTED
    assert verdict.figures["edge"] >= 2.0**-exponent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_end_of_a_coarse_number_of_an_engine_is_an_edge_too(dtype):
    """The smallest step of the number is larger than the distances that are tested last."""

    def decode():
        return [1 - int(torch.rand((), dtype=dtype) <= 0)]

    end = 2.0**-24 if dtype is torch.float32 else 2.0**-11
    for edge in (4 * end, 0.1):
        verdict = of_engine(decode, edge)
        (found,) = verdict.figures["edges"]
        assert verdict.status is Status.HOLDS
        assert end <= found["probability"] < edge
    refuted = of_engine(decode, end)
    assert is_edge(refuted)
    assert refuted.figures["edge"] >= end


@pytest.mark.parametrize("bound", [2.0**-5, 0.3])
def test_a_fault_that_is_not_at_an_end_is_no_edge(bound):
    for edge in (1e-9, 0.9):
        verdict = of_engine(below_a_bound(bound), edge)
        assert verdict.status is Status.REFUTED
        assert not is_edge(verdict)


def at_largest(least):
    """Wrong: nothing is emitted where the coin is ``least`` or above."""

    def verify(p, q, draft_tokens):
        if random.random() >= least:
            return []
        return by_choice(p, q, draft_tokens, residual=lambda p, q: samplers.owed(*map(torch.tensor, (p, q))).numpy())

    return verify


@pytest.mark.parametrize(("exponent", "status"), [(45, Status.HOLDS), (28, Status.REFUTED), (4, Status.REFUTED)])
def test_the_interval_of_a_verifier_decides(exponent, status):
    verdict = verdict_of(at_largest(1 - 2.0**-exponent), shapes=("zeros",))
    assert verdict.status is status
    assert is_edge(verdict) == (exponent == 28)
    if status is Status.HOLDS:
        assert max(edge["probability"] for edge in verdict.figures["edges"]) >= 2.0**-exponent


def test_a_call_at_the_caller_s_size_is_graded_alike():
    p = np.array([[0.0, 0.5, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]])
    call = Call(p, np.full((1, 4), 0.25), np.array([0]))
    for edge, status in ((1e-9, Status.HOLDS), (0.0, Status.REFUTED)):
        subject = calls_subject(by_searching, "it", [call])
        verdict = run_check(subject, CHECK, Checklist((CHECK,), Conditions(edge=edge)))
        assert verdict.status is status
        assert is_edge(verdict) == (status is Status.REFUTED)


# How a probability is found


def interval(width, numbers=1, least=2.0**-53):
    """Return how a fault of an interval of draws is looked for, and the distances that were tried."""
    tried = []

    def look(apart):
        tried.append(apart)
        return Look(max(apart, least) < width, numbers * max(apart, least))

    return look, tried


@pytest.mark.parametrize("exponent", range(1, 54))
@pytest.mark.parametrize("numbers", [1, 5])
def test_a_probability_is_a_bound_found_in_few_looks(exponent, numbers):
    width = 2.0**-exponent
    look, tried = interval(width, numbers)
    found = probability_of(look, 2.0**-53)
    assert found >= width
    assert len(tried) <= 9
    assert (found == 1) == (width > WIDEST)
    for edge in (1e-12, 1e-9, 1e-3):
        assert not (is_below(edge, interval(width, numbers)[0], numbers, 2.0**-53) and width >= edge)


def test_what_has_no_number_at_an_end_is_no_edge():
    assert probability_of(lambda apart: Look(False, 0.0), 0.0) == 1
    assert not is_below(1e-3, lambda apart: Look(False, 0.0), 0, 0.0)
