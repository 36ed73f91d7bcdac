"""Functions with rules of their own and laws that are functions of one uniform, in torch: idioms and wrong twins.

The exact law of an idiom must fit a planned sample that torch draws by itself, and the sample of a twin that looks like
it must refute it.
"""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.statistics import FitVerdict
from test_support.intercept.drawing_calls import LINES, judged, pairs_of
from test_support.intercept.torch_under_test import TORCH

IDIOMS = """
bool(torch.sinh(torch.rand(())) < 0.3) ;; bool(torch.sinh(torch.rand(())) < 0.6)
bool(torch.asinh(torch.rand(2))[1] < 0.3) ;; bool(torch.asinh(torch.rand(2))[1] < 0.6)
bool(torch.atanh(torch.rand(())) < 0.5) ;; bool(torch.tanh(torch.rand(())) < 0.3)
bool(torch.tan(torch.rand(())) < 0.3) ;; bool(torch.tan(torch.rand(())) < 0.7)
bool(torch.asin(torch.rand(())) < 0.3) ;; bool(torch.acos(torch.rand(())) < 0.3)
bool(torch.acos(torch.rand(())) < 0.9) ;; bool(torch.asin(torch.rand(())) < 0.9)
bool(torch.erf(torch.rand(())) < 0.3) ;; bool(torch.erf(torch.rand(())) < 0.6)
bool(torch.erfc(torch.rand(())) < 0.6) ;; bool(torch.erfc(torch.rand(())) < 0.3)
bool(torch.erfinv(torch.rand(())) < 0.5) ;; bool(torch.erf(torch.rand(())) < 0.3)
bool(torch.special.ndtri(torch.rand(())) < 0.5) ;; bool(torch.special.ndtri(torch.rand(())) < 0)
bool(torch.special.ndtr(torch.randn(())) < 0.3) ;; bool(torch.special.ndtr(torch.randn(())) < 0.6)
bool(torch.rad2deg(torch.rand(())) < 20) ;; bool(torch.rad2deg(torch.rand(())) < 40)
bool(torch.deg2rad(180 * torch.rand(())) < 1) ;; bool(torch.deg2rad(180 * torch.rand(())) < 2)
bool(torch.rand(2).asinh_()[1] < 0.3) ;; bool(torch.rand(2).asinh_()[1] < 0.6)
bool(torch.randn(2)[1] < 0.5) ;; bool(torch.randn(2)[1] < 0)
bool(torch.randn(2, 2, dtype=torch.float64)[1, 0] < 0.5) ;; bool(torch.randn(2, 2, dtype=torch.float64)[1, 0] < 0)
bool(torch.randn_like(P)[2] < 0.5) ;; bool(torch.randn_like(P)[2] < 0)
bool(torch.normal(1.0, 2.0, (2,))[1] < 0.5) ;; bool(torch.normal(0.0, 2.0, (2,))[1] < 0.5 + 1)
bool(torch.normal(P, 2.0)[0] < 1) ;; bool(torch.normal(P, 0.5)[0] < 1)
bool(torch.normal(P, P)[2] < 0.5) ;; bool(torch.normal(P, P)[0] < 0.2)
bool(torch.zeros(2).normal_(1, 2)[1] < 0.5) ;; bool(torch.zeros(2).normal_(1, 2)[1] < 1.5)
bool(torch.randn(()).exp() < 2) ;; bool(torch.randn(()).exp() < 1)
bool(torch.zeros(2).log_normal_(1, 2)[1] < 2) ;; bool(torch.zeros(2).log_normal_(0, 2)[1] < 2)
bool(torch.zeros(2).cauchy_(1, 2)[1] < 0.5) ;; bool(torch.zeros(2).cauchy_(0, 2)[1] < 1)
bool(torch.poisson(P)[0] < 1) ;; bool(torch.poisson(4 * P)[0] < 1)
bool(D.Normal(0.0, 1.0).rsample() < 0.5) ;; bool(D.Normal(0.0, 1.0).rsample() < 0)
bool(D.LogNormal(0.0, 1.0).sample() < 0.5) ;; bool(D.LogNormal(0.0, 1.0).sample() < 1)
bool(D.HalfNormal(1.0).sample() < 0.5) ;; bool(D.HalfNormal(1.0).sample() < 1)
bool(D.Cauchy(0.0, 1.0).sample() < 0.5) ;; bool(D.Cauchy(0.0, 1.0).sample() < 0)
bool(init.normal_(torch.zeros(2))[1] < 0.5) ;; bool(init.normal_(torch.zeros(2))[1] < 0)
bool(init.xavier_normal_(torch.zeros(2, 2))[0, 0] < 0.5) ;; bool(init.xavier_normal_(torch.zeros(2, 2))[0, 0] < 0)
"""
PAIRS = pairs_of(IDIOMS)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("pair", PAIRS, ids=[right for right, _ in PAIRS])
def test_an_idiom_has_its_exact_law_and_its_twin_is_refuted(pair):
    assert judged(TORCH, pair, "test_functions_and_laws_of_torch.py") == [FitVerdict.FITS, FitVerdict.REFUTED]


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    assert len(PAIRS) < LINES / 4


def test_the_generator_moves_on_as_it_does_in_torch():
    def program():
        generator = torch.Generator().manual_seed(3)
        first = bool(torch.randn((), generator=generator) < 0)
        after = bool(torch.rand((), generator=generator) < 0.5)
        again = torch.Generator().manual_seed(3)
        torch.empty(()).normal_(generator=again)
        return first, after == bool(torch.rand((), generator=again) < 0.5)

    def run(draws):
        with answered_everywhere(draws):
            return program()

    assert program_law(run).probabilities == pytest.approx({(True, True): 0.5, (False, True): 0.5})


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 5.77), (torch.float64, 8.57)])
def test_the_ends_are_numbers_that_torch_can_return(dtype, most):
    """The largest are ``sqrt(-2 log(2**-bits))``."""
    for end, sign in ((0.0, -1), (1.0, 1)):
        with answered_everywhere(Tape(0), end):
            assert most - 0.6 < sign * float(torch.randn(2, dtype=dtype)[1]) < most


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.randn(2, dtype=torch.bfloat16), "float32"),
        (lambda: torch.randn(5000), "more than 4096"),
        (lambda: float(torch.randn(())), "value"),
    ],
)
def test_what_is_not_followed_is_refused(call, words):
    with pytest.raises(NeedsValue, match=words), answered_everywhere(Tape(0)):
        call()


def test_a_negative_deviation_fails_as_in_torch():
    with pytest.raises(RuntimeError, match="std"), answered_everywhere(Tape(0)):
        torch.normal(torch.zeros(2), torch.tensor([1.0, -1.0]))
