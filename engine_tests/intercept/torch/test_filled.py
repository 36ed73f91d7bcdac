"""Numbers drawn into tensors that are there already: whoever shares the storage sees them, and nobody sees what was."""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.intercept.torch.calls import NeedsValue, answered_by
from specverify.laws.draws import Narrated
from specverify.laws.enumeration import program_law
from specverify.testing import check_engine
from test_support.intercept.torch_laws import close, law_of

P = torch.tensor([0.25, 0.375, 0.375], dtype=torch.float64)
COIN = {True: 0.25, False: 0.75}
GRADIENTS = (contextlib.nullcontext, torch.no_grad, torch.inference_mode)


def zeros(*shape, dtype=torch.float64):
    return torch.zeros(*shape, dtype=dtype)


def into_out():
    numbers = zeros(3)
    torch.rand(3, out=numbers)
    return bool(numbers[1] < 0.25)


def a_view_made_before():
    numbers = zeros(2, 3)
    row = numbers[1]
    numbers.uniform_()
    return bool(row[2] < 0.25)


def a_view_made_after():
    numbers = zeros(2, 3)
    numbers.uniform_()
    return bool(numbers.t()[1, 0] < 0.25)


def the_data_before():
    numbers = zeros(3)
    data = numbers.data
    numbers.uniform_()
    return bool(data[0] < 0.25)


def a_detached_one_after():
    numbers = zeros(3)
    numbers.uniform_()
    return bool(numbers.detach()[0] < 0.25)


def through_a_detached_one():
    numbers = zeros(3)
    numbers.detach()[1:].uniform_()
    return bool(numbers[2] < 0.25)


def a_part_of_a_lazy_one():
    numbers = torch.rand(2, 2, dtype=torch.float64)
    numbers[1].uniform_(0, 2)
    return bool(numbers[1, 1] < 0.5)


def a_view_of_a_lazy_one_made_before():
    coins = torch.bernoulli(zeros(2, 2))
    row = coins[1]
    coins.bernoulli_(0.25)
    return bool(row[0])


def read_between_two_fillings():
    coins = zeros(2)
    coins.bernoulli_(0.5)
    assert coins.sum() <= 2
    coins.bernoulli_(0.25)
    return bool(coins[1])


def in_a_container():
    numbers = zeros(2)
    numbers.uniform_()
    return bool(torch.stack([numbers, numbers])[1, 0] < 0.25)


def by_a_slice_with_steps():
    numbers = zeros(6)
    numbers[1::2].uniform_()
    return bool(numbers[3] < 0.25) and bool(numbers[2] == 0)


@pytest.mark.parametrize("gradients", GRADIENTS)
@pytest.mark.parametrize(
    "coin",
    [
        into_out,
        a_view_made_before,
        a_view_made_after,
        the_data_before,
        a_detached_one_after,
        through_a_detached_one,
        a_part_of_a_lazy_one,
        a_view_of_a_lazy_one_made_before,
        read_between_two_fillings,
        in_a_container,
        by_a_slice_with_steps,
    ],
)
def test_whoever_shares_the_storage_sees_the_numbers(coin, gradients):
    with gradients():
        assert close(law_of(coin), COIN)


@pytest.mark.parametrize("gradients", GRADIENTS)
def test_rows_filled_one_by_one_each_by_its_own_generator(gradients):
    """As servers do it that give every request a seed: the whole first, then the rows that have a generator."""

    def program():
        noise = torch.empty_like(torch.stack([P, P]))
        noise.exponential_()
        for row, seed in enumerate((3, 4)):
            noise[row].exponential_(generator=torch.Generator().manual_seed(seed))
        return (torch.stack([P, P]) / noise).argmax(-1)

    with gradients():
        assert close(law_of(program), {(a, b): float(P[a] * P[b]) for a in range(3) for b in range(3)})


def test_numbers_drawn_anew_are_other_numbers_and_the_same_ones_the_same():
    def program(between):
        numbers = zeros(2)
        numbers.uniform_()
        first = bool(numbers[0] < 0.5)
        between(numbers)
        return first, bool(numbers[0] < 0.5)

    equal = {(True, True): 0.5, (False, False): 0.5}
    assert close(law_of(lambda: program(lambda numbers: numbers.uniform_())), dict.fromkeys([
        (a, b) for a in (True, False) for b in (True, False)], 0.25))  # fmt: skip
    assert close(law_of(lambda: program(lambda numbers: numbers[1].uniform_())), equal)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda out: torch.multinomial(P, 1, out=out), {(0,): 0.25, (1,): 0.375, (2,): 0.375}),
        (lambda out: torch.randint(1, 3, (1,), out=out), {(1,): 0.5, (2,): 0.5}),
        (lambda out: torch.randperm(1, out=out), {(0,): 1.0}),
        (
            lambda out: torch.searchsorted(P.cumsum(0), torch.rand(1, dtype=torch.float64), out=out),
            {(0,): 0.25, (1,): 0.375, (2,): 0.375},
        ),
        (lambda out: torch.mul((torch.rand(1) < 0.25).long(), 2, out=out), {(0,): 0.75, (2,): 0.25}),
    ],
)
def test_out_holds_what_was_drawn(draw, expected):
    def program():
        out = torch.full((1,), 7)
        draw(out)
        return out.clone()

    assert close(law_of(program), expected)


@pytest.mark.parametrize(("place", "expected"), [(0, {5: 1.0}), (1, {1: 0.625, 2: 0.375})])
def test_out_keeps_what_was_not_read_open(place, expected):
    """A draw whose outcome is not returned is not made."""

    def program(draws):
        narrated, greedy = Narrated(draws), torch.full((2,), 5)
        with answered_by(narrated):
            drawn = torch.multinomial(P, 1).expand(2).clamp(min=1)
            torch.where(torch.tensor([True, False]), greedy, drawn, out=greedy)
            return int(greedy[place]), len(narrated.decisions)

    assert close(program_law(program), {(token, place): mass for token, mass in expected.items()})


@pytest.mark.parametrize("function", [torch.cumprod, torch.logcumsumexp])
def test_out_of_a_function_without_a_rule_is_what_it_computes(function):
    def program():
        out = torch.empty(2, dtype=torch.float64)
        function((torch.rand(2) < 0.25).double(), 0, out=out)
        return out.clone()

    given = {(a, b): (0.25 if a else 0.75) * (0.25 if b else 0.75) for a in (0, 1) for b in (0, 1)}
    expected = Counter()
    for each, mass in given.items():
        expected[tuple(function(torch.tensor(each, dtype=torch.float64), 0).tolist())] += mass
    assert close(law_of(program), expected)


def refilled_after_it_was_written_to():
    coins = zeros(2)
    coins.bernoulli_(0.5)
    kept = coins.numpy()
    coins[0] = 1
    coins.bernoulli_(0.25)
    return bool(kept[0])


def read_as_bits():
    numbers = zeros(2)
    numbers.uniform_()
    return bool(numbers.view(torch.int64)[0] < 5)


def out_of_another_shape():
    torch.rand(2, out=zeros(3))


@pytest.mark.parametrize(
    "program",
    [
        refilled_after_it_was_written_to,
        read_as_bits,
        out_of_another_shape,
    ],
)
def test_what_would_be_seen_wrong_is_refused_by_line(program):
    with pytest.raises(NeedsValue, match=r"test_filled\.py:\d+"):
        law_of(program)


def test_coins_read_as_bits_are_looked_at():
    one = int(torch.ones(1, dtype=torch.float64).view(torch.int64))
    assert close(law_of(lambda: int(torch.bernoulli(P[:1]).view(torch.int64)[0])), {0: 0.75, one: 0.25})


# What takes the numbers out of a tensor


def filled():
    coin = zeros(1)
    coin.bernoulli_(0.25)
    return coin


@pytest.mark.parametrize("coins", [filled, lambda: torch.bernoulli(P[:1])], ids=["filled", "drawn"])
@pytest.mark.parametrize(
    "taken",
    [
        torch.Tensor.tolist,
        torch.Tensor.numpy,
        np.from_dlpack,
        lambda coins: [f"{coins[0]:.0f}"],
        lambda coins: torch.tensor([coins[0], 1.0])[:1],
        lambda coins: torch.tensor([[1.0], [coins[0]]])[1],
        list,
        lambda coins: [coins.item()],
        np.asarray,
    ],
)
def test_numbers_taken_out_of_a_tensor_are_those_that_were_drawn(coins, taken):
    assert close(law_of(lambda: float(taken(coins())[0])), {0.0: 0.75, 1.0: 0.25})


def test_what_reads_the_memory_itself_is_no_function_of_its_draws():
    """A scripted function is handed the tensor that was filled, and nobody sees it."""
    below = torch.jit.CompilationUnit("def below(x: Tensor) -> bool:\n    return bool((x < 0.25).all())\n").below

    def engine():
        numbers = torch.zeros(1, dtype=torch.float64)
        numbers.uniform_()
        return [int(below(numbers))]

    found = check_engine(engine, {(0,): 0.75, (1,): 0.25}, on_fail=None)
    verdict = next(verdict for verdict in found if verdict.check == "program_is_its_draws")
    assert verdict.status is Status.UNKNOWN


def a_layer_on_meta():
    with torch.device("meta"):
        return torch.nn.Linear(2, 2).weight


@pytest.mark.parametrize(
    "made",
    [
        a_layer_on_meta,
        lambda: torch.rand(2, device="meta"),
        lambda: torch.rand_like(zeros(2), device="meta"),
        lambda: torch.multinomial(zeros(2).to("meta"), 1),
        lambda: zeros(2).to("meta").exponential_(),
    ],
    ids=["layer", "rand", "rand_like", "multinomial", "exponential_"],
)
def test_a_tensor_without_numbers_draws_none(made):
    """A model is built without numbers before its weights are loaded."""

    def shape_and_coin():
        return (made().is_meta, bool(torch.rand(1, dtype=torch.float64)[0] < 0.25))

    assert close(law_of(shape_and_coin), {(True, True): 0.25, (True, False): 0.75})


def test_the_weights_of_a_new_layer_may_be_overwritten():
    def coin():
        layer = torch.nn.Linear(2, 2, bias=False, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.eye(2, dtype=torch.float64))
            return layer(P[:2]).tolist() == P[:2].tolist()

    assert close(law_of(coin), {True: 1.0})


def test_the_weights_of_a_new_layer_are_between_their_ends():
    def below():
        return bool(torch.nn.Linear(4, 1, bias=False, dtype=torch.float64).weight[0, 2] < 0.25)

    assert close(law_of(below), {True: 0.75, False: 0.25})


@pytest.mark.parametrize("inside", GRADIENTS)
def test_what_is_drawn_before_a_mode_is_read_in_it(inside):
    def coin():
        numbers = torch.rand(3, dtype=torch.float64)
        with inside():
            first = numbers[1]
            rest = numbers[1:].view(-1)
            return bool(first < 0.25), bool(rest[0] < 0.25)

    assert close(law_of(coin), {(True, True): 0.25, (False, False): 0.75})
