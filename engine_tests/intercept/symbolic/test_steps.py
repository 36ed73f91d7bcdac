"""Functions of one row of ``steps.RULES``, in every library: right programs hold, wrong twins do not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic.primitives import PRIMITIVES
from specverify.intercept.symbolic.steps import RULES, MonotoneStep
from specverify.intercept.symbolic.together import Formula, enclosed
from specverify.laws.enumeration import program_law
from specverify.testing import check_verifier

INVERSE = {"arctan": math.tan, "sinh": math.asinh, "arcsinh": math.sinh}
"""Of the functions that every library has."""
LIBRARIES = {
    "torch": (lambda: torch.rand(()), lambda name, u: bool(getattr(torch, OF_MATH[name])(u) < 0.25)),
    "torch in double": (
        lambda: torch.rand((), dtype=torch.float64),
        lambda name, u: bool(getattr(u, OF_MATH[name])() < 0.25),
    ),
    "numpy": (lambda: np.random.default_rng(0).random(), lambda name, u: bool(getattr(np, name)(u) < 0.25)),
    "numpy rows": (lambda: np.random.rand(2), lambda name, u: bool((getattr(np, name)(u) < 0.25)[1])),  # noqa: NPY002
    "math": (lambda: np.random.default_rng(0).random(), lambda name, u: getattr(math, OF_MATH[name])(u) < 0.25),
}
OF_MATH = {name: PRIMITIVES[name].math[0] for name in INVERSE}


def law(library, name):
    number, below = LIBRARIES[library]

    def program(draws):
        with answered_everywhere(draws):
            return below(name, number())

    return program_law(program).probabilities


@pytest.mark.parametrize("name", INVERSE)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_comparison_is_carried_back_by_the_inverse(library, name):
    assert law(library, name)[True] == pytest.approx(INVERSE[name](0.25), abs=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_undoes_its_function_and_bounds_its_slope(name):
    rule, places = RULES[name], np.array([-700.0, -3.0, -0.5, 0.0, 0.1, 2.0, 700.0])
    assert rule.inverse(rule.of(places[1:-1])) == pytest.approx(places[1:-1], rel=1e-9)
    if np.isfinite(rule.images).all():
        assert list(rule.inverse(np.array([-1e300, 1e300]))) == [-math.inf, math.inf]
    assert not np.isfinite(rule.inverse(np.array(rule.images))).any()
    for low, high in itertools.pairwise(places):
        least, most = rule.slopes(low, high)
        inside = np.linspace(low, high, 101)
        with np.errstate(all="ignore"):
            slopes = np.diff(rule.of(inside)) / np.diff(inside)
        slopes = slopes[np.isfinite(slopes)]
        assert (least * (1 - 1e-6) - 1e-12 <= slopes).all()
        assert (slopes <= most * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", RULES)
def test_an_enclosure_holds_the_function(name):
    formula = Formula("uniform", (0,), (MonotoneStep("times", 4.0), MonotoneStep("plus", -2.0), MonotoneStep(name)))
    low, high = np.array([[0.0, 0.4, 0.9]]), np.array([[0.3, 0.6, 1.0]])
    found = enclosed(formula, low, high)
    at = RULES[name].of(4 * (low + high) / 2 - 2)[0]
    assert ((found.value[0] <= at) & (at <= found.value[1])).all()
    assert ((found.slopes[0] > 0) & (found.slopes[1] < 20)).all()


def test_a_sum_of_two_is_followed_between_bounds():
    def program(draws):
        with answered_everywhere(draws):
            return bool(torch.atan(torch.rand(())) + torch.atan(torch.rand(())) < 0.5)

    u = (np.arange(200_000) + 0.5) / 200_000
    expected = np.clip(np.tan(np.clip(0.5 - np.arctan(u), -1, 1)), 0, 1).mean()
    assert program_law(program).probabilities[True] == pytest.approx(expected, abs=1e-6)


def verifier(coin):
    def verify(p, q, draft_tokens):
        new = []
        for place, token in enumerate(draft_tokens.tolist()):
            if not coin(float(min(1.0, p[place, token] / q[place, token]))):
                left = torch.clamp(p[place] - q[place], min=0)
                return [*new, int(torch.multinomial(left if left.sum() > 0 else p[place], 1))]
            new.append(token)
        return [*new, int(torch.multinomial(p[len(new)], 1))]

    return verify


RACES = {
    "torch": lambda p: int((torch.atan(p / torch.empty_like(p).exponential_())).argmax()),
    "numpy": lambda p: int(np.argmax(np.arctan(p.numpy() / np.random.exponential(size=len(p))))),  # noqa: NPY002
}
P = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("library", RACES)
def test_a_race_knows_its_clocks_behind_a_function_that_all_have(library):
    def raced(draws):
        with answered_everywhere(draws):
            return RACES[library](P)

    law = program_law(raced).probabilities
    assert [law[token] for token in range(3)] == pytest.approx(P.tolist(), abs=1e-9)


COINS = {
    "torch": (
        lambda ratio: bool(torch.atan(torch.rand(())) < math.atan(ratio)),
        lambda ratio: bool(torch.atan(torch.rand(())) < ratio),
    ),
    "math": (
        lambda ratio: math.atan(torch.rand(()).item()) < math.atan(ratio),
        lambda ratio: math.atan(torch.rand(()).item()) < ratio,
    ),
    "numpy": (
        lambda ratio: np.arctan(np.random.rand()) < np.arctan(ratio),  # noqa: NPY002
        lambda ratio: np.arctan(np.random.rand()) < ratio,  # noqa: NPY002
    ),
}


TARGET, DRAFT = np.array([[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]), np.array([[0.5, 0.3, 0.2]])


def law_of_first_token(coin):
    verify = verifier(coin)

    def program(draws):
        token = draws.categorical(DRAFT[0], ("draft",))
        with answered_everywhere(draws):
            return verify(torch.from_numpy(TARGET), torch.from_numpy(DRAFT), torch.tensor([token]))[0]

    return [program_law(program).probabilities[token] for token in range(3)]


@pytest.mark.parametrize("library", COINS)
def test_a_verifier_with_such_a_coin_has_the_law_of_the_target_and_its_twin_has_not(library):
    right, wrong = map(law_of_first_token, COINS[library])
    assert right == pytest.approx(TARGET[0].tolist(), abs=1e-7)
    assert max(map(abs, TARGET[0] - wrong)) > 0.01


def statuses(coin):
    verify = verifier(coin)
    return {verdict.status for verdict in check_verifier(verify, checks=["law_is_target"], gammas=(1,), on_fail=None)}


@pytest.mark.thorough
@pytest.mark.parametrize("library", COINS)
def test_a_verifier_with_such_a_coin_holds_and_its_twin_is_refuted(library):
    right, wrong = COINS[library]
    assert statuses(right) == {Status.HOLDS}
    assert Status.REFUTED in statuses(wrong)
