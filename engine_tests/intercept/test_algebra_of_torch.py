"""Random tensors without a value, computed with before they are compared: right idioms by their law, and wrong twins.

As ``test_algebra.py`` does for NumPy: the exact law of an idiom must fit a planned sample that torch draws alone, and
the sample of a twin that looks like it must refute it.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from engine_tests.subjects.test_verifier import verdicts_of
from specverify.base.verdict import Status
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.statistics import FitVerdict
from test_support.intercept.drawing_calls import LINES, cases, judged, pairs_of
from test_support.intercept.torch_under_test import TORCH
from test_support.verifiers import samplers


def exponentials():
    return torch.empty(3).exponential_()


def ragged(side="right"):
    return pad_sequence([torch.rand(2), torch.rand(1)], True, 2.0, side)


LIBRARY = TORCH._replace(names={**TORCH.names, "math": math, "exponentials": exponentials, "ragged": ragged})
IDIOMS = """
int((P * torch.empty(3).exponential_()).argsort(descending=True)[0]) ;; (torch.rand(3).log() * P).argmax().item()
int((P / torch.empty(3).exponential_()).sort()[1][2]) ;; int((P * torch.empty(3).exponential_()).sort()[1][2])
bool((torch.rand(()) - 1) ** 2 < 0.25) ;; bool((torch.rand(()) - 1) ** 2 < 0.5)
bool((torch.rand(()) - 1).square() < 0.25) ;; bool((torch.rand(()) - 1).square() < 0.5)
bool((torch.rand(()) - 1).pow(3) < -0.001) ;; bool((torch.rand(()) - 1).pow(3) > -0.001)
torch.rand(1).item() < 0.3 ;; torch.rand(1).item() < 0.6
bool(torch.rand(2).fill_(0.2)[0] + torch.rand(()) < 0.5) ;; bool(torch.rand(2).fill_(0.4)[0] + torch.rand(()) < 0.5)
bool(torch.rand(2).zero_()[0] + torch.rand(()) < 0.3) ;; bool(torch.rand(2).zero_()[0] + torch.rand(()) < 0.6)
torch.rand(()).item() < min(1.0, P[1] / P[0]) ;; torch.rand(()).item() < min(1.0, P[0] / P[1])
bool(P[2] > torch.rand(()).item()) ;; bool(P[2] < torch.rand(()).item())
bool(torch.rand(1).item() * P[0] < P[1]) ;; bool(torch.rand(1).item() / P[0] < P[1])
(P[:1] > torch.rand(1).item() + 0.25).tolist()[0] ;; (P[:1] > torch.rand(1).item() - 0.25).tolist()[0]
[u < 0.3 for u in torch.rand(2).tolist()][1] ;; [u < 0.6 for u in torch.rand(2).tolist()][1]
math.log(torch.rand(1).item()) < math.log(0.3) ;; math.log(torch.rand(1).item()) < math.log10(0.3)
bool(torch.rand(()) ** 2 < 0.25) ;; bool(torch.rand(()) ** 0.5 < 0.25)
bool(torch.sqrt(torch.rand(2))[1] < 0.5) ;; bool(torch.square(torch.rand(2))[1] < 0.5)
bool(torch.reciprocal(1 - torch.rand(())) > 2) ;; bool(torch.reciprocal(1 - torch.rand(())) > 4)
bool(torch.log1p(-torch.rand(())) < math.log(0.3)) ;; bool(torch.log1p(torch.rand(())) < math.log(1.7))
bool(2 ** -exponentials()[0] < 0.5) ;; bool(2 ** -(2 * exponentials()[0]) < 0.5)
bool(torch.rand(()).clamp(min=0.25) < 0.5) ;; bool(torch.rand(()).clamp(max=0.25) < 0.5)
bool(torch.rand(()).clamp_min(0.1).log() < math.log(0.5)) ;; bool(torch.rand(()).clamp_min(0.6).log() < math.log(0.5))
bool(torch.maximum(torch.rand(2), P[:2])[1] < 0.5) ;; bool(torch.maximum(torch.rand(2), P[:2])[0] < 0.75)
bool((torch.rand(()) == 0) | (torch.rand(()) < 0.3)) ;; bool((torch.rand(()) != 0) & (torch.rand(()) < 0.6))
bool(~torch.isnan(torch.rand(2))[0] & (torch.rand(()) < 0.3)) ;; bool(torch.isnan(P)[0] | (torch.rand(()) < 0.6))
bool(torch.where(P > 0.2, torch.rand(3), 0.9)[0] < 0.3) ;; bool(torch.where(P > 0.2, 0.9, torch.rand(3))[0] < 0.3)
bool(torch.zeros(2).copy_(torch.rand(2))[1] < 0.3) ;; bool(torch.zeros(2).copy_(torch.rand(2) / 2)[1] < 0.3)
bool(torch.zeros(1).copy_(torch.rand(1), non_blocking=True) < 0.3) ;; bool(torch.zeros(1).copy_(torch.rand(1)) < 0.6)
bool(torch.rand(2).mul_(2).sub_(1)[1] < 0.5) ;; bool(torch.rand(2).mul_(2)[1] < 0.5)
int(torch.bucketize(torch.rand(()), CDF)) ;; int(torch.bucketize(torch.rand(()) ** 2, CDF))
int(torch.searchsorted(CDF, 1 - torch.rand(1))) ;; int(torch.searchsorted(CDF, 1 - torch.rand(1) ** 2))
int((P * (1 / exponentials())).argmax()) ;; int((1 / P * (1 / exponentials())).argmax())
int(P.clone().div_(exponentials()).argmax()) ;; int(P.clone().div_(torch.rand(3)).argmax())
int((P.log() + exponentials().log_().neg_()).argmax()) ;; int((P.log() + exponentials().neg_()).argmax())
int((torch.rand(3) ** (1 / P)).argmax()) ;; int((torch.rand(3) ** P).argmax())
int((torch.rand(3).log() / P).argmax()) ;; int((torch.rand(3).log() * P).argmax())
int((P / exponentials()).max(-1).indices) ;; int((P * exponentials()).max(-1).indices)
int((exponentials() / P).min(dim=0)[1]) ;; int((exponentials() / P).max(dim=0)[1])
int((P / exponentials()).topk(1).indices[0]) ;; int((P / exponentials()).topk(2).indices[1])
int((P / exponentials()).sort(descending=True).indices[0]) ;; int((P / exponentials()).sort().indices[0])
int((exponentials() / P).argsort()[0]) ;; int((exponentials() / P).argsort()[1])
int((P / exponentials().clamp_min(1.0)).argmax()) ;; int((P / exponentials()).argmax())
int((P / (exponentials() + 1.0)).argmax()) ;; int((P / exponentials()).argmax())
int((P.log() - (-torch.rand(3).clamp(0.25, 0.5).log()).log()).argmax()) ;; int((P / exponentials()).argmax())
int((P / exponentials()).masked_fill(P < 0.2, -math.inf).argmax()) ;; int((P / exponentials()).argmin())
int((P.log() - exponentials().log()).masked_fill(P > 0.4, -1e9).argmax()) ;; int((P / exponentials()).argmax())
int((P / exponentials()).flip(0).argmax()) ;; int((P / exponentials()).argmax())
bool(torch.rand(3).split([1, 2])[1][0] < 0.3) ;; bool(torch.rand(3).split([1, 2])[1].amin() < 0.3)
bool(torch.rand(4).unfold(0, 2, 2)[1, 0] < 0.3) ;; bool(torch.rand(4).unfold(0, 2, 2)[1, 0] < 0.6)
bool(torch.rand(2, 2).diagonal()[1] < 0.3) ;; bool(torch.rand(2, 2).diagonal()[1] < 0.6)
bool(ragged()[1, 0] < 0.3) ;; bool(ragged()[1, 0] < 0.6)
bool(ragged("left")[1].amin() < 0.3) ;; bool(ragged("left")[1].amin() < 0.6)
int((P / exponentials()).masked_select(P > 0.2).argmax()) ;; int((P / exponentials())[:2].argmax())
"""
PAIRS = pairs_of(IDIOMS)


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("pair", PAIRS, ids=[right for right, _ in PAIRS])
def test_an_idiom_has_its_exact_law_and_its_twin_is_refuted(pair):
    assert judged(LIBRARY, pair, "test_algebra_of_torch.py") == [FitVerdict.FITS, FitVerdict.REFUTED]


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    assert sum(1 for _ in cases(TORCH, "answered")) + len(PAIRS) < LINES / 2


def test_numbers_beside_random_ones_are_computed_as_well():
    """Half of it was filled with noise: the logarithm is taken of the numbers too."""

    def program():
        mixed = torch.ones(2)
        mixed[0].uniform_()
        return bool(mixed.log()[1] == 0), bool(mixed.neg()[1] == -1), bool((mixed * 2 + 1)[1] == 3)

    with answered_everywhere(Tape(0)):
        assert program() == (True, True, True)


REFUSED = """
float(torch.rand(())) ;; torch.rand(33).sum() ;; torch.rand(()).item().hex()
torch.log(torch.rand(()) - 0.5) ;; 1 / (torch.rand(3) - 0.5) ;; (torch.rand(3) - 0.5) ** 2
bool(torch.rand(()).clamp(min=0.1) <= 0.1) ;; bool(torch.rand(()).clamp(min=0.1) == 0.1)
bool(torch.rand((), dtype=torch.float16).clamp(min=0.25) < 0.5) ;; 1 / (torch.rand(3) - torch.rand(3))
bool(torch.rand((), dtype=torch.bfloat16).clamp_max(0.5) < 0.4) ;; float((P / exponentials()).max())
(P / exponentials()).max(-1)[0].item().hex() ;; (P / exponentials()).sort()[0].sum().item().hex()
torch.softmax(P / exponentials(), -1).tolist() ;; int((P / exponentials()).cumsum(0).argmax())
int(torch.sort(torch.full((2,), 0.5) / exponentials()[:2].clamp_min(0.5), descending=True)[1][0])
int((P / exponentials().clamp_min(1.0)).topk(2).indices[1]) ;; torch.rand(2).sin().tolist()
bool(torch.randint(2**40, (1,)) % 3 == 0) ;; int(torch.randint(20000, ()))
bool(torch.randint(0, 100, (), dtype=torch.uint8) + 200 < 44)
bool(1 / torch.clamp(torch.rand(()) - 0.5, max=0.0) < -5)
torch.nn.functional.gumbel_softmax(P).tolist() ;; torch.rand(2).view(torch.int32)
"""
REFUSED_CALLS = [call.strip() for call in REFUSED.replace("\n", ";;").split(";;") if call.strip()]


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_what_is_not_understood_is_refused(call):
    with pytest.raises(NeedsValue, match=r"test_algebra_of_torch\.py:\d+"):
        evaluated(call)


def evaluated(call):
    with answered_everywhere(Tape(1)):
        return eval(compile(call, __file__, "eval"), {**LIBRARY.names})


# Verifiers that are written so


def by_item(ratio=lambda p, q: p / q, noise=lambda row: torch.empty_like(row).exponential_()):
    """Coins as Python numbers, and the replacement by a row that is divided by noise in its place."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if torch.rand(1).item() >= min(1.0, ratio(p[i, token], q[i, token])):
                row = samplers.owed(p[i], q[i]).clone()
                return [*draft_tokens[:i].tolist(), row.div_(noise(row)).argmax().item()]
        return [*draft_tokens.tolist(), p[-1].clone().div_(noise(p[-1])).max(-1).indices.item()]

    return verify


def clamped(bound):
    return lambda row: torch.empty_like(row).exponential_().clamp_min(bound)


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [{}, {"noise": clamped(1e-20)}], ids=["noise", "clamped noise"])
def test_a_verifier_of_python_coins_and_noise_in_place_holds(noise):
    verdict = verdicts_of(by_item(**noise), {"law_is_target"}, gammas=(1,), share=(0, 6))["law_is_target"]
    assert verdict.status is Status.HOLDS
    assert verdict.figures["tv"] < 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize(
    "wrong",
    [{"ratio": lambda p, q: p}, {"noise": clamped(0.25)}, {"noise": lambda row: clamped(0.0)(row) + 0.25}],
    ids=["without q", "clamped far from 0", "noise and a number"],
)
def test_its_wrong_twins_are_refuted(wrong):
    verdict = verdicts_of(by_item(**wrong), {"law_is_target"}, gammas=(1,), share=(0, 6))["law_is_target"]
    assert verdict.status is Status.REFUTED
