"""An engine that is created for each scenario, as a subject: its programs, one for each scenario or list of requests.

Its models are given tables, so scenarios that reveal defects are possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from specverify.base.arguments import argument_error
from specverify.base.default_limits import MOST_PROGRAMS
from specverify.laws.deep_scenarios import OF_CONSTRAINTS, QUICK_OF_ENGINES, QUICK_SCENARIOS
from specverify.laws.ending_scenarios import ENDING_SCENARIOS, QUICK_ENDINGS
from specverify.laws.engine_scenarios import (
    CERTAIN_SCENARIOS,
    MANY_DRAWS,
    OF_OTHER_PARAMETERS,
    PROBE,
    SCENARIOS,
    SEVERAL_ROUNDS,
    TABLES_OF_FEW_PATHS,
    TABLES_OF_ONE_PATH,
)
from specverify.laws.near_ties import Logits
from specverify.laws.scenarios import Scenario
from specverify.laws.size_scenarios import NO_SIZES, Sizes, size_scenarios
from specverify.reference import Pmf, Tokens
from specverify.subjects.batch_plans import VOCABULARY
from specverify.subjects.call_arguments import run_seeds, sample_seeds, takes_prompt
from specverify.subjects.engine import DETECT, LOSSLESS, SAMPLED, tokens_of, watched
from specverify.subjects.engine_decodes import decodes_in, form_in, opened_in, opened_serving
from specverify.subjects.engine_factories import (
    in_turn,
    number_of_parameters,
    placed,
    widened,
    widened_requests,
    with_gamma,
)
from specverify.subjects.engine_laws import has_law, law_in_scenario, law_of_requests
from specverify.subjects.engine_making import Made, Make, made_in, models_in
from specverify.subjects.engine_traces import traced, traced_serving
from specverify.subjects.request_lists import ListedRequests, requests_for, requests_kept, requests_of_trees
from specverify.subjects.requests import Requests, each_text, kept_objects
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import (
    FIRST_LOOK,
    EngineProgram,
    FewPaths,
    KeptObjects,
    KeptRequests,
    LongDecode,
    SampledSetting,
    Subject,
    UnusableSubject,
    Watched,
)

MOST_OF_FEW = 40
"""Most paths of an engine that is examined in scenarios with few paths."""
SMALL_VOCABULARY = 64
"""The largest vocabulary of scenarios with few paths, whose rows have a probability for each token."""
MOST_PARAMETERS = 4
"""The largest number of parameters with which single requests are examined."""
MOST_PATHS = 4000
"""Most enumerated paths of a scenario; an engine that drafts many tokens even near the horizon may have more."""
REPLAYS, LONG_REPLAYS, SIZE_REPLAYS = 20, 4, 1
"""Replays of one program in a small scenario; in a long one or with several requests; at a given size or by a plan."""
NEAR = 1e-9
"""Largest difference of two probabilities that are taken for equal."""
SAME_PARAMETERS = "whether requests get the parameters of others was not examined; pass values that change short rows"
NO_ENDS = (
    "no text with an end was examined (scenario.eos is None): if the engine ends texts, let it end them at "
    "scenario.eos and return Made(..., stops=True)"
)


def made_subject(make: Make, name: str, summary: str = "an engine", sizes: Sizes = NO_SIZES) -> Subject:
    """Return the subject of the engine that ``make`` creates; by default it claims to be lossless.

    ``name`` and ``summary`` are those of the subject.

    ``sizes`` are examined in addition to the default sizes. ``make`` is called once to learn what kind of engine it
    creates. Raises ``UnusableSubject`` if its result is no engine, and ``ValueError`` for rows of one without batches.
    """
    wide = partial(widened, make)
    first = made_in(make, wide(SCENARIOS[0]))
    for decode in filter(None, (first.speculative, first.plain)):
        takes_prompt(decode)  # raises for arguments that nothing is passed to
    if sizes.rows > 1 and not first.batched:
        raise argument_error("the rows of sizes", sizes.rows, "an engine with batched=True")
    widest, unseen = wide(SCENARIOS[-1]), first._replace(observer=None)  # whose rounds are taken for whole ones
    parameters = number_of_parameters(make, wide(SCENARIOS[0]))
    served = requests_for(
        first.speculative, batched=first.batched, stops=first.stops, rows=sizes.rows, differ=parameters > 1
    )
    requests = [each._replace(requests=widened_requests(make, each.requests)) for each in served]
    of_trees = requests_of_trees(first.speculative, batched=first.batched, stops=first.stops)
    trees = [widened_requests(make, each) for each in of_trees]
    kept = [widened_requests(make, each) for each in requests_kept(first.speculative, batched=first.batched)]
    may_be_greedy = first.plain is not None and first.allowed is None
    of_constraints = OF_CONSTRAINTS if first.allowed is not None else ()
    quick = frozenset(map(wide, (*QUICK_SCENARIOS, *QUICK_OF_ENGINES, *QUICK_ENDINGS, *of_constraints)))

    def in_each(scenarios: Iterable[Scenario]) -> list[Scenario]:
        return [scenario for scenario in map(wide, scenarios) if first.allowed is None or has_law(make, scenario)]

    def with_other_parameters(place: int) -> list[EngineProgram]:
        scenarios = in_each((*OF_OTHER_PARAMETERS, *ENDING_SCENARIOS * first.stops))
        programs = [program_in(placed(make, place), scenario, unseen) for scenario in scenarios]
        short_rows = tuple(scenario for scenario in scenarios if scenario.vocabulary <= VOCABULARY)
        same = partial(_not_distinguished, make, place, short_rows)
        return [
            one._replace(name=f"{one.name}, parameters {place + 1}", in_quick=scenario in quick, also_not_examined=same)
            for one, scenario in zip(programs, scenarios, strict=True)
        ]

    def may_serve(requests: Requests) -> bool:
        return in_each(requests.each) == [*requests.each]

    def is_small(scenario: Scenario) -> bool:
        return scenario.vocabulary <= SMALL_VOCABULARY

    def if_few(scenarios: Iterable[Scenario], most: int) -> list[FewPaths]:
        return _if_few_paths([program_in(make, scenario, first) for scenario in filter(is_small, scenarios)], most)

    whole_trees = [
        _serving(make, ListedRequests(each, in_quick=True), first)
        for each in trees
        if is_small(each.scenario) and may_serve(each)
    ]

    return Subject(
        name=name,
        summary=summary,
        claims=LOSSLESS,
        rational=False,
        warm=partial(_warm, make),
        kind="engine",
        situations=(
            *(
                program_in(make, scenario, first)._replace(in_quick=scenario in quick)
                for scenario in dict.fromkeys(in_each((*SCENARIOS, *of_constraints)))
            ),
            *(
                program_in(make, scenario, first, LONG_REPLAYS)._replace(in_quick=scenario in quick)
                for scenario in in_each(CERTAIN_SCENARIOS)
            ),
            *(
                program_in(with_gamma(make, sizes.gamma), scenario, first, SIZE_REPLAYS)._replace(in_quick=True)
                for scenario in in_each(size_scenarios(sizes))
            ),
            *(
                program_in(make, scenario, unseen)._replace(in_quick=scenario in quick)
                for scenario in in_each(ENDING_SCENARIOS)
                if first.stops
            ),
            *(
                program
                for place in range(1, min(parameters, MOST_PARAMETERS))
                for program in with_other_parameters(place)
            ),
            *(_serving(make, each, first) for each in requests if may_serve(each.requests)),
            *(_long_decode(make, wide(scenario), first) for scenario in (MANY_DRAWS,) * (first.allowed is None)),
            *if_few(map(wide, TABLES_OF_ONE_PATH) if may_be_greedy else (), 1),
            *if_few(in_each(TABLES_OF_FEW_PATHS), MOST_OF_FEW),
            *_if_few_paths(whole_trees, MOST_OF_FEW),
            *(_kept(make, each) for each in kept if may_serve(each)),
            _sampled_in(make, widest),
        ),
    )


@lru_cache(maxsize=4)
def _not_distinguished(make: Make, place: int, scenarios: tuple[Scenario, ...]) -> tuple[str, ...]:
    """Return the sentence that parameters 1 and ``place`` + 1 of ``make`` have one law in all ``scenarios``; () if not.

    The random rows of batches are as short as those of these scenarios, so they do not show an engine that confuses the
    parameters.
    """
    for scenario in scenarios:
        one, other = (law_in_scenario(placed(make, at), scenario) for at in (0, place))
        if max(abs(one.get(text, 0) - other.get(text, 0)) for text in {*one, *other}) > NEAR:
            return ()
    return (f"parameters 1 and {place + 1} give all texts the same probability in short cases: {SAME_PARAMETERS}",)


def sampled_over_rounds(make: Make) -> SampledSetting:
    """Return the engines of ``make`` as a setting in which texts of several rounds are sampled.

    Random numbers that an engine keeps from one round to the next make the tokens of different rounds dependent, which
    only texts of several rounds show.
    """
    return _sampled_in(make, widened(make, SEVERAL_ROUNDS))


def _sampled_in(make: Make, scenario: Scenario) -> SampledSetting:
    return SampledSetting(
        f"{scenario.name}, {SAMPLED}",
        partial(_counted, make, scenario),
        partial(law_in_scenario, make, scenario),
        DETECT,
        first_look=FIRST_LOOK,
    )


@lru_cache(maxsize=16)
def _probe(make: Make, like: Made) -> EngineProgram:
    """Return the engine as a program in ``PROBE``, the scenario in which the cause of a refutation is searched for.

    ``make`` creates the engine, and ``like`` is one that it returned before, whose fields show which calls there are.
    """
    return program_in(make, widened(make, PROBE), like)._replace(is_probe=True, probe=None)


def program_in(make: Make, scenario: Scenario, like: Made, replays: int = REPLAYS) -> EngineProgram:
    """Return the engine in one scenario as a program whose outcome is the new tokens.

    ``like`` is an engine that ``make`` returned before; its fields show whether it has a plain call, a constraint or an
    observer. ``replays`` is the number of replays that search for hidden draws.
    """
    program = EngineProgram(
        scenario.name,
        partial(opened_in, make, scenario, "speculative"),
        partial(law_in_scenario, make, scenario),
        replays=replays,
        rows=partial(_rows, scenario),
        trace=partial(traced, make, scenario),
        most_paths=MOST_PATHS,
        tokens=scenario.horizon,
        probe=partial(_probe, make, like._replace(observer=None)),
        not_examined=() if like.stops else (NO_ENDS,),
    )
    if like.plain is None and like.allowed is None:
        program = program._replace(logits=Logits(partial(_logits, scenario), rounding=0.0))
    if like.plain is not None:
        program = program._replace(plain=partial(opened_in, make, scenario, "plain"))
    if like.observer is None:
        return program
    q = None if scenario.greedy or like.observer.draft is None else partial(_drafted, make, scenario)
    return program._replace(watch=partial(_watched, make, scenario), tells=like.observer.tells, draft=q)


def _long_decode(make: Make, scenario: Scenario, like: Made) -> LongDecode:
    short = program_in(make, widened(make, SEVERAL_ROUNDS), like)
    return LongDecode(scenario.name, partial(opened_in, make, scenario, "speculative"), short, scenario.horizon)


def _if_few_paths(programs: Sequence[EngineProgram], most: int) -> list[FewPaths]:
    return [FewPaths(program, programs[0], most) for program in programs]


def _serving(make: Make, listed: ListedRequests, like: Made) -> EngineProgram:
    """Return an engine that serves several requests as a program, whose outcome is the concatenation of their texts.

    ``make`` creates the engine. ``like`` is an engine that ``make`` returned before; it shows whether the engine has a
    plain call.
    """
    requests = listed.requests
    return EngineProgram(
        requests.name,
        partial(opened_serving, make, requests, "speculative"),
        partial(law_of_requests, make, requests),
        plain=None if like.plain is None else partial(opened_serving, make, requests, "plain"),
        replays=SIZE_REPLAYS if listed.planned else LONG_REPLAYS,
        observed_calls=not listed.planned,
        rows=partial(_rows_of_requests, requests),
        split=lambda new: tuple(each_text(requests, new)),
        in_quick=listed.in_quick,
        each="row" if requests.at_once and not requests.rows else "request",
        in_batches=requests.at_once,
        alone=partial(_serving_one, make, requests, like),
        trace=partial(traced_serving, make, requests),
        most_paths=MOST_PATHS,
        tokens=sum(scenario.horizon for scenario in requests.each),
        probe=partial(_probe, make, like._replace(observer=None)),
    )


def _kept(make: Make, requests: Requests) -> KeptRequests:
    return KeptRequests(f"{requests.name}, its own random numbers", partial(_objects_kept, make, requests))


def _objects_kept(make: Make, requests: Requests) -> KeptObjects:
    """Serve ``requests`` by an engine of ``make``; return which of the caller's objects it changed."""
    form = form_in(make, "speculative")
    with seeded(0), run_seeds():
        made = made_in(in_turn(make), requests.scenario)
        return kept_objects(requests, made.speculative, batched=made.batched, form=form)


def _serving_one(
    make: Make, requests: Requests, like: Made, index: int, parameters_of: int | None = None
) -> EngineProgram:
    """Return the program that serves request ``index`` of ``requests`` alone.

    The request has the sampling parameters of request ``parameters_of``, and its own if it is None. ``make`` and
    ``like`` are those of ``_serving``.
    """
    place = requests.places[index if parameters_of is None else parameters_of]
    return program_in(placed(make, place), requests.each[index], like)


def _drafted(make: Make, scenario: Scenario, tokens: Tokens) -> Pmf:
    """Return the pmf from which the draft after ``tokens`` should be drawn, as the observer of the engine states it.

    ``make`` creates the engine for ``scenario``. Raises ``UnusableSubject`` if the engine has no observer, or if the
    observer has no such pmf.
    """
    observer = _made_once(make, scenario).observer
    if observer is None or observer.draft is None:
        raise UnusableSubject(f"for {scenario.name} it was made without the pmf of its drafts, and with one before")
    return observer.draft(tokens)


@lru_cache(maxsize=MOST_PROGRAMS)
def _made_once(make: Make, scenario: Scenario) -> Made:
    return decodes_in(make, scenario)


@contextmanager
def _watched(make: Make, scenario: Scenario) -> Iterator[Watched]:
    made = decodes_in(make, scenario)
    if made.observer is None:
        raise UnusableSubject(f"for {scenario.name} it was made without an observer, and with one for another scenario")
    with watched(made.observer, made.speculative, made.plain, (), scenario.horizon) as result:
        yield result


def _rows(scenario: Scenario, new: Tokens) -> Mapping[Tokens, Mapping[str, Pmf]]:
    """Return text -> {"p": row, "q": row} for the prompt, and for the prompt with 1, 2, ... of the new tokens.

    ``scenario`` has the prompt and the models. The text with all new tokens is left out, because no token follows it.
    """
    models, tokens = models_in(scenario), scenario.prompt + new
    texts = [tokens[:length] for length in range(len(scenario.prompt), max(len(tokens), len(scenario.prompt) + 1))]
    return {text: {"p": models.target(text), "q": models.draft(text)} for text in texts}


def _rows_of_requests(requests: Requests, new: Tokens) -> Mapping[Tokens, Mapping[str, Pmf]]:
    """Return text -> {"p": row, "q": row} for each text after which some request emits a new token.

    ``new`` has the new tokens of all ``requests``, concatenated. The texts of a request are its prompt, followed by 0,
    1, 2, ... but not all of its new tokens.
    """
    result = dict[Tokens, Mapping[str, Pmf]]()
    for each, text in zip(requests.each, each_text(requests, new), strict=True):
        result |= _rows(each, text)
    return result


def _logits(scenario: Scenario, new: Tokens) -> Any:
    """Return the logits ``[vocabulary]`` of the target of ``scenario`` after the prompt and the tokens ``new``."""
    with np.errstate(divide="ignore"):
        return np.log(models_in(scenario).target(scenario.prompt + new))


def _counted(make: Make, scenario: Scenario, number: int, seed: int) -> Counter[Tokens]:
    """Count how often each text occurs in ``number`` calls of an engine in ``scenario``.

    ``make`` creates the engine. The engine draws its own random numbers, seeded by ``seed``.
    """
    decode = decodes_in(make, scenario).speculative
    with seeded(seed), sample_seeds(seed):
        return Counter(tokens_of(decode())[: scenario.horizon] for _ in range(number))


def _warm(make: Make) -> None:
    """Call the engine once in the first and once in the last of ``SCENARIOS``, so that lazy initialisation is done.

    ``make`` creates the engine. Errors are ignored here; the checks report them.
    """
    for scenario in map(partial(widened, make), (SCENARIOS[0], SCENARIOS[-1])):
        with seeded(0), run_seeds(), suppress(Exception):
            made = decodes_in(make, scenario)
            for decode in (made.speculative, made.plain or made.speculative):
                decode()
