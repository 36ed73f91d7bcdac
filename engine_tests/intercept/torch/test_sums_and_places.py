"""Sums at places, products of matrices and random places: a right sampler is decided, and its twin refuted."""

from __future__ import annotations

import math

import pytest
import torch

from specverify.intercept.refusals import NeedsValue
from test_support.idioms.idiom import coin
from test_support.idioms.world import distance
from test_support.intercept.compositions import answered_law

NEAR, FAR = 1e-6, 0.005
FIRST = torch.tensor([0, 0, 1])


def uniforms(*sizes):
    return torch.rand(sizes, dtype=torch.float64)


def as_a_sum(ratio):
    """Return the number below which the sum of two uniforms is with this probability, at most one half of the time."""
    ratio = min(1.0, float(ratio))
    return math.sqrt(2 * ratio) if ratio < 0.5 else 2 - math.sqrt(2 * (1 - ratio))


@coin("torch", wrong=("as_a_sum(p / q)", "p / q"))
def scatter_add(p, q):
    """Two uniforms are added at one place."""
    return bool(torch.zeros(2, dtype=p.dtype).scatter_add(0, FIRST, uniforms(3))[0] < as_a_sum(p / q))


@coin("torch", wrong=("[1] < p / q", "[0] < p / q"))
def scatter_add_in_place(p, q):
    """The place to which one uniform alone is added."""
    return bool(torch.zeros(2, dtype=p.dtype).scatter_add_(0, FIRST, uniforms(3))[1] < p / q)


@coin("torch", wrong=("alpha=0.5", "alpha=1"))
def index_add(p, q):
    """Halves of two uniforms are added at one place."""
    total = torch.zeros(2, dtype=p.dtype).index_add(0, FIRST[:2], uniforms(2), alpha=0.5)
    return bool(total[0] < as_a_sum(p / q) / 2)


@coin("torch", wrong=("[0, 1]", "[1, 0]"))
def upper_triangle(p, q):
    """An element of ``triu`` that is kept; the twin takes one that is 0."""
    return bool(uniforms(2, 2).triu()[0, 1] < p / q)


@coin("torch", wrong=("[1, 1]", "[0, 1]"))
def diagonal_matrix(p, q):
    """``diag_embed`` of two uniforms."""
    return bool(torch.diag_embed(uniforms(2))[1, 1] < p / q)


@coin("torch", wrong=("(p / q).log1p()", "(p / q).log()"))
def log_of_a_sum(p, q):
    """``logsumexp`` of the logarithms of 1 and a uniform."""
    return bool(torch.logsumexp(torch.stack([uniforms().log(), torch.zeros(())]), 0) < (p / q).log1p())


@coin("torch", wrong=("u < keep]", "u < keep * keep]"))
def random_mask(p, q):
    """A mask of random numbers selects among them; their number is 1 or 0."""
    u, keep = uniforms(1), min(1.0, float(p / q))
    return u[u < keep].numel() > 0


@coin("torch", wrong=("u[place]", "u.amax()"))
def random_place(p, q):
    """A place that is drawn selects one of two uniforms."""
    u, place = uniforms(2), torch.randint(2, ())
    return bool(u[place] < p / q)


@coin("torch", wrong=("0.5) < below", "1.0) < below"))
def quantile(p, q):
    """The median of three by ``quantile``."""
    below = 0.5 - math.sin(math.asin(1 - 2 * min(1.0, float(p / q))) / 3)
    return bool(torch.quantile(uniforms(3), 0.5) < below)


@coin("torch", wrong=("beta=0", "beta=1"))
def product_of_matrices(p, q):
    """``addmm``, of which ``beta`` leaves out the summand."""
    ones = torch.ones(2, 1, dtype=p.dtype)
    return bool(torch.addmm(ones[:1], uniforms(1, 2), ones, beta=0) < as_a_sum(p / q))


@coin("torch", wrong=('"bi,bi->b"', '"bi,bj->b"'))
def sum_of_einstein(p, q):
    """``einsum`` by a product of batches of matrices."""
    share = torch.tensor([[1.0, 0.0]], dtype=p.dtype)
    return bool(torch.einsum("bi,bi->b", uniforms(1, 2), share) < p / q)


@coin("torch", wrong=("torch.tensor([1])", "torch.tensor([0])"))
def filled_index(p, q):
    """``index_fill`` of the other one of two uniforms."""
    return bool(uniforms(2).index_fill(0, torch.tensor([1]), 0.0)[0] < p / q)


IDIOMS = sorted(
    (value for value in list(globals().values()) if hasattr(value, "mistake")), key=lambda idiom: idiom.place
)
named = pytest.mark.parametrize("idiom", IDIOMS, ids=[idiom.name for idiom in IDIOMS])


@named
def test_the_right_one_has_the_law_and_its_twin_has_not(idiom):
    assert distance(idiom, idiom.right) < NEAR
    assert distance(idiom, idiom.wrong) > FAR


def share_of(compute):
    return answered_law(lambda: compute().reshape(-1)).get((1,), 0)


@pytest.mark.parametrize(
    ("compute", "share"),
    [
        (lambda u: torch.logsumexp(u + 800, 0) < 900, 1),
        (lambda u: torch.logaddexp(u[0], torch.tensor(800.0)) > 900, 0),
        (lambda u: torch.logaddexp(u[0], torch.tensor(math.inf)) > 900, 1),
        (lambda u: torch.logaddexp(u[0], torch.tensor(-math.inf)) < 0.25, 0.25),
        (lambda u: torch.triu(u.reshape(1, 2), 1)[0, 0] == 0, 1),
        (lambda u: torch.rand(3).scatter_add(0, torch.tensor([0, 0]), torch.ones(2))[0] < 2.25, 0.25),
    ],
)
def test_what_does_not_overflow_and_what_is_not_moved(compute, share):
    assert share_of(lambda: compute(uniforms(2))) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    "compute",
    [
        lambda u: torch.zeros(2).bfloat16().scatter_add(0, FIRST[:2], u.bfloat16())[0] < 0.25,
        lambda u: torch.logaddexp(-u.log().neg().log()[0], torch.tensor(800.0)) < 1,
        lambda u: torch.diag_embed(u.repeat(1000))[0, 0] < 0.25,
    ],
)
def test_what_has_no_rule_is_refused(compute):
    with pytest.raises(NeedsValue):
        share_of(lambda: compute(uniforms(2)))
