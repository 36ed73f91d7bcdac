"""An engine in one scenario whose runs return complete answers: the new tokens and the values returned with them.

Elsewhere an engine under test returns only tokens, and a token that the engine never reads has no value in a run (is
symbolic). Here every number of an answer gets a value, because the answer is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.run import aside
from specverify.intercept.streams import begin_request
from specverify.laws.deep_scenarios import CARRIED
from specverify.laws.ending_scenarios import ENDING_SCENARIOS
from specverify.laws.engine_scenarios import CERTAIN_SCENARIOS, SCENARIOS
from specverify.laws.size_scenarios import size_scenarios
from specverify.reference import Draws, LanguageModel, Tokens
from specverify.subjects.allowed_tokens import errors_of_empty_rows
from specverify.subjects.beside import (
    Answer,
    part_answer,
    readable_value,
    spacing_of,
    values_of_row,
    without_values,
)
from specverify.subjects.call_arguments import run_seeds, takes_prompt, takes_seed, with_seeds
from specverify.subjects.engine import program_of
from specverify.subjects.engine_answers import new_tokens, read_answer_rows
from specverify.subjects.engine_decodes import form_in
from specverify.subjects.engine_factories import WithVocabulary, in_turn, placed, widened
from specverify.subjects.engine_forms import PLAIN_FORM, EngineForm
from specverify.subjects.engine_laws import law_in_scenario
from specverify.subjects.engine_making import EngineScenario, Made, Make, Queries, made_in, models_in
from specverify.subjects.request_lists import requests_for
from specverify.subjects.requests import Requests, text_after
from specverify.subjects.subject import UnusableSubject


class Facts(NamedTuple):
    """What is known about one request: prompt, limits, law and models. Its answer is checked with these data.

    ``target`` and ``draft`` are the models; None if they are not known.
    """

    prompt: Tokens
    horizon: int
    """Requested number of new tokens; 0 if unknown."""
    ends: Tokens = ()
    """The end-of-sequence tokens."""
    law: Callable[[], Mapping[Tokens, float]] | None = None
    """Returns the law of the new tokens without speculation; None if unknown."""
    target: LanguageModel | None = None
    draft: LanguageModel | None = None


Run = Callable[[Draws], tuple[Answer, ...]]


class Answering(NamedTuple):
    """An engine in one scenario whose random draws can be chosen, and the requests that it serves in one run.

    ``name`` names the engine and the scenario in messages. ``open()`` returns the engine as a function: from the draws
    of a run to one ``Answer`` for each request.
    """

    name: str
    requests: tuple[Facts, ...]
    """The requests; () if nothing is known about them, as for two calls that the user passes."""
    open: Callable[[], Run]
    plain: Callable[[], Run] | None = None
    """Opens the same call without speculation; None if there is none."""


def answering_calls(
    speculative: Callable[[], Any], plain: Callable[[], Any] | Mapping[Tokens, float], names: Sequence[str]
) -> tuple[Answering, ...]:
    """Return one ``Answering`` for a user's calls with and without speculation, whose prompt is not known.

    ``speculative`` is the call with speculation, and ``plain`` the call without speculation, or the law of its texts.
    ``names`` are the values that the calls return with the tokens.
    """
    fast = partial(_called, with_seeds(speculative), names)
    if isinstance(plain, Mapping):
        return (Answering("as called", (Facts((), 0, law=LawOfCalls(plain)),), fast),)
    law = LawOfCalls(program_of("as called", speculative, without_values(plain, names)).law)
    return (Answering("as called", (Facts((), 0, law=law),), fast, partial(_called, with_seeds(plain), names)),)


class LawOfCalls:
    """A function without arguments that returns the law of the texts of an engine's calls: text -> probability."""

    def __init__(self, law: Mapping[Tokens, float] | Callable[[], Mapping[Tokens, float]]) -> None:
        """Store ``law``, the law of what a call returns; if it is a function, it is called at each use."""
        self.law = law

    def __call__(self) -> Mapping[Tokens, float]:
        """Return text -> probability; {} if each call returns several texts.

        There is then no law of one text with which a text could be compared.
        """
        result = self.law if isinstance(self.law, Mapping) else self.law()
        several = any(isinstance(token, tuple) for new in result for token in new)
        return {} if several else result


def _called(call: Callable[[], Any], names: Sequence[str]) -> Run:
    return _program(lambda: lambda: answers_of(call(), names, ((),), several=None))


def answering_made(make: Make, names: Sequence[str]) -> tuple[Answering, ...]:
    """Return an ``Answering`` for each list of requests (``situations``) with which engines of ``make`` are examined.

    ``names`` are the values that the calls of the engines return with the tokens.
    """
    first = made_in(make, widened(make, SCENARIOS[0]))
    return tuple(_answering(make, requests, first, names) for requests in situations(make))


def situations(make: Make) -> tuple[Requests, ...]:
    """Return the lists of requests with which an engine that ``make`` creates is examined.

    There is one list with a single request for each scenario. Lists with several requests (``requests_for``) and
    scenarios with end tokens are included if the engine supports them.
    """
    wide = partial(widened, make)
    first = made_in(make, wide(SCENARIOS[0]))
    few = [CARRIED[0], *SCENARIOS, *CERTAIN_SCENARIOS]
    alone = [*few, *size_scenarios(), *(ENDING_SCENARIOS if first.stops else ())]
    several = requests_for(first.speculative, batched=first.batched, stops=first.stops)
    every = (*(Requests(scenario, ()) for scenario in alone), *(listed.requests for listed in several))
    return tuple(requests._replace(scenario=wide(requests.scenario)) for requests in every)


def _answering(make: Make, requests: Requests, like: Made, names: Sequence[str]) -> Answering:
    models = models_in(requests.scenario)
    facts = tuple(
        Facts(
            scenario.prompt,
            scenario.horizon,
            scenario.eos,
            partial(law_in_scenario, placed(tokens_made(make, tuple(names)), place), scenario),
            models.target,
            models.draft,
        )
        for place, scenario in zip(requests.places, requests.each, strict=True)
    )
    plain = None if like.plain is None else partial(_served, make, requests, "plain", names)
    return Answering(requests.name, facts, partial(_served, make, requests, "speculative", names), plain)


class TokensMade(NamedTuple):
    """A factory of engines whose calls return only tokens, made from the factory ``make``.

    The calls of the engines of ``make`` also return the values ``names``, which are removed here.
    """

    make: Callable[[EngineScenario], Any]
    names: tuple[str, ...]

    def __call__(self, scenario: EngineScenario) -> Made:
        """Return the engine for ``scenario``, with calls that return only tokens."""
        made = self.make(scenario)
        given = made if isinstance(made, Made) else Made(*made) if isinstance(made, tuple) else Made(made)
        plain = given.plain if given.plain is None else without_values(given.plain, self.names)
        fast = without_values(given.speculative, self.names) if callable(given.speculative) else given.speculative
        return given._replace(speculative=fast, plain=plain)


def tokens_made(make: Make | WithVocabulary, names: tuple[str, ...]) -> Any:
    """Return a factory of the same engines as ``make``, except that their calls return only tokens.

    The calls of the engines of ``make`` also return values, such as log-probabilities, which are removed. ``names`` are
    the names of these values, in the order in which an answer ``(tokens, value, ...)`` has them.
    """
    if not isinstance(make, WithVocabulary):
        return TokensMade(make, names)
    alone: Any = TokensMade(make.make, names)
    return make._replace(make=alone)


def _served(make: Make, requests: Requests, which: str, names: Sequence[str]) -> Run:
    form = form_in(tokens_made(make, tuple(names)), which)

    def anew() -> Callable[[], tuple[Answer, ...]]:
        queries: Queries = []
        made = made_in(in_turn(make), requests.scenario, queries)

        def answers() -> tuple[Answer, ...]:
            with errors_of_empty_rows(made.allowed, [each.prompt for each in requests.each]):
                return _answers(requests, getattr(made, which), names, queries, batched=made.batched, form=form)

        return answers

    return _program(anew)


def _program(anew: Callable[[], Callable[[], tuple[Answer, ...]]]) -> Run:
    def program(draws: Draws) -> tuple[Answer, ...]:
        with aside():
            call = anew()
        with run_seeds(), answered_everywhere(draws):
            return call()

    return program


def _answers(
    requests: Requests,
    decode: Callable[..., Any],
    names: Sequence[str],
    queries: Queries,
    *,
    batched: bool,
    form: EngineForm = PLAIN_FORM,
) -> tuple[Answer, ...]:
    """Return the answers of ``decode``, the call of an engine, to all requests, in order.

    The values of each answer are read again after the last call, because a later call may overwrite them.
    ``names`` are the values in an answer. ``queries`` is the list in which the models of the engine record the rows
    that it asks for. ``batched`` states whether the call takes a list of prompts, and ``form`` how prompts are passed.
    """
    readings = list[tuple[list[Answer], Callable[[], tuple[Answer, ...]]]]()
    seeded, scenario = takes_seed(decode), requests.scenario
    for prompts in requests.batches([each.prompt for each in requests.each]):
        begin_request(seeded=seeded)
        given = [form.give(prompt) for prompt in prompts]
        answer = decode(given) if batched else decode(*given) if takes_prompt(decode) else decode()
        read = partial(
            answers_of, answer, names, prompts, several=batched, form=form, horizon=scenario.horizon, ends=scenario.eos
        )
        answers = [each._replace(queries=tuple(queries)) for each in read()]
        readings.append((answers, (lambda: ()) if isinstance(answer, Iterator) else read))
    last, _ = readings[-1]
    return (*(answer for answers, read in readings[:-1] for answer in _with_changes(answers, read)), *last)


def _with_changes(answers: Sequence[Answer], read: Callable[[], Sequence[Answer]]) -> Sequence[Answer]:
    """Return the ``answers`` of one call with what their values are now, if they have changed since.

    ``read()`` reads the result of the call again. The answers are returned unchanged if it cannot be read twice, or if
    its tokens have changed too, which another check examines.
    """
    try:
        again = read()
    except UnusableSubject:
        return answers
    if [each.new for each in again] != [each.new for each in answers]:
        return answers
    return [
        answer._replace(values={name: _changed(value, now.values.get(name)) for name, value in answer.values.items()})
        for answer, now in zip(answers, again, strict=True)
    ]


def _changed(value: Value, now: Value | None) -> Value:
    return value if now is None or repr(now.value) == repr(value.value) else value._replace(later=now.value)


def answers_of(
    answer: Any,
    names: Sequence[str],
    prompts: Sequence[Tokens],
    *,
    several: bool | None,
    form: EngineForm = PLAIN_FORM,
    horizon: int = 0,
    ends: Tokens = (),
) -> tuple[Answer, ...]:
    """Return the tokens and values of each row of ``answer``, the result of one call.

    * ``names``: The values to read.
    * ``prompts``: The prompts of the rows; ignored if ``several`` is None.
    * ``several``: Whether the answer has several rows; None: read this from the answer.
    * ``form``: Whether rows begin with their prompt.
    * ``horizon``: Tokens beyond this number are dropped; 0 keeps all.
    * ``ends``: The end-of-sequence tokens.
    """
    tokens, beside = part_answer(answer, names)
    result = read_answer_rows(tokens, len(prompts) if several else None)
    if several is None:
        several, prompts = result.several, ((),) * len(result.rows)
    rows = new_tokens(result, prompts, in_front=form.in_front, horizon=horizon, eos=ends)
    answers = []
    for place, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        new = text_after(prompt, row, ends)
        given = values_of_row(beside, names, place, len(rows) if several else 0)
        values = {name: Value(readable_value(name, value, new), spacing_of(value)) for name, value in given.items()}
        answers.append(Answer(prompt, new[:horizon] if horizon else new, values, len(new)))
    return tuple(answers)


class Value(NamedTuple):
    """One value of an answer, such as its log-probabilities, and the machine epsilon of its floats."""

    value: Any
    """The value in the form of ``readable_value``, or ``Unreadable``."""
    spacing: float
    """Spacing at 1 of the floats in which it was returned."""
    later: Any = None
    """What the value is after a later call of the engine, if that call changed it; else None."""


__all__ = [
    "Answer",
    "Answering",
    "Facts",
    "Run",
    "Value",
    "answering_calls",
    "answering_made",
    "answers_of",
    "tokens_made",
]
