"""torch's random calls answered by draws: each has its exact law, and what cannot be answered is refused by name."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from specverify.intercept.torch.calls import NeedsValue, answered_by
from specverify.laws.draws import Tape
from test_support.intercept.torch_laws import close, law_of

P = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
Q = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)


def assert_law(expected, function):
    law = law_of(function)
    assert close(law, expected)
    return law


def singles(pmf):
    return {(token,): mass for token, mass in enumerate(pmf) if mass > 0}


# Draws of outcomes


def test_multinomial_has_the_law_of_its_weights():
    assert_law(singles([0.2, 0.3, 0.5]), lambda: torch.multinomial(P * 7, 1))


def test_multinomial_as_a_method_and_of_rows():
    expected = {(a, b): x * y for a, x in enumerate([0.2, 0.3, 0.5]) for b, y in enumerate([0.6, 0.3, 0.1])}
    assert_law(expected, lambda: torch.stack([P, Q]).multinomial(1))


def test_multinomial_without_replacement_renormalises():
    expected = {(a, b): float(P[a] * P[b] / (1 - P[a])) for a in range(3) for b in range(3) if a != b}
    assert_law(expected, lambda: torch.multinomial(P, 2))


def test_multinomial_with_replacement_draws_independently():
    assert_law({(a, b): float(P[a] * P[b]) for a in range(3) for b in range(3)}, lambda: torch.multinomial(P, 2, True))


@pytest.mark.parametrize(("number", "replacement"), [(1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_multinomial_leaves_its_generator_where_torch_does(number, replacement, dtype):
    weights = torch.stack([P, Q, P]).to(dtype)

    def left_behind():
        generator = torch.Generator().manual_seed(7)
        torch.multinomial(weights, number, replacement, generator=generator)
        return generator.get_state()

    expected = left_behind()
    with answered_by(Tape(1)):
        found = left_behind()
    assert torch.equal(found, expected)


def test_a_token_that_is_never_looked_at_takes_one_run():
    assert law_of(lambda: torch.multinomial(P, 1)).runs == 1
    assert law_of(lambda: (torch.multinomial(P, 1), 0)[1]).runs == 1


def test_categorical_and_bernoulli():
    assert_law(singles([0.2, 0.3, 0.5]), lambda: torch.distributions.Categorical(probs=P).sample())
    assert_law({(0.0,): 0.75, (1.0,): 0.25}, lambda: torch.bernoulli(torch.tensor([0.25], dtype=torch.float64)))


def test_randint_and_randperm():
    assert_law({(token,): 0.25 for token in (2, 3, 4, 5)}, lambda: torch.randint(2, 6, (1,)))
    assert len(law_of(lambda: torch.randperm(3)).probabilities) == 6


# Uniforms that are compared


@pytest.mark.parametrize(
    ("coin", "heads"),
    [
        (lambda: torch.rand(()) < 0.3, 0.3),
        (lambda: torch.rand(()) <= 0.3, 0.3),
        (lambda: torch.tensor(0.3, dtype=torch.float64) > torch.rand((), dtype=torch.float64), 0.3),
        (lambda: torch.rand(()) >= 0.3, 0.7),
        (lambda: torch.rand_like(P[0]) * 0.6 < 0.2, 1 / 3),
        (lambda: torch.log(torch.rand((), dtype=torch.float64)) < math.log(0.3), 0.3),
        (lambda: -torch.log(torch.rand(())) > 2.0, math.exp(-2)),
        (lambda: 1 - torch.rand(()) < 0.3, 0.3),
        (lambda: torch.empty(()).uniform_() < 0.3, 0.3),
        (lambda: torch.empty((), dtype=torch.float64).exponential_() < 1.0, 1 - math.exp(-1)),
    ],
)
def test_a_comparison_is_a_coin(coin, heads):
    assert_law({True: heads, False: 1 - heads}, lambda: bool(coin()))


def test_a_bound_beyond_the_unit_interval_is_certain():
    assert_law({True: 1.0}, lambda: bool(torch.rand(()) < 1.5))
    assert_law({False: 1.0}, lambda: bool(torch.rand(()) < 0.0))


def test_the_same_uniform_compared_twice_is_correlated():
    def program():
        uniform = torch.rand(())
        return bool(uniform < 0.5), bool(uniform < 0.25)

    assert_law({(True, True): 0.25, (True, False): 0.25, (False, False): 0.5}, program)


def test_uniforms_after_the_same_seed_are_the_same():
    def program():
        torch.manual_seed(3)
        first = torch.rand(()) < 0.5
        torch.manual_seed(3)
        return bool(first), bool(torch.rand(()) < 0.5)

    assert_law({(True, True): 0.5, (False, False): 0.5}, program)


def test_only_the_leading_run_of_coins_is_looked_at():
    """``((~accepted).cumsum(-1) < 1).sum()`` looks no further than the first rejection: four outcomes, four runs."""

    def program():
        accepted = torch.rand(3) <= torch.tensor([0.5, 0.5, 0.5])
        return int(((~accepted).cumsum(dim=-1) < 1).sum())

    law = assert_law({0: 0.5, 1: 0.25, 2: 0.125, 3: 0.125}, program)
    assert law.runs == 4


def test_cumprod_of_coins_looks_no_further_than_the_first_rejection():
    law = assert_law(
        {0: 0.5, 1: 0.25, 2: 0.25}, lambda: int((torch.rand(2) < 0.5).to(torch.int64).cumprod(dim=0).sum())
    )
    assert law.runs <= 4


# Inverse CDF and races


@pytest.mark.parametrize(
    "lookup",
    [
        lambda: int(torch.searchsorted(P.cumsum(0), torch.rand(1, dtype=torch.float64))),
        lambda: int((P.cumsum(0) > torch.rand((), dtype=torch.float64)).to(torch.int64).argmax()),
        lambda: int((torch.rand(1, dtype=torch.float64) >= P.cumsum(0)).sum()),
        lambda: int((P / torch.empty_like(P).exponential_()).argmax()),
        lambda: int((torch.empty_like(P).exponential_() / P).argmin()),
        lambda: int((torch.log(P) - torch.log(-torch.log(torch.rand_like(P)))).argmax()),
    ],
)
def test_a_lookup_or_a_race_is_the_categorical(lookup):
    assert_law(dict(enumerate([0.2, 0.3, 0.5])), lookup)


def test_noise_filled_in_place_is_seen_by_those_who_hold_the_tensor():
    def program():
        noise = torch.ones(2, 3, dtype=torch.float64)
        noise[1].exponential_()
        return int((P / noise[1]).argmax())

    assert_law(dict(enumerate([0.2, 0.3, 0.5])), program)


def test_the_rejecting_uniform_reused_for_the_replacement_is_biased_by_the_amount_worked_out():
    """U >= 1/3 is known when token 0 is rejected, so the inverse CDF of (1/2, 1/2) gives (1/4, 3/4)."""

    def program():
        uniform = torch.rand((), dtype=torch.float64)
        if uniform < 1 / 3:
            return 0
        return 1 + int((torch.tensor([0.5, 1.0], dtype=torch.float64) > uniform).to(torch.int64).argmax())

    assert_law({0: 1 / 3, 1: 1 / 6, 2: 1 / 2}, program)


def test_what_is_written_into_drawn_tokens_stays():
    def program():
        tokens = torch.multinomial(P, 2)
        tokens[0] = 7
        return tokens

    assert_law({(7, token): expected_second(token) for token in range(3)}, program)


def expected_second(token):
    """The law of the second of two draws without replacement."""
    return sum(float(P[first] * P[token] / (1 - P[first])) for first in range(3) if first != token)


# The boundary


@pytest.mark.parametrize(("forced", "accepted"), [(0.0, True), (1.0, False)])
def test_boundary_draws_can_be_forced(forced, accepted):
    """U <= p/q accepts a token of probability 0 when u is 0; the strict comparison does not."""
    with answered_by(None, forced_uniform=forced):
        uniform = torch.rand(())
        assert bool(uniform <= 0.0) == accepted
        assert not bool(uniform < 0.0)
        assert float(uniform) < 1


# Refusals


@pytest.mark.parametrize(
    "function",
    [
        lambda: {torch.rand(()).item()},
        lambda: float(torch.rand(3).max()),
        lambda: torch.rand(33).sum(),
        lambda: bool(torch.rand(()).clamp(min=0.1) == 0.1),
        lambda: bool(torch.log(torch.rand(()) - 0.5) < 0),
        lambda: bool(torch.rand((), dtype=torch.bfloat16).clamp(min=0.5) < 0.75),
        lambda: float(torch.rand(())),
        lambda: float(torch.randn(2)[0]),
        lambda: float(torch.empty(2).normal_()[1]),
        lambda: int((torch.rand(3) * -P).argmax()),
    ],
)
def test_what_needs_a_value_is_refused_with_file_and_line(function):
    with pytest.raises(NeedsValue, match=r"test_functions\.py:\d+"):
        law_of(function)


def test_noise_that_has_decided_two_races_cannot_decide_a_third():
    def program():
        clock = torch.empty_like(P).exponential_()
        return [int((weights / clock).argmax()) for weights in (P, Q, P + Q)]

    with pytest.raises(NeedsValue, match="second race"):
        law_of(program)


def test_a_number_among_the_scores_is_no_clock():
    with pytest.raises(NeedsValue):
        law_of(
            lambda: int(torch.where(P > 0.25, torch.log(P) - torch.log(-torch.log(torch.rand_like(P))), 0.0).argmax())
        )


def test_the_longest_of_times_is_that_of_the_clock_that_rings_last():
    """A clock is behind another one by the share of the other's rate, here 1 / P."""
    a, b, c = (1 / P).tolist()
    last = {0: [b, c], 1: [a, c], 2: [a, b]}
    law = {
        i: 1 - sum(rate / (rate + each) for each in others) + rate / (rate + sum(others))
        for (i, others), rate in zip(last.items(), (a, b, c), strict=True)
    }
    assert_law(law, lambda: int((P * torch.empty_like(P).exponential_()).argmax()))


def test_nothing_is_below_or_above_nan():
    nan = float("nan")
    assert_law({False: 1.0}, lambda: bool(torch.rand(()) < nan))
    assert_law({False: 1.0}, lambda: bool(torch.rand(()) > nan))
    assert_law({False: 1.0}, lambda: bool(-torch.log(torch.rand(())) < nan))


def test_a_block_inside_another_takes_none_of_its_draws():
    """The inner one draws once, in the first run alone; the outer one must not find its own next number drawn."""
    runs = []

    def inside():
        runs.append(None)
        if len(runs) == 1:
            with answered_by(Tape(0)):
                torch.rand(())
        return torch.rand(()) < 0.25

    assert_law({True: 0.25, False: 0.75}, lambda: bool(inside()))


def test_everything_is_as_before_after_the_block():
    seed = torch.manual_seed
    with pytest.raises(NeedsValue), answered_by(None):
        float(torch.rand(()))
    assert torch.manual_seed is seed
    assert 0 <= torch.rand(()).item() < 1
    assert np.isfinite(torch.randn(2).numpy()).all()


def test_coins_that_were_written_to_are_tossed_again():
    def program():
        coins = torch.zeros(2)
        first = coins.bernoulli_(0.5)[:1]
        coins[0] = 1
        before = bool(first)
        coins.bernoulli_(0.25)
        return before, bool(first)

    assert close(law_of(program), {(True, True): 0.25, (True, False): 0.75})
