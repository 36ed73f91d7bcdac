"""Engines that couple drafts and output by common noise: a right law decides if the scenarios' models made it.

With models of its own, or with a generator state that is used twice, the law of one scenario says too little.
"""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks import Conditions, check_named
from specverify.checks.draws_are_independent import examine_program
from specverify.intercept.refusals import NeedsValue
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject

CHECK = check_named("draws_are_independent")
OPEN = "open_after_4-v3-p012-h3-s61, then 012"


def argmax_with(noise, row):
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(np.asarray(row, float)) + noise))


def coupled(bonus):
    """Return the factory of an engine that draws draft and token of a position by one noise vector.

    ``bonus(row, noise)`` chooses the token after an accepted draft.
    """

    def make(scenario):
        rng = np.random.default_rng()

        def call(prompt):
            text, new = tuple(prompt), ()
            while len(new) < scenario.horizon:
                noise = rng.gumbel(size=(2, len(scenario.target(text))))
                draft = argmax_with(noise[0], scenario.draft(text + new))
                new += (argmax_with(noise[0], scenario.target(text + new)),)
                if new[-1] == draft:
                    new += (bonus(scenario.target(text + new), noise[1]),)
            return list(new[: scenario.horizon])

        return Made(call)

    return make


def seeded_again(scenario):
    def call(prompt):
        rng, new = np.random.default_rng(0), ()
        while len(new) < scenario.horizon:
            row = np.asarray(scenario.target((*prompt, *new)), float)
            new += (int(rng.choice(len(row), p=row / row.sum())),)
        return list(new)

    return Made(call)


def programs_of(make):
    return {program.name: program for program in made_subject(make, "an engine").programs}


def smallest_open(make):
    return programs_of(make)["generic-v2-p010-h2-s0"]


def test_a_coupled_engine_of_right_law_holds_with_a_note():
    found = examine_program(smallest_open(coupled(lambda row, noise: argmax_with(noise, row))), Conditions())
    assert not found.failed
    assert not found.unknown
    assert "decides more than one thing" in found.figures["notes"][0]
    assert found.figures["notes"] == [found.statement]


def test_a_coupled_engine_with_models_of_its_own_is_undecided():
    program = smallest_open(coupled(lambda row, noise: argmax_with(noise, row)))._replace(trace=None)
    found = examine_program(program, Conditions())
    assert found.unknown
    assert "It may do harm, here or with other models" in found.statement


def test_a_coupled_engine_of_wrong_law_is_refuted():
    found = examine_program(smallest_open(coupled(lambda row, noise: int(np.argmax(row)))), Conditions())
    assert found.failed


def test_a_generator_that_every_request_seeds_alike_does_not_hold():
    with pytest.raises(NeedsValue, match="begins from the seed of"):
        examine_program(programs_of(seeded_again)[OPEN], Conditions())
