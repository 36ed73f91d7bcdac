"""Decodes of a created engine: the prompt passed in the form that the engine takes, the answer read as new tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from specverify.base.default_limits import MOST_PROGRAMS
from specverify.intercept.distributions import Forced
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.scenarios import Scenario
from specverify.reference import Draws, Tokens
from specverify.subjects.allowed_tokens import errors_of_empty_rows
from specverify.subjects.call_arguments import takes_prompt
from specverify.subjects.engine import Decode, opened
from specverify.subjects.engine_factories import in_turn, widened
from specverify.subjects.engine_forms import UNLIKE_PROMPTS, EngineForm, ProbedCall, form_of_calls
from specverify.subjects.engine_making import Made, Make, made_in
from specverify.subjects.requests import Requests, may_be_empty, served, texts_of


@lru_cache(maxsize=MOST_PROGRAMS)
def form_in(make: Make, which: str) -> EngineForm:
    """Return the form in which the call ``which`` of the engine takes prompts and returns tokens.

    ``which`` is "speculative" or "plain". The form is determined by calls in a few scenarios. ``make`` creates the
    engine.
    """
    calls = []
    for scenario in map(partial(widened, make), _PROBED):
        batched = made_in(make, scenario).batched
        calls.append(ProbedCall(partial(_fresh, make, which, scenario), (scenario.prompt,), batched, scenario.horizon))
        if batched and scenario.vocabulary > 2:
            calls.append(calls[-1]._replace(prompts=UNLIKE_PROMPTS))
    return form_of_calls(calls)


_PROBED = (SCENARIOS[1], *SCENARIOS[2:5], SCENARIOS[-1])


def _fresh(make: Make, which: str, scenario: Scenario) -> Callable[..., Any]:
    decode: Callable[..., Any] = getattr(made_in(make, scenario), which)
    return decode


def decodes_in(make: Make, scenario: Scenario) -> Made:
    """Return the engine that ``make`` creates for ``scenario``; its calls take no arguments and decode the prompt.

    Raises ``UnusableSubject`` if the result of ``make`` is no engine.
    """
    made = made_in(make, scenario)
    plain = decode_of(make, made, "plain", scenario) if made.plain else None
    return made._replace(speculative=decode_of(make, made, "speculative", scenario), plain=plain)


def decode_of(make: Make, made: Made, which: str, scenario: Scenario) -> Decode:
    """Return a call without arguments that decodes the scenario's prompt and returns the row of new tokens.

    ``which`` ("speculative" or "plain") selects the call of the engine ``made``. ``make`` creates engines of this kind,
    to find in which form prompts are passed.
    """
    form = form_in(make, which)

    def decode() -> Any:
        with errors_of_empty_rows(made.allowed, [scenario.prompt]):
            (row,) = texts_of(
                getattr(made, which),
                [scenario.prompt],
                batched=made.batched,
                form=form,
                horizon=scenario.horizon,
                eos=scenario.eos,
            )
        return row

    return decode


@contextmanager
def opened_in(
    make: Make, scenario: Scenario, which: str, forced_uniform: Forced = None
) -> Iterator[Callable[[Draws], Any]]:
    """Yield a function of draws that decodes the prompt of ``scenario`` by an engine and returns the new tokens.

    ``which`` ("speculative" or "plain") selects the call. ``forced_uniform`` is the value of all uniforms, if given.
    ``make`` creates the engine.
    """

    def anew() -> Decode:
        decode: Decode = getattr(decodes_in(make, scenario), which)
        return decode

    made = made_in(make, scenario)
    again = anew if takes_prompt(getattr(made, which)) else None
    empty = may_be_empty(scenario.prompt, scenario.eos)
    with opened(
        decode_of(make, made, which, scenario), (), forced_uniform, scenario.horizon, again, empty=empty
    ) as run:
        yield run


@contextmanager
def opened_serving(
    make: Make, requests: Requests, which: str, forced_uniform: Forced = None
) -> Iterator[Callable[[Draws], Any]]:
    """Yield a function of draws that serves several requests by an engine and returns their concatenated texts.

    ``which`` ("speculative" or "plain") selects the call. ``forced_uniform`` is the value of all uniforms, if given.
    ``make`` creates the engine.
    """
    form = form_in(make, which)

    def anew() -> Decode:
        made = made_in(in_turn(make), requests.scenario)

        def decode() -> Tokens:
            with errors_of_empty_rows(made.allowed, [each.prompt for each in requests.each]):
                return served(requests, getattr(made, which), batched=made.batched, form=form)

        return decode

    with opened(anew(), (), forced_uniform, anew=anew, read=True) as program:
        yield program
