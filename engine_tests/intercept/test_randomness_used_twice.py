"""What counts as randomness used twice: not one lookup in several steps, but one number or state for several things."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.intercept.audit import audited
from specverify.intercept.torch.calls import NeedsValue, answered_by
from specverify.laws.draws import Tape
from specverify.laws.paths import paths
from test_support.intercept.torch_laws import law_of

P = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
Q = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)


def reuses(program):
    """Return the sentences about everything that is used twice on the paths of a program."""

    def run(draws):
        with answered_by(draws):
            return program()

    with audited() as found:
        for _ in paths(run):
            pass
    return [reuse.sentence for reuse in found]


# One lookup in several steps, and one number for several things


def bisected(uniform):
    low, high, bounds = 0, 3, P.cumsum(0)
    while low < high:
        middle = (low + high) // 2
        if uniform < bounds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def branches(uniform):
    if uniform < 0.2:
        return 0
    if uniform < 0.5:
        return 1
    return 2


ONE_LOOKUP = {
    "searchsorted": lambda u: int(torch.searchsorted(P.cumsum(0), u)),
    "all at once": lambda u: int((u >= P.cumsum(0)).sum()),
    "all at once, the last left out": lambda u: int((u >= P.cumsum(0)[:-1]).sum()),
    "first above": lambda u: int((P.cumsum(0) > u).to(torch.int64).argmax()),
    "from the top": lambda u: int((u < P.cumsum(0).flip(0)).sum()),
    "upper tail": lambda u: int((1 - P.cumsum(0) > u).sum()),
    "scan to the end": lambda u: sum(bool(u >= bound) for bound in P.cumsum(0)),
    "bisection": bisected,
    "branches": branches,
    "the same question twice": lambda u: (bool(u < 0.3), bool(u.float() < np.float32(0.3))),
}


@pytest.mark.parametrize("look_up", ONE_LOOKUP.values(), ids=ONE_LOOKUP)
def test_one_lookup_in_several_steps_is_one_decision(look_up):
    assert reuses(lambda: look_up(torch.rand((), dtype=torch.float64))) == []


def test_thresholds_in_any_order_are_one_number_for_several_things():
    """What tells them apart are the thresholds: those of a CDF go up, ratios of positions go up and down."""

    def program(pairs):
        row = int(torch.multinomial(P[:2], 1))
        return (torch.rand(1) <= torch.tensor(pairs)[row]).tolist()

    assert len(reuses(lambda: program([[0.3, 0.7], [0.7, 0.3]]))) == 1
    assert reuses(lambda: program([[0.3, 0.7], [0.2, 0.9]])) == []


def test_one_noise_for_all_entries_of_a_race_is_named():
    found = []

    def program():
        nonlocal found
        with audited() as found:
            return int((torch.log(P) - torch.log(-torch.log(torch.rand(1, dtype=torch.float64)))).argmax())

    with pytest.raises(NeedsValue), answered_by(Tape(0)):
        program()
    assert "decides more than one thing" in found[0].sentence


@pytest.mark.parametrize(("second", "named"), [(P, 0), (Q, 1)])
def test_a_second_race_is_named_unless_the_winner_alone_is_left_out(second, named):
    """Gumbel top-k races again with the old weights; a race of other weights is another decision."""
    with audited() as found, answered_by(Tape(0)):
        clock = torch.empty_like(P).exponential_()
        won = torch.arange(3) == int((P / clock).argmax())
        int((torch.where(won, 0.0, second) / clock).argmax())
    assert bool(found) == bool(named)


# States of generators


def seeded_again():
    torch.manual_seed(5)
    first = torch.rand(2, dtype=torch.float64)
    torch.manual_seed(5)
    return first[1], (torch.rand((), dtype=torch.float64), torch.rand((), dtype=torch.float64))[1]


def state_set():
    generator = torch.Generator()
    state = generator.get_state()
    first = torch.rand((), generator=generator, dtype=torch.float64)
    return first, torch.rand((), generator=generator.set_state(state), dtype=torch.float64)


def forked():
    with torch.random.fork_rng(devices=[]):
        first = torch.rand_like(P[0])
    return first, torch.empty_like(P[0]).uniform_()


def two_generators():
    return tuple(torch.rand((), generator=torch.Generator().manual_seed(2), dtype=torch.float64) for _ in range(2))


def copied():
    one, other = torch.Generator().manual_seed(2), torch.Generator()
    torch.rand(3, generator=one)
    other.set_state(one.get_state())
    return tuple(torch.rand((), generator=generator, dtype=torch.float64) for generator in (one, other))


@pytest.mark.parametrize("pair", [seeded_again, state_set, forked, two_generators, copied])
def test_uniforms_from_one_state_are_one_uniform(pair):
    def program():
        one, other = pair()
        return bool(one < 0.5), bool(other < 0.25)

    assert dict(law_of(program).probabilities) == {(True, True): 0.25, (True, False): 0.25, (False, False): 0.5}
    assert len(reuses(program)) == 1


def test_a_stream_that_goes_on_draws_afresh():
    def program():
        torch.manual_seed(5)
        first = bool(torch.rand(()) < 0.5)
        torch.manual_seed(6)
        return first, bool(torch.rand(()) < 0.5), bool(torch.rand(()) < 0.5)

    assert set(law_of(program).probabilities.values()) == {0.125}
    assert reuses(program) == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: torch.multinomial(P, 1, generator=generator),
        lambda generator: torch.bernoulli(P[:1], generator=generator).long(),
        lambda generator: torch.randint(3, (1,), generator=generator),
        lambda generator: torch.randperm(3, generator=generator)[:1],
    ],
)
def test_one_outcome_of_one_state_is_drawn_once(draw):
    def program():
        pair = [draw(torch.Generator().manual_seed(2)) for _ in range(2)]
        return torch.cat(pair)

    law = law_of(program)
    assert all(one == other for one, other in law.probabilities)
    assert sum(law.probabilities.values()) == pytest.approx(1)
    assert len(law.probabilities) > 1
    assert len(reuses(lambda: tuple(program().tolist()))) == 1


def test_two_functions_that_draw_from_one_state_are_refused():
    def program():
        first = torch.multinomial(P, 1, generator=torch.Generator().manual_seed(2))
        second = torch.bernoulli(P[:1], generator=torch.Generator().manual_seed(2))
        return int(first), int(second)

    with audited() as found, pytest.raises(NeedsValue, match=r"draw from one state of a generator, in different ways"):
        law_of(program)
    assert len(found) == 1


def test_an_outcome_nobody_looks_at_hangs_together_with_nothing():
    def program():
        first, _ = (torch.multinomial(pmf, 1, generator=torch.Generator().manual_seed(2)) for pmf in (P, Q))
        return int(first)

    assert law_of(program).probabilities == pytest.approx(dict(enumerate(P.tolist())))
    assert reuses(program) == []


def test_the_state_a_program_starts_in_does_not_matter_and_is_given_back():
    generator = torch.Generator().manual_seed(9)

    def program():
        return bool(torch.rand((), generator=generator) < 0.5), bool(torch.rand(()) < 0.5)

    states = generator.get_state(), torch.get_rng_state()
    first = law_of(program)
    assert torch.equal(generator.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), states[1])
    torch.rand(3, generator=generator)
    torch.rand(3)
    assert law_of(program) == first
    assert set(first.probabilities.values()) == {0.25}
