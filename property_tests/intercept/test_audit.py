"""The audit of NumPy's and the standard library's randomness: what is used twice is named, one lookup is not."""

from __future__ import annotations

import bisect
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from specverify.intercept import audit
from specverify.intercept.audit import audited
from specverify.intercept.numpy import numpy_answered_by
from specverify.intercept.python import random_answered_by
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.laws.paths import paths

P, Q, CDF = np.array([0.5, 0.125, 0.375]), np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.625, 1.0])
HERE = r"test_audit\.py:\d+"


def answered(program):
    def run(draws):
        with numpy_answered_by(draws), random_answered_by(draws):
            return program()

    return run


def reuses(program):
    """Return everything that is used twice on the paths of a program."""
    with audited() as found:
        for _ in paths(answered(program)):
            pass
    return found


def line(text):
    """Return where this file holds a text, as the audit names it."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"test_audit.py:{next(number for number, held in enumerate(source, 1) if text in held)}"


ONE_LOOKUP = {
    "searchsorted": lambda u: np.searchsorted(CDF, u),
    "bisect": lambda u: bisect.bisect(CDF.tolist(), u),
    "all at once": lambda u: np.sum(u >= CDF),
    "scan": lambda u: next(token for token, bound in enumerate(CDF) if u < bound),
    "scan from the top": lambda u: next((token for token in (2, 1) if u >= CDF[token - 1]), 0),
    "branches": lambda u: 0 if u < 0.5 else (1 if u < 0.625 else 2),
    "the same question twice": lambda u: (u < 0.5, 2 * u < 1),
    "one CDF twice": lambda u: (u < CDF).any() and np.flatnonzero((u < CDF) & (CDF > 0))[0],
    "rest of a coin": lambda u: u < 0.5 and u / 0.5 < 0.25,
}


@pytest.mark.parametrize("look_up", ONE_LOOKUP.values(), ids=ONE_LOOKUP)
@pytest.mark.parametrize("draw", [lambda: np.random.default_rng().random(), lambda: random.uniform(0, 1)])
def test_one_lookup_in_several_steps_is_one_decision(look_up, draw):
    assert reuses(lambda: look_up(draw())) == []


def test_the_librarys_own_lookups_are_one_decision():
    assert reuses(lambda: random.choices(range(3), weights=P.tolist(), k=2)) == []
    assert reuses(lambda: np.random.default_rng().choice(3, size=2, p=P)) == []


def rejection(draft, target):
    """A coin that is looked up again in the residual."""
    u = random.random()  # drawn
    token = int(np.random.default_rng().choice(3, p=draft))
    if u < target[token] / draft[token]:  # coin
        return token
    residual = np.maximum(target - draft, 0).cumsum()
    return int(np.searchsorted(residual / residual[-1], u))  # lookup


def test_a_coin_that_is_looked_up_again_is_named_with_its_lines():
    target = np.array([0.375, 0.375, 0.25])
    drafts = np.array([[0.125, 0.25, 0.625], [0.25, 0.125, 0.625]])
    (found,) = reuses(lambda: rejection(drafts[np.random.default_rng().integers(2)], target))
    drawn, coin, lookup = line("# drawn"), line("# coin"), line("# lookup")
    assert found == audit.Reuse(
        f"the uniform drawn by random.random at {drawn}",
        coin,
        lookup,
        f"the uniform drawn by random.random at {drawn} decides at {coin} and again at {lookup}",
    )


@pytest.mark.parametrize(("ratios", "named"), [(((0.25, 0.75), (0.75, 0.25)), 1), (((0.25, 0.75), (0.125, 0.5)), 0)])
def test_one_number_for_several_positions_is_named_when_their_thresholds_go_up_and_down(ratios, named):
    def in_a_loop():
        row = np.random.default_rng().integers(2)
        u = random.random()
        return [u < ratio for ratio in ratios[row]]

    def at_once():
        row = np.random.default_rng().integers(2)
        return np.random.default_rng().random(1) < np.array(ratios[row])

    assert len(reuses(in_a_loop)) == len(reuses(at_once)) == named


def test_thresholds_that_are_always_on_one_side_look_like_one_lookup():
    """The rejecting coin, at least 2/5, is looked up in (2/3, 1): a lookup over two lines would ask no less."""
    target, draft = np.array([0.375, 0.375, 0.25]), np.array([0.125, 0.25, 0.625])
    assert reuses(lambda: rejection(draft, target)) == []


def test_evidence_of_several_blocks_is_not_put_together():
    for row in ((0.25, 0.75), (0.75, 0.25)):
        assert reuses(lambda row=row: [u < bound for u in [random.random()] for bound in row]) == []


@pytest.mark.parametrize(("weights", "named"), [(P, False), (Q, True)])
def test_a_second_race_is_named_unless_its_weights_are_the_old_ones(weights, named):
    def program():
        clocks = np.random.default_rng().exponential(size=3)
        won = np.argmax(P / clocks)
        return won, np.argmax(np.where(np.arange(3) == won, 0.0, weights) / clocks)

    with audited() as found:
        answered(program)(Tape(0))
    assert bool(found) is named


def test_noise_that_raced_and_is_compared_is_named_also_the_other_way_round():
    def compared_after():
        clocks = np.random.default_rng().exponential(size=2)
        won = np.argmin(clocks / P[:2])
        return won, clocks[0] < 0.5

    def raced_after():
        clocks = np.random.default_rng().exponential(size=2)
        coin = clocks[0] < 0.5
        return coin, np.argmin(clocks)

    for program in (compared_after, raced_after):
        with audited() as found:
            answered(program)(Tape(0))
        assert len(found) == 1
        assert int(found[0].second.partition(":")[2]) == int(found[0].first.partition(":")[2]) + 1


# Seeds

PAIRS = {
    "default_rng": lambda: [np.random.default_rng(3).random() for _ in range(2)],
    "RandomState": lambda: [np.random.RandomState(3).rand(), np.random.RandomState(3).uniform()],
    "np.random.seed": lambda: [(np.random.seed(3), np.random.rand())[1] for _ in range(2)],  # noqa: NPY002
    "random.Random": lambda: [random.Random(3).random(), random.Random(3).uniform(0, 1)],
    "random.seed": lambda: [(random.seed("a"), random.seed(3), random.random())[2] for _ in range(2)],
    "after as many draws": lambda: [np.random.default_rng(3).random(2)[1], two_singles(np.random.default_rng(3))],
}


def two_singles(rng):
    return (rng.random(), rng.random())[1]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_numbers_after_one_seed_are_one_number(pair):
    def program():
        one, other = pair()
        return one < 0.5, other < 0.25

    law = program_law(answered(program)).probabilities
    assert dict(law) == {(True, True): 0.25, (True, False): 0.25, (False, False): 0.5}
    (found,) = reuses(program)
    assert "from one state of" in found.sentence


def test_a_choice_by_weights_takes_the_number_that_a_coin_of_the_same_state_took():
    def program():
        return random.Random(3).random() < 0.5, random.Random(3).choices((0, 1), (1, 3))[0]

    law = program_law(answered(program)).probabilities
    assert dict(law) == {(True, 0): 0.25, (True, 1): 0.25, (False, 1): 0.5}
    (found,) = reuses(program)
    assert "from one state of" in found.sentence


@pytest.mark.parametrize(
    "pair",
    [
        lambda: [np.random.default_rng(seed).random() for seed in (3, 4)],
        lambda: [np.random.default_rng().random() for _ in range(2)],
        lambda: [np.random.default_rng(3).random(), np.random.RandomState(3).rand()],
        lambda: [random.Random(3).random(), random.random()],
        lambda: list(np.random.default_rng(3).random(2)),
    ],
)
def test_other_streams_and_numbers_are_independent(pair):
    def program():
        one, other = pair()
        return one < 0.5, other < 0.5

    assert set(program_law(answered(program)).probabilities.values()) == {0.25}
    assert reuses(program) == []


def test_one_outcome_after_one_seed_is_drawn_once():
    def program():
        return tuple(int(np.random.default_rng(3).choice(3, p=P)) for _ in range(2))

    law = program_law(answered(program)).probabilities
    assert dict(law) == {(token, token): mass for token, mass in enumerate(P.tolist())}
    assert len(reuses(program)) == 1


def test_what_is_certain_draws_nothing_and_leaves_its_state_to_the_next_call():
    def program():
        rng = np.random.default_rng(0)
        first = [rng.multinomial(1, [0.0, 0.0, 1.0]).argmax() for _ in range(2)]
        return (*first, bool(rng.random() < 0.25))

    assert dict(program_law(answered(program)).probabilities) == {(2, 2, True): 0.25, (2, 2, False): 0.75}
    assert reuses(program) == []


LOOKUPS = {
    "choice, choice": lambda: (chosen(P), chosen(Q)),
    "choice, number": lambda: (chosen(P), np.random.default_rng(3).random() < 0.45),
    "number, choice": lambda: (np.random.default_rng(3).random() < 0.45, chosen(P)),
    "choice, number, choice": lambda: (chosen(P), np.random.default_rng(3).random() < 0.3, chosen(Q)),
    "number, choice, number": lambda: (
        *(np.random.default_rng(3).random() < 0.45, chosen(P)),
        *(np.random.default_rng(3).random() < bound for bound in (0.2, 0.9)),
    ),
    "second of an array": lambda: (int(np.random.default_rng(3).choice(3, size=2, p=P)[1]), second_number() < 0.45),
    "RandomState": lambda: (int(np.random.RandomState(3).choice(3, p=P)), np.random.RandomState(3).rand() < 0.45),
}


def chosen(pmf):
    return int(np.random.default_rng(3).choice(3, p=pmf))


def second_number():
    rng = np.random.default_rng(3)
    return (rng.random(), rng.random())[1]


def at_number(program, u):
    """Return what the program returns if the number that it draws again and again has the value u."""
    generator = {"random": lambda self: u, "choice": lambda self, n, size=None, p=None: looked_up(u, p, size)}
    stand_in = type("Generator", (), {**generator, "rand": lambda self: u})()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: stand_in)
        patch.setattr(np.random, "RandomState", lambda seed: stand_in)
        return program()


def looked_up(u, pmf, size):
    where = np.searchsorted(np.cumsum(pmf), u, side="right")
    return where if size is None else np.full(size, where)


@pytest.mark.parametrize("program", LOOKUPS.values(), ids=LOOKUPS)
def test_lookups_of_one_number_have_their_joint_law(program):
    """The number is uniform, so each result has the share of the values that give it."""
    law = program_law(answered(program)).probabilities
    values = (np.arange(1000) + 0.5) / 1000
    expected = Counter(at_number(program, u) for u in values)
    assert set(law) == set(expected)
    assert all(law[result] == pytest.approx(number / 1000, abs=1e-12) for result, number in expected.items())
    assert "from one state of" in reuses(program)[0].sentence


@pytest.mark.parametrize(
    "other", [lambda: int(np.random.default_rng(3).choice(3)), lambda: np.random.default_rng(3).exponential() < 0.5]
)
def test_other_draws_after_one_seed_are_refused_and_named(other):
    program = answered(lambda: (int(np.random.default_rng(3).choice(3, p=P)), other()))
    with audited() as found, pytest.raises(NeedsValue, match=rf"one state of.*{HERE}.*in different ways|{HERE}"):
        program(Tape(0))
    assert len(found) == 1


@pytest.mark.parametrize(("seed", "refused"), [(3, True), (4, False)])
@pytest.mark.parametrize("forced_first", [True, False])
def test_a_forced_number_and_an_outcome_of_one_state_are_refused(seed, refused, forced_first):
    """The forced value may contradict the outcome."""

    def coin():
        return np.random.default_rng(seed).random() < 0.2

    program = (lambda: (coin(), chosen(P))) if forced_first else (lambda: (chosen(P), coin()))
    expected = pytest.raises(NeedsValue, match="from one state") if refused else nullcontext()
    with numpy_answered_by(Tape(0), 0.0), expected:
        program()


def test_nothing_is_noted_outside_a_block():
    uniform = {}

    def program():
        uniform["it"] = random.random()
        return uniform["it"] < 0.5, uniform["it"] < 0.25

    answered(program)(Tape(0))
    assert uniform["it"].unknown.uniform.known.questions == []
    assert audit.place() == ""
    with audited():
        assert audit.place() == line("assert audit.place() == line(")
