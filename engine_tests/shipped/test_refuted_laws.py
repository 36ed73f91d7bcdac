"""Every law that is refuted, seen again by plain sampling: the code with its own random numbers, nothing answered.

The event is where the enumerated law is above the target's. Its frequency must be that of the enumerated law, and must
not be that of the target; a control's frequency of the same event must be the target's. Hoeffding's bound, with a false
alarm of 1e-6 a comparison.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from math import log, sqrt

import pytest

from reference import Claim, Sampled, generate
from specverify.base.verdict import Status
from specverify.intercept.cpython import patches
from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.law import Law, target_law, total_variation
from specverify.laws.scenarios import handed_task
from specverify.subjects.engine_making import models_in
from specverify.subjects.seeded import seeded
from test_support.shipped.papers import PAPERS
from test_support.shipped.released import LAW, subject_of

RUNS = 12_000
BOUND = sqrt(log(2 / 1e-6) / (2 * RUNS))


def seen_well(released):
    """Return a scenario, its place among the loop's, and the laws there, which must be far enough apart to be seen."""
    places = (
        enumerate(released.shapes) if released.loop else [(-1, scenario) for scenario in reversed(released.scenarios)]
    )
    subject = subject_of(released)
    for place, scenario in places:
        law = patches.again(partial(enumerated, subject, released.loop, scenario, place))
        target = target_law(handed_task(scenario, rational=False), scenario.prompt)
        if total_variation(Law(law), target).low > 2 * BOUND:
            return scenario, law, target
    raise ValueError(f"no scenario of {released.what} has a law that {RUNS} runs see to be wrong")


def enumerated(subject, loop, scenario, place):
    if loop:
        with subject.programs[place].open() as run:
            return program_law(run).probabilities
    return decoder_law(subject.variants[-1].build(handed_task(scenario, rational=False)), scenario.prompt).probabilities


def own_numbers(released, scenario):
    """Return a call that decodes once with the code's own random numbers."""
    if released.loop:
        decode = released.make()(models_in(scenario))
        return lambda: tuple(decode())[: scenario.horizon]
    variant, task, draws = subject_of(released).variants[-1], handed_task(scenario, rational=False), Sampled(1)
    plain = variant.intercepted.build(task, lambda _: nullcontext())
    return lambda: generate(plain, scenario.prompt, draws).tokens


def frequency(run, event):
    with seeded(1):
        return sum(run() in event for _ in range(RUNS)) / RUNS


REFUTED = [place for place, paper in enumerate(PAPERS) if paper.expected.get(LAW) is Status.REFUTED]


@pytest.mark.parametrize("place", REFUTED, ids=[f"{PAPERS[place].paper}: {PAPERS[place].what}" for place in REFUTED])
def test_a_law_that_is_refuted_is_wrong_in_a_plain_sample_too(place):
    released = PAPERS[place]
    scenario, law, target = seen_well(released)
    run = own_numbers(released, scenario)
    event = {outcome for outcome, mass in law.items() if mass > target.get(outcome, 0)}
    expected, wrong = (sum(map(partial(_mass, masses), event)) for masses in (target, law))
    seen = frequency(run, event)
    print(f"{scenario.name}: {seen:.4f} of {RUNS}, enumerated {wrong:.4f}, target {expected:.4f}, bound {BOUND:.4f}")
    assert abs(seen - wrong) < BOUND < abs(seen - expected)
    control = next((paper for paper in PAPERS[place:] if paper.control and paper.paper == released.paper), None)
    lossless = control is not None and Claim.LOSSLESS in control.claims and LAW not in control.expected
    if lossless and control.loop == released.loop:
        held = frequency(own_numbers(control, scenario), event)
        print(f"control, {control.what}: {held:.4f}")
        assert abs(held - expected) < BOUND


def _mass(masses, outcome):
    return float(masses.get(outcome, 0))
