"""Factories of engines made from the factory of a user: a vocabulary, drafts per round, or parameters of requests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, repeat
from typing import Any, NamedTuple

from specverify.laws.scenarios import Scenario
from specverify.subjects.call_arguments import with_parameters_of_rows
from specverify.subjects.engine_making import EngineScenario, Made, Make, models_in
from specverify.subjects.requests import Requests
from specverify.subjects.subject import UnusableSubject


class WithVocabulary(NamedTuple):
    """A factory (``make``) of an engine that needs a larger vocabulary than the smallest scenarios have."""

    make: Make
    vocabulary: int
    """The smallest vocabulary of its scenarios."""

    def __call__(self, scenario: EngineScenario) -> Any:
        """Return the engine for ``scenario``."""
        return self.make(scenario)

    def widen(self, scenario: Scenario) -> Scenario:
        """Return ``scenario`` with at least ``vocabulary`` tokens."""
        return scenario._replace(vocabulary=max(scenario.vocabulary, self.vocabulary))


def widened(make: Make | WithVocabulary, scenario: Scenario) -> Scenario:
    """Return ``scenario`` with at least the number of tokens that ``make`` requires of a vocabulary."""
    return make.widen(scenario) if isinstance(make, WithVocabulary) else scenario


def widened_requests(make: Make | WithVocabulary, requests: Requests) -> Requests:
    """Return ``requests`` with at least the number of tokens that ``make`` requires of a vocabulary."""
    return requests._replace(scenario=widened(make, requests.scenario))


class WithParameters(NamedTuple):
    """A factory of engines whose calls take only prompts, made from the factory ``make``.

    The calls of engines of ``make`` also take a list with the sampling parameters of each row. The calls of the engines
    returned here pass this list themselves, from ``Made.parameters``.
    """

    make: Make
    place: int | None = None
    """The index of the parameters that every row gets; if None, each row gets its own."""
    in_turn: bool = False
    """Whether the parameters of the rows move on by one with each call of one engine."""

    def __call__(self, scenario: EngineScenario) -> Any:
        """Return the engine for ``scenario``, with calls that pass its parameters; unchanged if it has none."""
        made = self.make(scenario)
        if not isinstance(made, Made) or len(made.parameters) == 0:
            return made
        if made.plain is None or not made.batched:
            raise UnusableSubject("it has parameters of requests, expected batched=True and a call without speculation")

        def with_parameters(call: Callable[..., Any]) -> Callable[..., Any]:
            first = count() if self.in_turn else repeat(0)

            def of_rows(number: int) -> list[Any]:
                begin = next(first)
                places = [begin + row if self.place is None else self.place for row in range(number)]
                return [made.parameters[place % len(made.parameters)] for place in places]

            return with_parameters_of_rows(call, of_rows)

        return made._replace(
            speculative=with_parameters(made.speculative), plain=with_parameters(made.plain), parameters=()
        )


def _of_requests(make: Any, **fields: Any) -> Any:
    """Return a factory like ``make``, possibly inside other factories, whose ``WithParameters`` has other ``fields``.

    It is returned unchanged if its engines have no parameters for each row.
    """
    if isinstance(make, WithParameters):
        return make._replace(**fields)
    inner = getattr(make, "make", None)
    return make if inner is None else make._replace(make=_of_requests(inner, **fields))


def placed(make: Any, place: int) -> Any:
    """Return a factory like ``make`` whose engines use the parameters at index ``place`` for every row of a batch."""
    return _of_requests(make, place=place)


def in_turn(make: Any) -> Any:
    """Return a factory like ``make`` whose engines serve each batch with other parameters than the batch before it."""
    return _of_requests(make, in_turn=True)


def number_of_parameters(make: Any, scenario: Scenario) -> int:
    """Return the number of different parameters that requests to engines of ``make`` have; 0 if they have none."""
    if isinstance(make, WithParameters):
        made = make.make(models_in(scenario))
        return len(made.parameters) if isinstance(made, Made) else 0
    inner = getattr(make, "make", None)
    return 0 if inner is None else number_of_parameters(inner, scenario)


class WithGamma(NamedTuple):
    """A factory of an engine with ``gamma`` drafts per round: ``make`` gets scenarios with this ``gamma``."""

    make: Make
    gamma: int

    def __call__(self, scenario: EngineScenario) -> Any:
        """Return the engine for ``scenario`` with the fixed number of drafts."""
        return self.make(scenario._replace(gamma=self.gamma))


def with_gamma(make: Make | WithVocabulary, gamma: int) -> Any:
    """Return a factory of engines of ``make`` with ``gamma`` drafts per round; ``make`` itself if ``gamma`` is 0."""
    if not gamma:
        return make
    if isinstance(make, WithVocabulary):
        drafting: Any = WithGamma(make.make, gamma)
        return make._replace(make=drafting)
    return WithGamma(make, gamma)
