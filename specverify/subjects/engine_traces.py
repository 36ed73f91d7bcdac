"""Traces of a created engine: the tokens of one run, and the rows of the models that it asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.laws.draws import Replayed
from specverify.laws.paths import Undecided
from specverify.laws.scenarios import Scenario
from specverify.reference import Draws, Pmf, Site, Tokens
from specverify.subjects.engine import Decode, opened
from specverify.subjects.engine_decodes import decode_of, form_in
from specverify.subjects.engine_factories import in_turn, widened, widened_requests
from specverify.subjects.engine_making import Make, Queries, made_in, models_in
from specverify.subjects.requests import Requests, joined, may_be_empty, served_each
from specverify.subjects.subject import Trace


def traced(make: Make, scenario: Scenario, choices: tuple[int, ...]) -> Trace:
    """Return the tokens of one run in a scenario, and which rows of the models the engine asked for in this run.

    ``choices`` are the outcomes of the draws of the run. ``make`` creates the engine.
    """
    return _traced_with(make, scenario, Replayed(choices))


def likeliest_trace(make: Any, scenario: Scenario) -> Trace:
    """Return the tokens of one run, and which rows of the models the engine asked for in this run.

    Every draw of the run has its most probable outcome. ``make`` creates the engine, which decodes the prompt of
    ``scenario``.
    """
    return _traced_with(make, widened(make, scenario), _Likeliest())


def traced_serving(make: Make, requests: Requests, choices: tuple[int, ...]) -> Trace:
    """Return the record of one run with several requests: the new tokens, and the rows that the engine asked for.

    ``choices`` are the outcomes of the draws of the run. ``make`` creates the engine.
    """
    return _traced_requests(make, requests, Replayed(choices))


def likeliest_traces(make: Any, requests: Requests) -> Trace:
    """Return the record of one run with several requests: the new tokens, and the rows that the engine asked for.

    Every draw has its most probable outcome. The calls of the engine must take the prompt. ``make`` creates the engine.
    """
    return _traced_requests(make, widened_requests(make, requests), _Likeliest())


def _traced_with(make: Make, scenario: Scenario, draws: Draws) -> Trace:
    counted = _Counted(draws)
    queries = _Queries(counted)

    def anew() -> Decode:
        return decode_of(make, made_in(make, scenario, queries), "speculative", scenario)

    empty = may_be_empty(scenario.prompt, scenario.eos)
    with opened(anew(), (), None, scenario.horizon, anew, empty=empty) as run:
        queries.begin()
        new = _first(run(counted))
    models = models_in(scenario)
    return Trace(
        ((scenario.prompt, new),),
        tuple(queries),
        models.draft,
        models.target,
        moments=tuple(queries.moments),
        eos=models.eos,
        of_plain=partial(_queries_of_plain, make, scenario),
    )


def _queries_of_plain(make: Make, scenario: Scenario) -> Sequence[Tokens]:
    """Return the texts with which the engine's call without speculation queries the target; none without such a call.

    Every draw of the call has its most probable outcome. ``make`` creates the engine, which decodes the prompt of
    ``scenario``.
    """
    queries: Queries = []
    made = made_in(make, scenario, queries)
    if made.plain is None:
        return ()
    empty = may_be_empty(scenario.prompt, scenario.eos)
    with opened(decode_of(make, made, "plain", scenario), (), None, scenario.horizon, empty=empty) as run:
        queries.clear()
        run(_Likeliest())
    return Trace((), tuple(queries)).asked("target")


def _traced_requests(make: Make, requests: Requests, draws: Draws) -> Trace:
    queries: Queries = []
    texts: list[Tokens] = []
    calls: list[tuple[int, int]] = []
    form = form_in(make, "speculative")

    def before_call(request: int) -> None:
        calls.append((request, len(queries)))

    def anew() -> Decode:
        made = made_in(in_turn(make), requests.scenario, queries)

        def decode() -> Tokens:
            texts[:] = served_each(requests, made.speculative, batched=made.batched, form=form, before_call=before_call)
            return joined(requests, texts)

        return decode

    with opened(anew(), (), anew=anew, read=True) as run:
        queries.clear()
        calls.clear()
        run(draws)
    prompts = (each.prompt for each in requests.each)
    models = models_in(requests.scenario)
    served_texts = tuple(zip(prompts, texts, strict=True))
    batches = tuple(map(len, requests.batches(requests.each))) if requests.at_once else ()
    return Trace(
        served_texts, tuple(queries), models.draft, models.target, eos=models.eos, batches=batches, calls=tuple(calls)
    )


class _Counted:
    """Draws for a run (``Draws``) that take each outcome from the draws ``inner``, and count how many were made."""

    def __init__(self, inner: Draws) -> None:
        self._inner = inner
        self.number = 0

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of ``inner`` for the draw at ``site`` from ``pmf``, and count the draw."""
        outcome = self._inner.categorical(pmf, site)
        self.number += 1
        return outcome


class _Queries(Queries):
    """The list in which an engine's models record each row that the engine asks for.

    It also stores the number of draws before each query.
    """

    def __init__(self, counted: _Counted) -> None:
        super().__init__()
        self._counted = counted
        self.moments: list[int] = []

    def append(self, query: tuple[str, Tokens]) -> None:
        """Add a query, which is the name of a model and the text after which the engine asks for a row.

        The number of draws so far is stored with the query.
        """
        super().append(query)
        self.moments.append(self._counted.number)

    def begin(self) -> None:
        """Remove the queries of earlier runs, so that the list has only those of the next run."""
        self.clear()
        self.moments.clear()


class _Likeliest:
    """Draws for a run (``Draws``) in which each draw has its most probable outcome."""

    def categorical(self, pmf: Pmf, site: Site) -> int:  # noqa: ARG002 - as every interpreter takes it
        """Return the most probable outcome of ``pmf``."""
        return int(np.argmax(pmf))


def _first(end: Any) -> Tokens:
    """Return the outcome ``end`` of a run; the first possible one if it is ``Undecided``."""
    tokens: Tokens = end.outcomes[0][0] if isinstance(end, Undecided) else end
    return tokens
