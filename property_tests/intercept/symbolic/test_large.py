"""Very many random numbers at once: arrays of them are what their elements are, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specverify.intercept.audit import Draw
from specverify.intercept.refusals import NeedsValue, RuleDeclined
from specverify.intercept.symbolic import races
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.large import Clocks, VectorRace, Wide, law_of
from specverify.intercept.symbolic.primitives import applied, applied_to_many
from specverify.intercept.symbolic.races import Clock, law_of_first
from specverify.intercept.symbolic.vectors import Many, NoiseBlock, Steps, as_many, joined, uniforms
from specverify.laws.enumeration import program_law
from specverify.laws.rounding import collected

SIZE = 7
W = np.array([0.5, 2.0, 0.25, 1.0, 3.0, 1e-3, 40.0])
Z = np.array([0.0, 2.0, 0.25, 0.0, 3.0, 1.0, 4.0])
A = np.array([0.0, -2.5, 1.0, -np.inf, 3.0, 0.5, -1.0])


class Asked:
    """Keeps the pmf of every question, and answers with the first possible outcome."""

    def __init__(self):
        """Nothing was asked."""
        self.pmfs = []

    def categorical(self, pmf, site):  # noqa: ARG002 - as enumerators have it
        """Return the first possible outcome."""
        self.pmfs.append(np.asarray(pmf))
        return int(np.flatnonzero(np.asarray(pmf) > 0)[0])


def block(draws=None, size=SIZE):
    site = ("noise", "here.py:1")
    return NoiseBlock(draws or Asked(), site, Draw(site), size)


def noise(kind="uniform", draws=None, size=SIZE):
    found = uniforms(block(draws, size), (size,))
    if kind == "uniform":
        return found
    exponential = found.then(Steps("log")).then(Steps("times", -1.0))
    return exponential if kind == "exponential" else applied_to_many("negative", applied_to_many("log", exponential))


CHAINS = {
    "w / e": ("exponential", [("divide", W, None)]),
    "e / w": ("exponential", [("divide", None, W)]),
    "e * (1 / w)": ("exponential", [("multiply", None, 1 / W)]),
    "z / e, some 0": ("exponential", [("divide", Z, None)]),
    "e / z, some infinite": ("exponential", [("divide", None, Z)]),
    "a + g, some forbidden": ("gumbel", [("add", A, None)]),
    "a - log(-log u)": (
        "uniform",
        [("log", None), ("negative", None), ("log", None), ("subtract", np.where(np.isinf(A), -1.0, A), None)],
    ),
    "u ** (1 / w)": ("uniform", [("power", None, 1 / W)]),
    "log(u) / w": ("uniform", [("log", None), ("divide", None, W)]),
    "exp(log w - log e)": ("exponential", [("log", None), ("subtract", np.log(W), None), ("exp", None)]),
    "w / (e + 1e-3)": ("exponential", [("add", None, 1e-3), ("divide", W, None)]),
    "w / max(e, 1e-2)": ("exponential", [("maximum", None, 1e-2), ("divide", W, None)]),
    "w / clip(e)": ("exponential", [("clip", None, 1e-2, 5.0), ("divide", W, None)]),
    "sqrt of both": ("exponential", [("sqrt", None), ("divide", np.sqrt(W), None)]),
    "1 - u": ("uniform", [("subtract", 1.0, None), ("log", None), ("negative", None), ("divide", W, None)]),
    "scaled gumbel": ("gumbel", [("multiply", None, 0.7), ("add", np.where(np.isinf(A), -9.0, A), None)]),
}


def built(chain, values, apply):
    _kind, operations = CHAINS[chain]
    for name, *operands in operations:
        values = apply(name, *(values if operand is None else operand for operand in operands))
    return values


def one_by_one(many):
    return [many.element(place) for place in range(SIZE)]


@pytest.mark.parametrize("chain", CHAINS)
def test_an_array_is_what_its_elements_are(chain):
    kind = CHAINS[chain][0]
    start = noise(kind)
    together = built(chain, start, applied_to_many)
    for place in range(SIZE):

        def of_one(name, *operands, place=place):
            each = [operand[place] if isinstance(operand, np.ndarray) else operand for operand in operands]
            return applied(name, *each)

        alone = built(chain, start.element(place), of_one)
        found = together.element(place)
        assert isinstance(found, Continuous) == isinstance(alone, Continuous)
        if not isinstance(alone, Continuous):
            assert found == alone
            continue
        assert found.uniform.known is alone.uniform.known
        assert [step.name for step in found.steps] == [step.name for step in alone.steps]
        assert np.allclose([s.number for s in found.steps], [s.number for s in alone.steps], rtol=1e-14)
        assert np.allclose([found.low, found.high], [alone.low, alone.high], rtol=1e-14)
        assert np.allclose(found.ends(), alone.ends(), rtol=1e-14)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_law_of_a_race_is_that_of_its_elements(chain, largest):
    """Each is asked as one vector and, of the same numbers taken out, by the races of a few, which know some more."""

    def alone(draws):
        row = one_by_one(built(chain, noise(CHAINS[chain][0], draws), applied_to_many))
        return races.winner(row, largest=largest)

    race = VectorRace(built(chain, noise(CHAINS[chain][0]), applied_to_many), largest=largest)
    try:
        law = race.law()
    except NeedsValue:
        return
    expected = program_law(alone).probabilities
    assert np.allclose(law, [expected.get(place, 0.0) for place in range(SIZE)], atol=1e-13)


def test_most_of_these_races_have_a_law():
    """Else the comparison above would say little."""
    answered = 0
    for chain, (kind, _) in CHAINS.items():
        try:
            VectorRace(built(chain, noise(kind), applied_to_many), largest=True).law()
            answered += 1
        except NeedsValue:
            pass
    assert answered >= 11


def clocks(rng):
    """Return clocks that start later, ring at their start with a probability, or at an end for certain; or never."""
    count = rng.integers(1, 7)
    rate, start = rng.random(count) * 3 + 0.01, rng.choice([0, 0, 0.1, 0.25, 0.7], count) * 1.0
    at_once = np.where(rng.random(count) < 0.4, rng.random(count), 0.0)
    ends = start + rng.choice([0.2, 0.5, 1.0, 2.0], count) * 1.001
    end = np.where(rng.random(count) < 0.3, ends, np.inf)
    never = (rng.random(count) < 0.2) & (np.arange(count) > 0)
    return Clocks(
        *(np.where(never, other, own) for own, other in ((rate, 0), (start, np.inf), (at_once, 0), (end, np.inf)))
    )


@pytest.mark.parametrize("seed", range(5))
def test_clocks_in_arrays_ring_as_single_ones_do(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        many = clocks(rng)
        single = [Clock(*map(float, clock)) for clock in zip(*many, strict=True)]
        assert np.allclose(law_of(many), law_of_first(single, first_of_ties=True), atol=1e-12)


def test_a_clock_that_rings_at_once_for_certain_is_first():
    found = law_of(Clocks(np.ones(3), np.zeros(3), np.array([0.5, 1.0, 1.0]), np.full(3, np.inf)))
    assert np.allclose(found, [0.5, 0.5, 0.0])


def test_the_best_of_a_block_races_against_the_best_of_another():
    """As a kernel does it: the law of the block, times that inside the block, is the law of the whole."""
    draws = Asked()
    scores = applied_to_many("divide", W, noise("exponential", draws))
    halves = [
        VectorRace(scores.taken(lambda array, part=part: array[part]), largest=True)
        for part in (slice(0, 3), slice(3, 7))
    ]
    races.winner([half.best() for half in halves])
    of_block = draws.pmfs[-1]
    whole = np.concatenate([mass * half.law() for mass, half in zip(of_block, halves, strict=True)])
    assert np.allclose(whole, W / W.sum(), atol=1e-13)


def test_noise_races_once():
    scores = applied_to_many("divide", W, noise("exponential"))
    VectorRace(scores, largest=True).law()
    with pytest.raises(NeedsValue, match="second race"):
        VectorRace(scores, largest=True).law()
    with pytest.raises(NeedsValue, match="already decided a race"):
        scores.element(2).below(0.5)


def test_a_race_that_nobody_looks_at_leaves_the_noise_to_another():
    """One noise for all positions is right as long as one of them is emitted."""
    shared = noise("exponential")
    first, second = (
        VectorRace(applied_to_many("divide", weights, shared), largest=True).winner() for weights in (W, W[::-1])
    )
    assert isinstance(first, Wide)
    assert np.allclose(second.drawn.masses(), W[::-1] / W.sum())
    with pytest.raises(NeedsValue, match="second race"):
        first.drawn.masses()


def test_one_number_in_two_entries_is_no_race():
    found = noise("exponential")
    doubled = joined([found, found], np.concatenate)
    with pytest.raises(NeedsValue, match="one number is the noise of two entries"):
        VectorRace(doubled, largest=True).law()


def test_a_row_of_numbers_alone_is_no_draw():
    assert VectorRace(as_many([1.0, 3.0, 3.0]), largest=True).winner() == 1
    assert VectorRace(as_many([1.0, 3.0, 3.0]), largest=True).best() == 3.0
    assert VectorRace(as_many([2.0, 1.0, 3.0]), largest=False).best() == 1.0


def test_arrays_are_joined_with_numbers_and_not_with_another_chain():
    scores = applied_to_many("divide", W, noise("exponential"))
    padded = joined([scores, np.full(3, -1.0)], np.concatenate)
    assert padded.shape == (10,)
    assert [padded.element(place) for place in (7, 8, 9)] == [-1.0] * 3
    assert np.allclose(VectorRace(padded, largest=True).law()[:SIZE], W / W.sum())
    with pytest.raises(RuleDeclined):
        joined([scores, noise()], np.concatenate)


def test_what_is_not_one_function_for_all_is_left_to_the_elements():
    found = noise("gumbel")
    for name, *operands in (("sin", found), ("multiply", found, found), ("reciprocal", found), ("log", found)):
        with pytest.raises(RuleDeclined):
            applied_to_many(name, *operands)


def test_a_shift_that_no_generator_shows_is_none():
    found = applied_to_many("add", noise(), 1e-20)
    assert found.element(3).steps == ()
    with collected() as seen:
        assert applied_to_many("add", noise(), 1e-10).element(3).steps == ()
    assert seen.rounding().within == pytest.approx(7e-10)
    assert applied_to_many("add", noise(), 1e-6).element(3).steps != ()


def test_elements_of_an_array_are_one_number_wherever_they_are_taken_out():
    draws = Asked()
    found = noise("uniform", draws)
    assert found.element(2).below(0.25)
    assert found.element(2).below(0.5)
    assert len(draws.pmfs) == 1
    assert math.isclose(draws.pmfs[0][0], 0.25)
    assert isinstance(found, Many)
