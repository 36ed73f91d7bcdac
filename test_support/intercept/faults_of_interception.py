"""Single changes to the rules of interception, each with a program whose result depends on the rule.

``plant(patch)`` makes the change by ``monkeypatch``; ``program()`` returns numbers and bools that depend on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from specverify.intercept import distributions, streams
from specverify.intercept import numpy as numpy_calls
from specverify.intercept import python as python_calls
from specverify.intercept.numpy import NumpyGenerator
from specverify.intercept.symbolic import (
    algebra,
    continuous,
    deferred,
    primitives,
    races,
    rows,
    steps,
    together,
    uniform,
)
from specverify.intercept.torch import elementwise, filled, functions
from specverify.intercept.torch import generators as torch_streams
from specverify.laws.draws import BELOW

RNG = np.random.default_rng(2)
WEIGHTS = np.array([0.5, 0.125, 0.375])
TENSOR = torch.tensor(WEIGHTS)


class Fault(NamedTuple):
    """A planted change to a rule of interception, and a program that depends on the rule."""

    name: str
    plant: Callable[[Any], None]
    program: Callable[[], Any]


FAULTS: list[Fault] = []


def _fault(program: Callable[[], Any]) -> Callable[[Any], Any]:
    def add(plant: Any) -> Any:
        FAULTS.append(Fault(plant.__name__.replace("_", " "), plant, program))
        return plant

    return add


# Programs


def coin():
    return RNG.random() < 0.3


def coin_twice():
    u = RNG.random()
    return bool(u < 0.3), bool(u < 0.6), bool(u < 0.8)


def looked_up_twice():
    u = RNG.random()
    return int(np.searchsorted(WEIGHTS.cumsum(), u)), bool(u < 0.7)


def shifted():
    return (
        bool(RNG.random() + 0.2 < 0.7),
        bool((RNG.random() + 0.5) * 0.5 < 0.4),
        bool(0.5 * (0.5 * RNG.random()) < 0.1),
    )


def shifted_twice():
    return bool(RNG.random() + 0.2 + 0.3 < 0.9)


def logarithms():
    return (
        bool(np.log(RNG.random() * 0.5) < -1.2),
        bool((RNG.random() * 2.0) ** 2.0 < 1.0),
        bool(np.sqrt(RNG.random()) < 0.5),
    )


def whole_parts():
    return bool(RNG.geometric(0.25) <= 2), bool(np.floor(RNG.random() * 4.0) < 2)


def clamped():
    u, v = torch.rand(2, dtype=torch.float64)
    return (u.clamp(min=0.25) < 0.25).item(), (v.clamp(max=0.5) < 0.5).item()


def mirrored():
    return (
        bool(1.0 - RNG.random() < 0.3),
        int(np.searchsorted(WEIGHTS.cumsum(), 1.0 - RNG.random())),
        bool(-RNG.random() < -0.3),
    )


def on_the_other_side():
    return bool(1.0 - RNG.random() < 0.3), bool(-RNG.random() < -0.3)


def in_few_bits():
    bounds = torch.linspace(0, 1, 100, dtype=torch.float64)
    return int((torch.rand(()).bfloat16().double() > bounds).sum())


def extremes():
    u = torch.rand(3)
    return (u.max() < 0.7).item(), (torch.rand(3).min() < 0.3).item()


def raced():
    return int((TENSOR / torch.empty(3, dtype=torch.float64).exponential_()).argmax())


def raced_by_gumbel():
    return int(np.argmax(np.log(WEIGHTS) + RNG.gumbel(size=3)))


def best_two():
    return (torch.log(TENSOR) - torch.empty(3, dtype=torch.float64).exponential_().log()).topk(2).indices.tolist()


def raced_twice():
    noise = RNG.gumbel(size=3) + np.log(WEIGHTS)
    first = int(np.argmax(noise))
    return first, bool(noise[first] > noise[(first + 1) % 3]), int(np.argmax(noise))


def raced_late():
    return int((TENSOR.log() + torch.rand(3, dtype=torch.float64).log()).argmax())


def raced_late_and_clamped():
    weights = torch.tensor([0.42 - 0.25, 0.4 - 0.15], dtype=torch.float64)
    return int((weights.log() + torch.rand(2, dtype=torch.float64).clamp(1e-30, 1 - 2**-53).log()).argmax())


def raced_mirrored():
    return int(np.argmin(-np.log(1.0 - RNG.random(3)) / WEIGHTS))


def of_several():
    u, v = RNG.random(2)
    return bool(u + v < 0.8), bool(RNG.random() * RNG.random() < 0.2), bool((RNG.random() + RNG.random()) * 0.5 < 0.4)


def of_several_twice():
    total = RNG.random() + RNG.random()
    return bool(total < 0.8), bool(total < 0.8), bool(total < 1.2)


def drawn_by_torch():
    return (
        int(torch.multinomial(TENSOR, 1)),
        torch.bernoulli(torch.tensor([0.2])).tolist(),
        torch.randint(3, 7, (2,)).tolist(),
        torch.multinomial(TENSOR, 2).tolist(),
    )


def drawn_by_numpy():
    return (
        int(RNG.integers(1, 4, endpoint=True)),
        RNG.choice(3, 2, replace=False, p=WEIGHTS).tolist(),
        RNG.permutation(3).tolist(),
        int(RNG.binomial(2, 0.25)),
    )


def scaled_by_numpy():
    return (
        bool(RNG.uniform(-1.0, 3.0) < 0),
        bool(RNG.exponential(2.0) < 1.0),
        bool(RNG.gumbel(1.0, 2.0) < 0.5),
        bool(RNG.pareto(2.0) < 0.5),
    )


def scaled_by_torch():
    u, e = torch.empty(2).uniform_(-1.0, 3.0), torch.empty(2).exponential_(2.0)
    return (u < 0).tolist(), (e < 0.3).tolist()


def scaled_by_python():
    return random.expovariate(2.0) < 0.3, random.weibullvariate(2.0, 2.0) < 1.5, random.choices(range(3), WEIGHTS)[0]


def chosen_elements():
    u, v = torch.rand(2)
    return int(torch.where(u < 0.3, 1, 2)), bool((torch.rand(3) < 0.4).sum() < 2), bool(v > 0.6)


def several_draws_of_torch():
    return (torch.rand(()) < 0.3).item(), (torch.rand(()) < 0.3).item()


def signs_and_remainders():
    return (
        bool(np.fmod(RNG.random() - 0.5, 0.2) < 0.05),
        bool(torch.rsqrt(torch.rand(())) < 1.4),
        bool(torch.copysign(torch.ones(()), torch.rand(()) - 0.3) > 0),
    )


def at_a_clamp():
    u, v = torch.rand(2, dtype=torch.float64)
    return (u.clamp(min=0.25) >= 0.25).item(), (v.clamp(max=0.5) >= 0.5).item()


def read_in_part():
    below = torch.rand(2) < torch.tensor([0.3, 0.8])
    first = bool(below[0])
    return first, (~below).flip(0).max(0).indices.item(), (below ^ below.flip(0)).tolist(), (below & below[0]).tolist()


def written_into():
    buffer = torch.zeros(3)
    buffer[1] = torch.rand(())
    buffer[2] = 1 - buffer[1]
    return (buffer[1] < 0.4).item(), (buffer[2] < 0.4).item()


def seeded_again():
    torch.manual_seed(random.getrandbits(30))
    state = torch.get_rng_state()
    first = (torch.rand(()) < 0.4).item()
    torch.set_rng_state(state)
    return first, (torch.rand(()) < 0.6).item()


# One uniform number


@_fault(coin)
def the_other_side_of_a_bound(patch):
    real = uniform.Uniform._ask
    patch.setattr(uniform.Uniform, "_ask", lambda self, question, *more: 1 - real(self, question, *more)
                  if question == BELOW else real(self, question, *more))  # fmt: skip


def _forgetting(name, value, method):
    def plant(patch):
        real = getattr(uniform.Uniform, method)

        def asked(self, *args, **kwargs):
            result = real(self, *args, **kwargs)
            setattr(self.known, name, value)
            return result

        patch.setattr(uniform.Uniform, method, asked)

    return plant


for _name, _value in (("low", 0.0), ("high", 1.0)):
    FAULTS.append(Fault(f"a comparison leaves {_name} as it was", _forgetting(_name, _value, "below"), coin_twice))
    FAULTS.append(
        Fault(f"a look-up leaves {_name} as it was", _forgetting(_name, _value, "interval_of"), looked_up_twice)
    )


@_fault(coin_twice)
def shares_are_not_those_of_intervals(patch):
    patch.setattr(uniform.Known, "share_below", lambda _, bound: bound * bound)


@_fault(looked_up_twice)
def a_look_up_is_one_cell_too_far(patch):
    real = uniform.Uniform.interval_of
    patch.setattr(uniform.Uniform, "interval_of", lambda self, *a, **k: (real(self, *a, **k) + 1) % 3)


# Chains


def _back(name, wrong):
    def plant(patch):
        real = steps.MonotoneStep.back
        patch.setattr(
            steps.MonotoneStep,
            "back",
            lambda self, bound: wrong(self, bound) if self.name == name else real(self, bound),
        )

    return plant


FAULTS += [
    Fault("a summand is carried back with its sign", _back("plus", lambda step, x: x + step.number), shifted),
    Fault("a factor is carried back as it is", _back("times", lambda step, x: x * step.number), shifted),
    Fault(
        "an exponent is carried back as it is",
        _back("power", lambda step, x: x**step.number if x > 0 else x),
        logarithms,
    ),
    Fault("a logarithm is carried back by another base", _back("log", lambda step, x: 2.0**x), logarithms),
]


def _rule(pair, rule):
    return lambda patch: patch.setitem(steps._RULES, pair, rule)


FAULTS += [
    Fault("a summand is not scaled", _rule(("plus", "times"), lambda n, step: (step, steps.plus(n))), shifted),
    Fault("the second of two factors is lost", _rule(("times", "times"), lambda n, step: (steps.times(n),)), shifted),
    Fault(
        "the second of two summands is lost", _rule(("plus", "plus"), lambda n, step: (steps.plus(n),)), shifted_twice
    ),
    Fault("the logarithm of a factor is lost", _rule(("times", "log"), lambda n, step: (step,)), logarithms),
    Fault("the power of a factor is lost", _rule(("times", "power"), lambda n, step: (step,)), logarithms),
]


@_fault(whole_parts)
def equality_is_lost_at_whole_numbers(patch):
    real = steps.carried_back

    def carried_back(chain, bound, *, or_equal=False):
        return real(chain, bound)

    patch.setattr(continuous, "carried_back", carried_back)


@_fault(whole_parts)
def a_whole_part_is_none(patch):
    patch.setattr(algebra, "floored", lambda value: value)
    patch.setitem(primitives.ELEMENTWISE, "floor", primitives.ELEMENTWISE["floor"]._replace(scalar=lambda value: value))


@_fault(in_few_bits)
def a_dtype_is_not_rounded(patch):
    patch.setattr(steps, "_edge_of_rounded", lambda bound, bits, *, or_equal: (bound, or_equal))


@_fault(in_few_bits)
def halves_are_rounded_up_by_a_whole_unit(patch):
    real = steps._edge_of_rounded

    def edge(bound, bits, *, or_equal):
        return real(bound, bits, or_equal=or_equal)[0] - 2.0**-bits, or_equal

    patch.setattr(steps, "_edge_of_rounded", edge)


@_fault(clamped)
def a_clamp_from_below_is_lost(patch):
    patch.setattr(continuous.Continuous, "at_least", lambda self, _: self)


@_fault(clamped)
def the_wrong_side_at_equality(patch):
    real = continuous.Continuous._back
    patch.setattr(
        continuous.Continuous, "_back", lambda self, bound, *, or_equal=False: real(self, bound, or_equal=not or_equal)
    )


@_fault(on_the_other_side)
def every_chain_increases(patch):
    patch.setattr(continuous.Continuous, "increasing", True)


@_fault(logarithms)
def a_root_is_a_square(patch):
    row = primitives.ELEMENTWISE["sqrt"]
    patch.setitem(primitives.ELEMENTWISE, "sqrt", row._replace(scalar=lambda value: algebra.raised(value, 2.0)))


@_fault(signs_and_remainders)
def a_remainder_has_the_sign_of_the_divisor(patch):
    row = primitives.ELEMENTWISE["fmod"]
    patch.setitem(primitives.ELEMENTWISE, "fmod", row._replace(scalar=algebra.remainder))


@_fault(signs_and_remainders)
def a_root_is_not_inverted(patch):
    row = primitives.ELEMENTWISE["rsqrt"]
    patch.setitem(primitives.ELEMENTWISE, "rsqrt", row._replace(scalar=primitives.ELEMENTWISE["sqrt"].scalar))


@_fault(signs_and_remainders)
def a_copied_sign_is_dropped(patch):
    row = primitives.ELEMENTWISE["copysign"]
    patch.setitem(primitives.ELEMENTWISE, "copysign", row._replace(scalar=lambda size, _: abs(size)))


@_fault(at_a_clamp)
def at_least_is_more_than(patch):
    row = primitives.COMPARISONS["greater_equal"]
    rule = primitives.COMPARISONS["greater"].scalar
    patch.setitem(primitives.COMPARISONS, "greater_equal", row._replace(scalar=rule))


@_fault(read_in_part)
def a_bool_that_was_read_is_true(patch):
    real = elementwise.known
    patch.setattr(
        elementwise, "known", lambda element: element if isinstance(element, deferred.Truth) else real(element)
    )


@_fault(chosen_elements)
def greater_is_less(patch):
    patch.setitem(primitives.COMPARISONS, "greater", primitives.COMPARISONS["less"])


# Several numbers


@_fault(extremes)
def the_largest_is_the_smallest(patch):
    real = rows.largest_of
    patch.setattr(rows, "largest_of", lambda parts, *, largest=True: real(parts, largest=not largest))


@_fault(of_several)
def a_sum_is_a_product(patch):
    real = continuous.joined
    for module in (continuous, algebra):
        patch.setattr(module, "joined", lambda name, one, other: real({"add": "multiply"}.get(name, name), one, other))


@_fault(of_several)
def a_step_of_a_sum_is_lost(patch):
    patch.setattr(continuous.Joined, "then", lambda self, step: self)


@_fault(of_several_twice)
def what_several_answered_is_not_kept(patch):
    patch.setattr(together.Together, "learn", lambda self, answer: None)


# Races


@_fault(raced)
def the_first_clock_loses(patch):
    patch.setattr(rows, "winner", lambda row, *, largest=True, **more: races.winner(row, largest=not largest, **more))


@_fault(best_two)
def the_second_comes_first(patch):
    real = races._order
    patch.setattr(races, "_order", lambda *args, **more: real(*args, **more)[::-1])


def _rates(change):
    def plant(patch):
        real = races.clock_of

        def clock_of(time):
            clock = real(time)
            return clock and clock._replace(rate=change(clock.rate))

        patch.setattr(races, "clock_of", clock_of)

    return plant


FAULTS += [
    Fault("a rate is its reciprocal", _rates(lambda rate: 1 / rate if rate else rate), raced),
    Fault("all rates are one", _rates(lambda rate: 1.0 if rate else rate), raced_by_gumbel),
    Fault("rates are squares", _rates(lambda rate: rate * rate), best_two),
]


@_fault(raced_twice)
def an_order_is_not_kept(patch):
    patch.setattr(uniform.Runner, "put_behind", lambda self, other: None)


@_fault(raced_late)
def a_late_start_is_lost(patch):
    patch.setattr(races, "clock_of", lambda time, of=races.clock_of: (clock := of(time)) and clock._replace(start=0.0))


@_fault(raced_late_and_clamped)
def a_late_clock_is_plain_if_it_may_ring_at_once(patch):
    def plain(self):
        late = self.at_once or abs(self.rate * self.start)
        return late <= 1e-15

    patch.setattr(races.Clock, "plain", property(plain))


@_fault(raced_mirrored)
def the_clock_of_the_other_end(patch):
    patch.setattr(
        races,
        "clock_of",
        lambda time, of=races.clock_of: (clock := of(time)) and clock._replace(flipped=not clock.flipped),
    )


# Outcomes


def _weights(function, change):
    def plant(patch):
        real = functions.ANSWERS[function]
        patch.setitem(
            functions.ANSWERS, function, lambda run, given, *args, **named: real(run, change(given), *args, **named)
        )

    return plant


FAULTS += [
    Fault("weights are squared", _weights(torch.multinomial, lambda given: given * given), drawn_by_torch),
    Fault("weights are in another order", _weights(torch.multinomial, lambda given: given.flip(-1)), drawn_by_torch),
    Fault("heads are tails", _weights(torch.bernoulli, lambda given: 1 - given), drawn_by_torch),
]


@_fault(drawn_by_torch)
def whole_numbers_begin_at_zero(patch):
    real = functions._ends
    patch.setattr(functions, "_ends", lambda given, named: (0, real(given, named)[1] - real(given, named)[0]))


@_fault(drawn_by_numpy)
def the_last_whole_number_is_left_out(patch):
    real = NumpyGenerator.integers
    patch.setattr(
        NumpyGenerator, "integers", lambda self, low, high=None, *a, endpoint=False, **k: real(self, low, high, *a, **k)
    )


@_fault(drawn_by_numpy)
def what_was_taken_is_put_back(patch):
    def one_by_one(draws, site, weights, count):
        left = np.array(weights, dtype=np.float64)
        return [draws.categorical(left / left.sum(), (*site, place)) for place in range(count)]

    patch.setattr(numpy_calls, "one_by_one", one_by_one)


@_fault(drawn_by_numpy)
def the_chance_of_heads_is_that_of_tails(patch):
    real = distributions.binomial_pmf
    patch.setattr(distributions, "binomial_pmf", lambda trials, chance: real(trials, 1 - chance))


# Parameters


@_fault(scaled_by_numpy)
def a_uniform_begins_at_zero(patch):
    real = NumpyGenerator.uniform
    patch.setattr(NumpyGenerator, "uniform", lambda self, low=0.0, high=1.0, size=None: real(self, 0.0, high, size))


@_fault(scaled_by_numpy)
def a_scale_is_a_rate(patch):
    real = NumpyGenerator.exponential
    patch.setattr(NumpyGenerator, "exponential", lambda self, scale=1.0, size=None: real(self, 1 / scale, size))


@_fault(scaled_by_numpy)
def the_place_of_a_gumbel_is_lost(patch):
    real = NumpyGenerator.gumbel
    patch.setattr(NumpyGenerator, "gumbel", lambda self, loc=0.0, scale=1.0, size=None: real(self, 0.0, scale, size))


@_fault(scaled_by_numpy)
def a_pareto_is_an_exponential(patch):
    law, parameters = distributions.spelled("numpy")["pareto"]
    wrong = law._replace(image=lambda apply, drawn, a: apply("divide", drawn, a))
    patch.setitem(numpy_calls.LAWS, "pareto", numpy_calls._of_row("pareto", wrong, parameters))


@_fault(scaled_by_torch)
def the_rate_of_an_exponential_is_lost(patch):
    real = functions.ANSWERS[torch.Tensor.exponential_]
    patch.setitem(
        functions.ANSWERS,
        torch.Tensor.exponential_,
        lambda run, tensor, lambd=1.0, *, generator=None: real(run, tensor, 1.0, generator=generator),
    )


@_fault(scaled_by_torch)
def the_bounds_of_a_uniform_are_lost(patch):
    real = functions.ANSWERS[torch.Tensor.uniform_]
    patch.setitem(
        functions.ANSWERS,
        torch.Tensor.uniform_,
        lambda run, tensor, *_, generator=None: real(run, tensor, generator=generator),
    )


@_fault(scaled_by_python)
def a_rate_of_python_is_a_scale(patch):
    real = python_calls._expovariate
    patch.setattr(python_calls, "_expovariate", lambda self, lambd=1.0: real(self, 1 / (2 * lambd)))


# Elements and states


@_fault(chosen_elements)
def the_other_element_is_chosen(patch):
    def chosen(self):
        condition, left, right = self._elements
        return right if deferred.known(condition) else left

    patch.setattr(deferred.Choice, "chosen", chosen)


@_fault(chosen_elements)
def a_count_is_one_less(patch):
    real = deferred.Count.below
    patch.setattr(deferred.Count, "below", lambda self, bound: real(self, bound + 1))


@_fault(scaled_by_torch)
def elements_are_in_another_order(patch):
    real = functions.TorchDraws.noise

    def noise(self, *args):
        return real(self, *args).flip(-1)

    patch.setattr(functions.TorchDraws, "noise", noise)


@_fault(written_into)
def what_is_written_into_a_buffer_is_lost(patch):
    patch.setattr(filled, "_set", lambda *_: None)


@_fault(several_draws_of_torch)
def a_generator_is_not_moved_on(patch):
    def states(self, generator, device, advance, number):
        yield from [b"one state"] * number

    patch.setattr(torch_streams.TorchStreams, "states", states)


@_fault(seeded_again)
def one_state_is_taken_for_two(patch):
    real = streams.Streams.draw
    patch.setattr(streams.Streams, "draw", lambda self, site, state, way: real(self, site, None, way))
