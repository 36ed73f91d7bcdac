"""An engine that is created for each scenario.

Its models are given tables, so scenarios that reveal defects are possible.

  make(scenario) -> speculative                    compared with the law of scenario.target
  make(scenario) -> Made(speculative, plain)       compared with plain decoding, if sampling parameters change p
  make(scenario) -> Made(speculative, observer=observer)       and observed while it runs

``speculative()`` decodes ``scenario.prompt`` and returns the new token ids; tokens beyond ``scenario.horizon`` are cut
off. ``speculative(prompt)`` decodes the given prompt, and is also called for several texts in turn
(``subjects.requests``); such an engine is created again in every run, so state that it keeps from a request is part of
the law. ``Made(speculative, batched=True)`` takes a list of prompts, returns a row for each, and also serves several
requests at once. A call may take a seed and the number of new tokens (``call_arguments``), be async or yield its tokens
(``awaited``), and return them in any form of ``engine_answers``, with or without the prompt. A few calls beforehand
determine how it takes prompts and whether its rows begin with them (``engine_forms``). ``Made(speculative,
stops=True)`` ends a text with ``scenario.eos``, and is examined with texts that end. For an engine that takes a
network, wrap ``scenario.target`` in a few lines: logits are the logarithms of the rows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import count, product, repeat
from typing import Any, NamedTuple

import numpy as np

from specverify.base.arguments import argument_error
from specverify.base.default_limits import MOST_PROGRAMS
from specverify.base.process import threads_of_an_engine
from specverify.intercept.distributions import Forced
from specverify.laws.certain_tables import few_after
from specverify.laws.deep_scenarios import (
    CARRIED,
    LONG_SCENARIOS,
    NEW_TOKENS,
    OF_CONSTRAINTS,
    ONE_TOKEN,
    QUICK_OF_ENGINES,
    QUICK_SCENARIOS,
    WRITTEN_OUT,
)
from specverify.laws.draws import Replayed
from specverify.laws.ending_scenarios import ENDING_SCENARIOS, QUICK_ENDINGS
from specverify.laws.enumeration import complete_law
from specverify.laws.law import target_law
from specverify.laws.near_ties import Logits
from specverify.laws.paths import Undecided
from specverify.laws.scenarios import CONFIDENT, Scenario, handed_task
from specverify.laws.size_scenarios import NO_SIZES, Sizes, size_scenarios
from specverify.reference import Draws, LanguageModel, Pmf, Site, Tokens
from specverify.reference.validation import shown
from specverify.subjects.allowed_tokens import QueriedConstraint, constrained, errors_of_empty_rows, first_forbidden
from specverify.subjects.call_arguments import (
    run_seeds,
    sample_seeds,
    takes_prompt,
    with_length,
    with_parameters_of_rows,
    with_seeds,
)
from specverify.subjects.engine import DETECT, LOSSLESS, SAMPLED, Decode, opened, tokens_of, watched
from specverify.subjects.engine_forms import UNLIKE_PROMPTS, EngineForm, ProbedCall, form_of_calls
from specverify.subjects.observer import Observer
from specverify.subjects.rank_groups import ALONE, Group
from specverify.subjects.request_lists import ListedRequests, requests_for, requests_kept, requests_of_trees
from specverify.subjects.requests import (
    Requests,
    each_text,
    joined,
    kept_objects,
    law_of_all,
    may_be_empty,
    served,
    served_each,
    texts_of,
)
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import (
    FIRST_LOOK,
    EngineProgram,
    FewPaths,
    KeptObjects,
    KeptRequests,
    LongDecode,
    NothingAllowed,
    SampledSetting,
    Subject,
    Trace,
    UnusableSubject,
    Watched,
)


class EngineScenario(NamedTuple):
    """The models, prompt and limits for which an engine is created.

    ``name`` is its name in messages, ``vocabulary`` the number of tokens of both models, and ``prompt`` the text before
    the new tokens.
    """

    name: str
    target: LanguageModel
    """``target(tokens)``: the pmf ``[vocabulary]`` of the token after all of ``tokens``, float64; it may have zeros."""
    draft: LanguageModel
    """``draft(tokens)`` returns the pmf of the draft model after ``tokens``."""
    vocabulary: int
    prompt: Tokens
    horizon: int
    """The number of new tokens to decode."""
    eos: int | None = None
    """The end-of-sequence token, which is the last token of a text; None (no token ends a text) unless
    ``Made(stops=True)``."""
    gamma: int | None = None
    """The number of drafts per round, if ``Sizes(gamma=)`` sets it; else None, and the engine chooses."""
    group: Group = ALONE
    """The process group of the engine's ranks; one rank only, except for ``promises={"ranks"}``."""


class Made(NamedTuple):
    """An engine in one scenario, as returned by the user's ``make``."""

    speculative: Callable[..., Any]
    """Decodes with speculation: takes the prompt as argument or uses ``scenario.prompt``, and returns the new tokens.
    """
    plain: Callable[..., Any] | None = None
    """The same call without speculation; if None, the expected law is that of the target's pmfs."""
    observer: Observer | None = None
    """Records the forward passes. Its field ``draft`` is the draft model (``scenario.draft``, if the engine uses it).
    """
    batched: bool = False
    """Whether calls take a list of prompts of different lengths, and return a row of new tokens for each."""
    stops: bool = False
    """Whether the engine ends a text with ``scenario.eos``; if so, it also gets scenarios in which this is a token."""
    allowed: Callable[[Tokens], Any] | None = None
    """``allowed(new)`` returns the constraint on the next token after the new tokens of a request: a mask
    ``[vocabulary]``, or factors on p, such as exp(bias). The expected law is that of p times the mask; no other token
    may be emitted."""
    parameters: Sequence[Any] = ()
    """Parameters, adapters or models of requests, if requests may differ: both calls then take a list of them after the
    prompts, one for each row. Row i of the first call gets element i modulo their number, row i of the next call
    element i + 1, and so on."""


Make = Callable[[EngineScenario], Callable[..., Any] | Made | tuple[Callable[..., Any], Callable[..., Any]]]

Queries = list[tuple[str, Tokens]]
_SHAPES = ("generic", "peaked", "zeros", "disjoint", "equal", "point_target", "point_draft", "ties", "nearly_equal")
SECOND_ROUND = Scenario("generic", 3, (1, 1), 4, seed=24)
"""A scenario with a random draft among three tokens after a first round of one or two tokens. A processor that reads
the last two tokens may then forbid one of three tokens at a draft, across the end of a round."""
SCENARIOS = (
    *(Scenario("generic", 2, (0, 1, 0), horizon, seed=seed) for horizon, seed in ((2, 0), (4, 1))),
    *(Scenario(shape, 3, (0, 1, 0), 3, seed=seed) for seed, shape in enumerate(_SHAPES, start=2)),
    *(Scenario(("generic", "ties")[seed % 2], 3, (1, 0), 3, seed=seed, greedy=True) for seed in range(12, 24)),
    SECOND_ROUND,
    CONFIDENT,
    NEW_TOKENS,
    ONE_TOKEN,
    Scenario("generic", 4, (3, 0), 2, seed=24),
)
"""Small scenarios, because every path of a whole decode is followed; scenarios with one-hot targets have few paths.
Longer texts are in ``LONG_SCENARIOS``, thresholds and large vocabularies in ``WRITTEN_OUT``; in both, all but a few
rows are one-hot."""
SEVERAL_ROUNDS = Scenario("generic", 2, (0, 1, 0), 7, seed=26)
"""The scenario of samples of several rounds."""
MANY_DRAWS = Scenario("generic", 2, (0, 1), 100, seed=27)
"""The scenario in which more than a hundred random numbers are drawn for one text. It has too many texts for a law, so
it is left out if a constraint may leave no token after some text."""
TABLES_OF_ONE_PATH = tuple(
    Scenario("generic", 2 + seed % 4, (1, 0, 1)[: 1 + seed % 3], (6, 9, 14)[seed // 4 % 3], seed=600 + seed)
    for seed in range(60)
)
"""Scenarios for engines that draw nothing. They have too many texts for a law, as ``MANY_DRAWS`` has."""
TABLES_OF_FEW_PATHS = tuple(Scenario("peaked", 2, (1, 0, 1)[: 1 + seed % 3], 4, seed=700 + seed) for seed in range(12))
"""Scenarios for engines that draw only for the tests of drafts, such as trees of the most probable tokens. Their rows
have improbable tokens, which such a tree may leave out."""
MOST_OF_FEW = 40
SMALL_VOCABULARY = 64
"""The largest vocabulary of these scenarios, whose rows have a probability for each token."""
CERTAIN_SCENARIOS = (*LONG_SCENARIOS, *WRITTEN_OUT, CARRIED[0])
OF_OTHER_PARAMETERS = (*SCENARIOS[:3], *CERTAIN_SCENARIOS)
"""Scenarios for the other parameters of an engine whose requests differ in them; all have them in batches too."""
MOST_PARAMETERS = 4
"""The largest number of parameters with which single requests are examined."""
MOST_QUERIES = 4096
"""Number of queries of a run that are kept; if a run with a constraint raises an error, the last of them explain it."""
MOST_PATHS = 4000
"""Most enumerated paths of a scenario; an engine that drafts many tokens even near the horizon may have more."""
REPLAYS, LONG_REPLAYS, SIZE_REPLAYS = 20, 4, 1
"""Replays of one program in a small scenario; in a long one or with several requests; at a given size or by a plan."""

NO_ENDS = (
    "no text with an end was examined (scenario.eos is None): if the engine ends texts, let it end them at "
    "scenario.eos and return Made(..., stops=True)"
)


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


def _widened_requests(make: Make | WithVocabulary, requests: Requests) -> Requests:
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


def _number_of_parameters(make: Any, scenario: Scenario) -> int:
    """Return the number of different parameters that requests to engines of ``make`` have; 0 if they have none."""
    if isinstance(make, WithParameters):
        made = make.make(models_in(scenario))
        return len(made.parameters) if isinstance(made, Made) else 0
    inner = getattr(make, "make", None)
    return 0 if inner is None else _number_of_parameters(inner, scenario)


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
    served = requests_for(first.speculative, batched=first.batched, stops=first.stops, rows=sizes.rows)
    requests = [each._replace(requests=_widened_requests(make, each.requests)) for each in served]
    of_trees = requests_of_trees(first.speculative, batched=first.batched, stops=first.stops)
    trees = [_widened_requests(make, each) for each in of_trees]
    kept = [_widened_requests(make, each) for each in requests_kept(first.speculative, batched=first.batched)]
    may_be_greedy = first.plain is not None and first.allowed is None
    constrained_ones = (OF_CONSTRAINTS,) * (first.allowed is not None)
    quick = frozenset(map(wide, (*QUICK_SCENARIOS, *QUICK_OF_ENGINES, *QUICK_ENDINGS, *constrained_ones)))

    def in_each(scenarios: Iterable[Scenario]) -> list[Scenario]:
        return [scenario for scenario in map(wide, scenarios) if first.allowed is None or _has_law(make, scenario)]

    def with_other_parameters(place: int) -> list[EngineProgram]:
        scenarios = in_each((*OF_OTHER_PARAMETERS, *ENDING_SCENARIOS * first.stops))
        programs = [_program(placed(make, place), scenario, unseen) for scenario in scenarios]
        return [
            one._replace(name=f"{one.name}, parameters {place + 1}", in_quick=scenario in quick)
            for one, scenario in zip(programs, scenarios, strict=True)
        ]

    def may_serve(requests: Requests) -> bool:
        return in_each(requests.each) == [*requests.each]

    def is_small(scenario: Scenario) -> bool:
        return scenario.vocabulary <= SMALL_VOCABULARY

    def if_few(scenarios: Iterable[Scenario], most: int) -> list[FewPaths]:
        return _if_few_paths([_program(make, scenario, first) for scenario in filter(is_small, scenarios)], most)

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
            *(_program(make, scenario, first)._replace(in_quick=scenario in quick) for scenario in in_each(SCENARIOS)),
            *(
                _program(make, scenario, first, LONG_REPLAYS)._replace(in_quick=scenario in quick)
                for scenario in in_each(CERTAIN_SCENARIOS)
            ),
            *(
                _program(with_gamma(make, sizes.gamma), scenario, first, SIZE_REPLAYS)._replace(in_quick=True)
                for scenario in in_each(size_scenarios(sizes))
            ),
            *(
                _program(make, scenario, unseen)._replace(in_quick=scenario in quick)
                for scenario in in_each(ENDING_SCENARIOS)
                if first.stops
            ),
            *(
                program
                for place in range(1, min(_number_of_parameters(make, wide(SCENARIOS[0])), MOST_PARAMETERS))
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


PROBE = Scenario(few_after(1, 2, 3), 5, (0,), 4, seed=4)
"""The scenario that explains a refutation: three open rows, with entries of different sizes, and few paths."""
BEYOND_THE_END = 1000
"""A model is queried after texts of at most this many tokens beyond the prompt and the horizon of a scenario."""


@lru_cache(maxsize=16)
def _probe(make: Make, like: Made) -> EngineProgram:
    """Return the engine as a program in ``PROBE``, the scenario in which the cause of a refutation is searched for.

    ``make`` creates the engine, and ``like`` is one that it returned before, whose fields show which calls there are.
    """
    return _program(make, widened(make, PROBE), like)._replace(is_probe=True, probe=None)


def _program(make: Make, scenario: Scenario, like: Made, replays: int = REPLAYS) -> EngineProgram:
    """Return the engine in one scenario as a program whose outcome is the new tokens.

    ``like`` is an engine that ``make`` returned before; its fields show whether it has a plain call, a constraint or an
    observer. ``replays`` is the number of replays that search for hidden draws.
    """
    program = EngineProgram(
        scenario.name,
        partial(_opened, make, scenario, "speculative"),
        partial(law_in_scenario, make, scenario),
        replays=replays,
        rows=partial(_rows, scenario),
        trace=partial(_traced, make, scenario),
        most_paths=MOST_PATHS,
        tokens=scenario.horizon,
        probe=partial(_probe, make, like._replace(observer=None)),
        not_examined=() if like.stops else (NO_ENDS,),
    )
    if like.plain is None and like.allowed is None:
        program = program._replace(logits=Logits(partial(_logits, scenario), rounding=0.0))
    if like.plain is not None:
        program = program._replace(plain=partial(_opened, make, scenario, "plain"))
    if like.observer is None:
        return program
    q = None if scenario.greedy or like.observer.draft is None else partial(_drafted, make, scenario)
    return program._replace(watch=partial(_watched, make, scenario), tells=like.observer.tells, draft=q)


def _long_decode(make: Make, scenario: Scenario, like: Made) -> LongDecode:
    short = _program(make, widened(make, SEVERAL_ROUNDS), like)
    return LongDecode(scenario.name, partial(_opened, make, scenario, "speculative"), short, scenario.horizon)


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
        partial(_opened_serving, make, requests, "speculative"),
        partial(law_of_requests, make, requests),
        plain=None if like.plain is None else partial(_opened_serving, make, requests, "plain"),
        replays=SIZE_REPLAYS if listed.planned else LONG_REPLAYS,
        observed_calls=not listed.planned,
        rows=partial(_rows_of_requests, requests),
        split=lambda new: tuple(each_text(requests, new)),
        in_quick=listed.in_quick,
        each="row" if requests.at_once and not requests.rows else "request",
        in_batches=requests.at_once,
        alone=partial(_serving_one, make, requests, like),
        trace=partial(_traced_serving, make, requests),
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
    return _program(placed(make, place), requests.each[index], like)


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
    return _made(make, scenario)


def models_in(scenario: Scenario) -> EngineScenario:
    """Return the argument of ``make`` for ``scenario``. Raises ``UnusableSubject`` if it has no draft model."""
    task = handed_task(scenario, rational=False)
    if task.draft is None:
        raise UnusableSubject(f"the scenario {scenario.name} has no draft model")
    end = scenario.eos[0] if scenario.eos else None
    return EngineScenario(
        scenario.name, task.target, task.draft, scenario.vocabulary, scenario.prompt, scenario.horizon, end
    )


def made_in(make: Make, scenario: Scenario, queries: Queries | None = None) -> Made:
    """Return the engine that ``make`` creates in a scenario.

    The rows that the engine asks of its models are recorded in ``queries``. Raises ``UnusableSubject`` if the result of
    ``make`` is no engine.
    """
    models = models_in(scenario)
    target, draft = (_ending(model, scenario) for model in (models.target, models.draft))
    asked = deque[tuple[str, Tokens]](maxlen=MOST_QUERIES)
    rows = {"target": target, "draft": draft}
    target, draft = _recorded(target, "target", asked), _recorded(draft, "draft", asked)
    if queries is not None:
        target, draft = _recorded(target, "target", queries), _recorded(draft, "draft", queries)
    models = models._replace(target=target, draft=draft)
    try:
        with threads_of_an_engine():
            result = make(models)
    except (Exception, SystemExit) as error:
        raise UnusableSubject(f"for {scenario.name} it was not made: {type(error).__name__}: {error}") from error
    given = result if isinstance(result, Made) else Made(*result) if isinstance(result, tuple) else Made(result)
    if not (callable(given.speculative) and (given.plain is None or callable(given.plain))):
        raise UnusableSubject(
            f"for {scenario.name} it made {result!r}, expected a call that decodes, without arguments or with the "
            "prompt as its one argument, or Made(...)"
        )
    _check_made(given)
    return given._replace(
        speculative=_with_values(given.speculative, scenario),
        plain=None if given.plain is None else _with_values(given.plain, scenario),
        allowed=None if given.allowed is None else QueriedConstraint(given.allowed, rows, asked),
    )


def _check_made(made: Made) -> None:
    """Raise ``UnusableSubject`` if a field of ``made`` besides its calls has a value of another type."""
    for name, value, is_right, expected in (
        ("batched", made.batched, isinstance(made.batched, bool), "True or False"),
        ("stops", made.stops, isinstance(made.stops, bool), "True or False"),
        ("allowed", made.allowed, made.allowed is None or callable(made.allowed), "a function of the new tokens"),
    ):
        if not is_right:
            raise UnusableSubject(f"{name} of Made is {shown(value)}, expected {expected}")


def _with_values(call: Callable[..., Any], scenario: Scenario) -> Callable[..., Any]:
    """Return ``call`` with its required arguments for the number of new tokens and for seeds filled in.

    The number of new tokens is the horizon of ``scenario``; each call gets new seeds. The result takes the other
    arguments only, such as the prompt.
    """
    return with_seeds(with_length(call, scenario.horizon))


def _made(make: Make, scenario: Scenario) -> Made:
    """Return the engine that ``make`` creates for ``scenario``; its calls take no arguments and decode the prompt.

    Raises ``UnusableSubject`` if the result of ``make`` is no engine.
    """
    made = made_in(make, scenario)
    plain = _asked(make, made, "plain", scenario) if made.plain else None
    return made._replace(speculative=_asked(make, made, "speculative", scenario), plain=plain)


def _asked(make: Make, made: Made, which: str, scenario: Scenario) -> Decode:
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


@contextmanager
def _opened(
    make: Make, scenario: Scenario, which: str, forced_uniform: Forced = None
) -> Iterator[Callable[[Draws], Any]]:
    def anew() -> Decode:
        decode: Decode = getattr(_made(make, scenario), which)
        return decode

    made = made_in(make, scenario)
    again = anew if takes_prompt(getattr(made, which)) else None
    empty = may_be_empty(scenario.prompt, scenario.eos)
    with opened(_asked(make, made, which, scenario), (), forced_uniform, scenario.horizon, again, empty=empty) as run:
        yield run


@contextmanager
def _opened_serving(
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


def _ending(model: LanguageModel, scenario: Scenario) -> LanguageModel:
    """Return ``model`` as a function that raises ``UnusableSubject`` after a text that no engine of ``scenario`` needs.

    An engine that never ends a text would ask for rows after longer and longer texts without end, and these rows fill
    the memory, because they are cached.
    """
    end = len(scenario.prompt) + scenario.horizon

    def answer(tokens: Tokens) -> Pmf:
        if len(tokens) > end + BEYOND_THE_END:
            raise UnusableSubject(
                f"it asks for a row after a text of {len(tokens)} tokens, expected an end after {end} at "
                f"{scenario.name}: it does not end"
            )
        return model(tokens)

    return answer


def _recorded(model: LanguageModel, name: str, queries: Queries | deque[tuple[str, Tokens]]) -> LanguageModel:
    def answer(tokens: Tokens) -> Pmf:
        queries.append((name, tuple(tokens)))
        return model(tokens)

    return answer


def _traced(make: Make, scenario: Scenario, choices: tuple[int, ...]) -> Trace:
    """Return the tokens of one run in a scenario, and which rows of the models the engine asked for in this run.

    ``choices`` are the outcomes of the draws of the run. ``make`` creates the engine.
    """
    return _traced_with(make, scenario, Replayed(choices))


def _traced_with(make: Make, scenario: Scenario, draws: Draws) -> Trace:
    counted = _Counted(draws)
    queries = _Queries(counted)

    def anew() -> Decode:
        return _asked(make, made_in(make, scenario, queries), "speculative", scenario)

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


def likeliest_trace(make: Any, scenario: Scenario) -> Trace:
    """Return the tokens of one run, and which rows of the models the engine asked for in this run.

    Every draw of the run has its most probable outcome. ``make`` creates the engine, which decodes the prompt of
    ``scenario``.
    """
    return _traced_with(make, widened(make, scenario), _Likeliest())


def _traced_serving(make: Make, requests: Requests, choices: tuple[int, ...]) -> Trace:
    """Return the record of one run with several requests: the new tokens, and the rows that the engine asked for.

    ``choices`` are the outcomes of the draws of the run. ``make`` creates the engine.
    """
    return _traced_requests(make, requests, Replayed(choices))


def likeliest_traces(make: Any, requests: Requests) -> Trace:
    """Return the record of one run with several requests: the new tokens, and the rows that the engine asked for.

    Every draw has its most probable outcome. The calls of the engine must take the prompt. ``make`` creates the engine.
    """
    return _traced_requests(make, _widened_requests(make, requests), _Likeliest())


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


def _first(end: Any) -> Tokens:
    """Return the outcome ``end`` of a run; the first possible one if it is ``Undecided``."""
    tokens: Tokens = end.outcomes[0][0] if isinstance(end, Undecided) else end
    return tokens


@contextmanager
def _watched(make: Make, scenario: Scenario) -> Iterator[Watched]:
    made = _made(make, scenario)
    if made.observer is None:
        raise UnusableSubject(f"for {scenario.name} it was made without an observer, and with one for another scenario")
    with watched(made.observer, made.speculative, made.plain, (), scenario.horizon) as result:
        yield result


@lru_cache(maxsize=MOST_PROGRAMS)
def law_in_scenario(make: Make, scenario: Scenario) -> Mapping[Tokens, float]:
    """Return the expected law of the new tokens of the engine that ``make`` creates in a scenario.

    It is the law of the engine's call without speculation, which is enumerated. Without such a call, it is the law of
    the scenario's target, under the constraint of the engine if it has one.
    """
    made = _made(make, scenario)
    if made.plain is None:
        task = handed_task(scenario, rational=False)
        if made.allowed is not None:
            task = task._replace(target=constrained(task.target, made.allowed, scenario.prompt))
        return target_law(task, scenario.prompt)
    with _opened(make, scenario, "plain") as program:
        return complete_law(program)


@lru_cache(maxsize=MOST_PROGRAMS)
def law_of_requests(make: Make, requests: Requests) -> Mapping[Tokens, float]:
    """Return the expected law of the concatenated texts of several requests to an engine of ``make``.

    The texts are independent, each with the law of ``law_in_scenario``.
    """
    each = zip(requests.places, requests.each, strict=True)
    return law_of_all(requests, (law_in_scenario(placed(make, place), one) for place, one in each))


def _has_law(make: Make, scenario: Scenario) -> bool:
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
    decode = _made(make, scenario).speculative
    with seeded(seed), sample_seeds(seed):
        return Counter(tokens_of(decode())[: scenario.horizon] for _ in range(number))


def _warm(make: Make) -> None:
    """Call the engine once in the first and once in the last of ``SCENARIOS``, so that lazy initialisation is done.

    ``make`` creates the engine. Errors are ignored here; the checks report them.
    """
    for scenario in map(partial(widened, make), (SCENARIOS[0], SCENARIOS[-1])):
        with seeded(0), run_seeds(), suppress(Exception):
            made = _made(make, scenario)
            for decode in (made.speculative, made.plain or made.speculative):
                decode()


MOST_TOKENS = 8
"""Largest vocabulary that is tried for an engine that fails because it needs more tokens (``alphabet_hint``)."""
_SEEDS = 4


def alphabet_hint(make: Make | WithVocabulary) -> str:
    """Return a hint for an engine of ``make`` that fails because the vocabulary is too small; "" for any other engine.

    Such an engine emits a token outside the vocabulary, or raises ``IndexError`` or ``KeyError``, in the smallest
    scenarios, but not with a larger vocabulary.
    """
    given = make if isinstance(make, WithVocabulary) else WithVocabulary(make, SCENARIOS[0].vocabulary)
    wrong = _outside(given)
    for vocabulary in range(given.vocabulary + 1, MOST_TOKENS + 1) if wrong else ():
        if not _outside(given._replace(vocabulary=vocabulary)):
            return (
                f"The smallest of its scenarios have the vocabulary {set(range(given.vocabulary))}, and there {wrong}. "
                "If it needs more tokens (an end of its own, ids with a meaning), write check_engine(make, "
                f"sizes=Sizes(least_vocabulary={vocabulary})): then every scenario has at least that many"
            )
    return ""


def _outside(make: WithVocabulary) -> str:
    """Describe an engine's failure in the smallest scenarios: a token outside the vocabulary, or a look-up error.

    Returns "" if there is none. ``make`` creates the engine.
    """
    called: Any = make
    for scenario, seed in product(map(make.widen, SCENARIOS[:2]), range(_SEEDS)):
        with seeded(seed), run_seeds():
            try:
                tokens = tokens_of(_made(called, scenario).speculative())
            except (IndexError, KeyError) as error:
                return f"it raises {type(error).__name__}: {error}"
            except Exception:  # noqa: BLE001, S112 - it says nothing of tokens
                continue
        if (token := max(tokens[: scenario.horizon])) >= scenario.vocabulary:
            return f"it emits token {token}"
    return ""
