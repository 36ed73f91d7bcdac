"""The correct serving engine owes the plain law in every situation, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specverify.base.verdict import Status
from specverify.checks import CHECKS
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.laws.scenarios import scenario_named, scenario_task
from specverify.mutants.serving.parts import CORRECT
from specverify.mutants.serving.planted import drafting_subject, promised, serving_subject
from specverify.mutants.serving.request import Parameters, Request, admit
from specverify.mutants.serving.situations import SITUATIONS
from specverify.run.verify import Checklist, verify_subject

every_situation = pytest.mark.parametrize("name", SITUATIONS)
NOTHING_TO_DRAW = {"greedy"}
OF_ENGINES = tuple(
    check
    for check in CHECKS
    if check.obstacle(serving_subject(CORRECT, SITUATIONS["one request"], "x")) is None
    and check.name not in {"samples_fit_law", "draws_are_independent"}
)


def program_of(name, parts=CORRECT):
    return serving_subject(parts, SITUATIONS[name], "engine").programs[0]


# The whole


@pytest.mark.thorough(keep=3)
@every_situation
def test_the_law_is_that_of_plain_decoding_in_rationals_and_drafts_are_accepted_and_rejected(name):
    """A situation in which nothing is drafted, or all of it accepted, would prove nothing."""
    program, law, coins = program_of(name), {}, set()
    with program.open() as run:
        for path in paths(run):
            law[path.outcome] = law.get(path.outcome, 0) + path.weight
            coins |= {step.outcome for step in path.decisions if step.site[0] == "accept"}
    assert law == dict(program.law())
    assert all(isinstance(mass, (int, Fraction)) for mass in law.values())
    assert coins == (set() if name in NOTHING_TO_DRAW else {0, 1})


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("temperature", {"temperature": 1}),
        ("penalties", {"repetition": Fraction(1)}),
        ("penalties", {"frequency": Fraction(1)}),
        ("bias", {"bias": ()}),
        ("top-k and top-p", {"top_k": 0}),
        ("top-k and top-p", {"top_p": Fraction(1)}),
        ("min-p", {"min_p": Fraction(0)}),
        ("bad words", {"bad_words": ((0, 0),)}),
        ("allowed tokens", {"allowed": ()}),
        ("minimum length", {"min_new": 0}),
    ],
)
def test_every_parameter_changes_the_law_it_is_tested_on(name, bare):
    setup = SITUATIONS[name]
    (body,) = setup.bodies
    without = setup._replace(bodies=({**body, "parameters": body["parameters"]._replace(**bare)},))
    assert promised(without) != promised(setup)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["one request", "penalties", "grammar", "end of sequence", "reports", "window"])
def test_every_check_of_engines_holds(name):
    verdicts = list(verify_subject(serving_subject(CORRECT, SITUATIONS[name], "engine"), Checklist(OF_ENGINES)))
    assert {verdict.check: verdict.statement for verdict in verdicts if verdict.status is not Status.HOLDS} == {}


@pytest.mark.parametrize(
    "options",
    [{}, {"warm": True}, {"penalised": True}, {"drafting": "lookup", "warm": True}, {"drafting": "sampled"}],
    ids=lambda options: " ".join(options) or "cold",
)
@pytest.mark.parametrize("scenario", ["generic-v3-p010-h3-s2", "zeros-v2-p010-h3-s0", "peaked-v3-p010-h2-s5-e12"])
def test_as_a_decoder_it_has_the_law_of_its_scenario(options, scenario):
    scenario = scenario_named(scenario)
    (variant,) = drafting_subject(CORRECT, "engine", **options).variants
    task = scenario_task(scenario)
    task = task if variant.process is None else variant.process(task)
    assert dict(decoder_law(variant.build(task), scenario.prompt).probabilities) == target_law(task, scenario.prompt)


def test_an_engine_that_makes_no_progress_fails_its_requests():
    stuck = program_of("one request", CORRECT._replace(cut=lambda ends, new, accepted, most: (0, False)))
    with stuck.open() as run:
        assert next(paths(run)).outcome == (-1,)


def test_the_plain_law_refuses_a_situation_that_leaves_nothing():
    setup = SITUATIONS["allowed tokens"]
    (body,) = setup.bodies
    nothing = setup._replace(bodies=({**body, "parameters": Parameters(allowed=(0,), bad_words=((0,),))},))
    with pytest.raises(ValueError, match="nothing can follow"):
        promised(nothing)


def test_a_request_is_admitted_without_touching_its_body():
    body = {"prompt": (0,), "max_new": 2}
    assert admit(body) == Request((0,), 2)
    assert body == {"prompt": (0,), "max_new": 2}


def test_the_joint_law_of_independent_requests_is_their_product():
    setup = SITUATIONS["batch"]
    models = promised(setup._replace(bodies=setup.bodies[:1])), promised(setup._replace(bodies=setup.bodies[1:]))
    product = {(one, other): a * b for one, a in models[0].items() for other, b in models[1].items()}
    assert promised(setup) == product
