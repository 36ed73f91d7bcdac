"""``float`` of a random number: calls of it are answered, and it is the type that it is for everybody else."""

from __future__ import annotations

import builtins
import inspect
import math
import random
from math import log

import numpy as np
import pytest
import torch
from numpy import float64

from specverify.base.verdict import Status
from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.law import target_law, total_variation
from specverify.laws.scenarios import handed_task
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_verifier

pytestmark = pytest.mark.usefixtures("modules_searched")

HALF, PLAIN = 0.5, float
RNG = np.random.default_rng()


def halved():
    return lambda u: float(u) / 2 + float(u) / 2


WAYS = {
    "random": lambda: float(random.random()),
    "NumPy": lambda: float(RNG.random()),
    "an array of one": lambda: float(RNG.random(1)[0]),
    "a tensor": lambda: float(torch.rand(1)),
    "a tensor without dimensions": lambda: float(torch.rand(())),
    "the item of a tensor": lambda: float(torch.rand(1, dtype=torch.float64).item()),
    "a whole number": lambda: float(random.getrandbits(53)) / 2**53,
    "in a function that is made in the run": lambda: halved()(random.random()),
    "in a comprehension": lambda: next(float(u) for u in [random.random()]),
    "by another name": lambda: PLAIN(random.random()),
    "in float32": lambda: np.float32(RNG.random()),
    "in float32, a tensor": lambda: np.float32(torch.rand(())),
    "in float32 and back": lambda: float(np.float32(random.random())),
    "in float64, by a name of its own": lambda: float64(RNG.random(2)[1]),
    "in the longest float": lambda: np.longdouble(random.random()),
    "a logarithm that was imported by name": lambda: math.exp(log(random.random())),
}


def law_of(decide):
    def program(draws):
        with answered_everywhere(draws):
            return (bool(decide()),)

    return patches.again(lambda: program_law(program)).probabilities


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_comparison_of_it_is_the_comparison_of_the_number(way):
    law = law_of(lambda: way() < 0.3)
    assert law[(True,)] == pytest.approx(0.3, abs=1e-7)
    squared = law_of(lambda: way() ** 2 < 0.3)
    assert squared[(True,)] == pytest.approx(math.sqrt(0.3), abs=1e-7)


def test_a_half_is_rounded():
    """The largest uniforms become 1, and 0.3 lies between two numbers that a half can be."""
    assert law_of(lambda: np.float16(random.random()) >= 1)[(True,)] == pytest.approx(2**-12, rel=1e-9)
    below = float(np.nextafter(np.float16(0.3), np.float16(0)))
    edge = below + 2**-13  # half a spacing between 0.25 and 0.5
    assert law_of(lambda: np.float16(random.random()) < 0.3)[(True,)] == pytest.approx(edge, rel=1e-9)
    assert np.float16 is np.dtype("float16").type


def made_of_it():
    """What is done with the type itself, in a module that has asked and beside a call that is led."""
    kinds = float(HALF), float("inf"), [*map(float, (1, 2))], np.zeros(1, dtype=float).dtype
    return float is builtins.float, type(kinds[0]) is float, isinstance(float(1), float), float.fromhex("0x1p-1"), kinds


def test_the_type_is_what_it_was_while_its_calls_are_led():
    assert law_of(lambda: float(random.random()) < 0.5)
    before, alone = made_of_it.__code__, made_of_it()
    with answered_everywhere(None):
        assert made_of_it.__code__ is not before
        assert made_of_it() == alone
        kept = halved()
        assert (log, math.log) == (math.log, log)
    assert made_of_it.__code__ is before
    assert made_of_it() == alone
    assert (kept("2.5"), log) == (2.5, math.log)


REFUSED = {
    "by map": lambda: next(map(float, [random.random()])),
    "by the type of a dtype": lambda: np.dtype("f4").type(random.random()),
}


@pytest.mark.parametrize("way", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_call_of_that_name_is_refused_with_the_way_out(way):
    with pytest.raises(NeedsValue, match=r"__float__ needs .*: call float as float\(u\).*test_patches.py:"):
        law_of(lambda: way() < 0.3)


def with_floats(p, q, draft_tokens):
    """A verifier of one draft as people write it."""
    for i, token in enumerate(draft_tokens.tolist()):
        accept = min(1.0, float(p[i, token]) / float(q[i, token]))
        if float(torch.rand(1).item()) >= accept:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial((p[i] - q[i]).clamp(min=0), 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@pytest.mark.thorough
def test_a_verifier_that_makes_floats_of_its_numbers_is_judged():
    (verdict,) = check_verifier(with_floats, gammas=(1,), checks=["law_is_target"], quick=True)
    assert verdict.status is Status.HOLDS


def test_the_calls_that_tell_which_arrays_it_takes_are_made_again_once_its_floats_are_known():
    source = inspect.getsource(with_floats)
    exec(source, names := {"torch": torch})  # nobody has met its calls of ``float``
    subject = verifier_subject(names["with_floats"], "with_floats", (1,))
    scenario = next(each for each in subject.scenarios if each.horizon == 2)
    decoder = subject.variants[-1].build(handed_task(scenario, rational=False))
    law = patches.again(lambda: decoder_law(decoder, scenario.prompt))
    assert total_variation(law, target_law(handed_task(scenario), scenario.prompt)).high < 1e-6


def test_a_function_that_is_defined_again_is_another_one():
    source = "def below(u):\n    return float(u) < 0.25\n"
    for names in ({}, {}, shared := {}, shared):
        exec(compile(source, "below.py", "exec"), names)

        def law(below=names["below"]):
            def program(draws):
                with answered_everywhere(draws):
                    return below(random.random())

            return program_law(program).probabilities

        assert patches.again(law) == {True: 0.25, False: 0.75}


@pytest.mark.thorough
def test_a_function_that_is_made_in_every_run_comes_to_an_end():
    def law():
        def program(draws):
            names = {}
            exec("def below(u):\n    return float(u) < 0.25\n", names)
            with answered_everywhere(draws):
                return names["below"](random.random())

        return program_law(program)

    with pytest.raises(NeedsValue, match="float"):
        patches.again(law)
