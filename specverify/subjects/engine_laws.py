"""The expected law of a created engine: of its plain call or of its target, under its constraint if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from specverify.base.default_limits import MOST_PROGRAMS
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.enumeration import complete_law
from specverify.laws.law import target_law
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import Tokens
from specverify.subjects.allowed_tokens import constrained, first_forbidden
from specverify.subjects.engine_decodes import decodes_in, opened_in
from specverify.subjects.engine_factories import placed, widened
from specverify.subjects.engine_making import Make, made_in
from specverify.subjects.requests import Requests, law_of_all
from specverify.subjects.subject import NothingAllowed


@lru_cache(maxsize=MOST_PROGRAMS)
def law_in_scenario(make: Make, scenario: Scenario) -> Mapping[Tokens, float]:
    """Return the expected law of the new tokens of the engine that ``make`` creates in a scenario.

    It is the law of the engine's call without speculation, which is enumerated. Without such a call, it is the law of
    the scenario's target, under the constraint of the engine if it has one.
    """
    made = decodes_in(make, scenario)
    if made.plain is None:
        task = handed_task(scenario, rational=False)
        if made.allowed is not None:
            task = task._replace(target=constrained(task.target, made.allowed, scenario.prompt))
        return target_law(task, scenario.prompt)
    with opened_in(make, scenario, "plain") as program:
        return complete_law(program)


@lru_cache(maxsize=MOST_PROGRAMS)
def law_of_requests(make: Make, requests: Requests) -> Mapping[Tokens, float]:
    """Return the expected law of the concatenated texts of several requests to an engine of ``make``.

    The texts are independent, each with the law of ``law_in_scenario``.
    """
    each = zip(requests.places, requests.each, strict=True)
    return law_of_all(requests, (law_in_scenario(placed(make, place), one) for place, one in each))


def has_law(make: Make, scenario: Scenario) -> bool:
    """Return whether an engine with a constraint has a law: some possible token is allowed after every text.

    The texts are those of a scenario. ``make`` creates the engine.
    """
    made = made_in(make, scenario)
    if made.allowed is None:
        return True
    task = handed_task(scenario, rational=False)
    try:
        target_law(task._replace(target=constrained(task.target, made.allowed, scenario.prompt)), scenario.prompt)
    except NothingAllowed:
        return False
    return True


def constraint_of(make: Make) -> bool:
    """Return whether the engine that ``make`` creates has a constraint on its tokens."""
    return made_in(make, widened(make, SCENARIOS[0])).allowed is not None


def forbidden_by(make: Make, scenario: Scenario, new: Tokens) -> tuple[int, Tokens] | None:
    """Return (position, allowed tokens) of the first token of ``new`` that the engine's constraint forbids.

    ``new`` are the new tokens in ``scenario``. Returns None if the constraint forbids none of them, or if the engine
    has no constraint. ``make`` creates the engine.
    """
    allowed = made_in(make, scenario).allowed
    return None if allowed is None else first_forbidden(allowed, new)
