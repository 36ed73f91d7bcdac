"""How an engine is created for a scenario: what ``make`` is given, and what it returns.

  make(scenario) -> speculative                    compared with the law of scenario.target
  make(scenario) -> Made(speculative, plain)       compared with plain decoding, if sampling parameters change p
  make(scenario) -> Made(speculative, observer=observer)       and observed while it runs

``speculative()`` decodes ``scenario.prompt`` and returns the new token ids; tokens beyond ``scenario.horizon`` are cut
off. ``speculative(prompt)`` decodes the given prompt, and is also called for several texts in turn
(``subjects.requests``); such an engine is created again in every run, so state that it keeps from a request is part of
the law. ``Made(speculative, batched=True)`` takes a list of prompts, returns a row for each, and also serves several
requests at once. A call may take a seed and the number of new tokens (``call_arguments``), be async or yield its tokens
(``awaited``), and return them in any form of ``engine_answers``, with or without the prompt. ``Made(speculative,
stops=True)`` ends a text with ``scenario.eos``, and is examined with texts that end. For an engine that takes a
network, wrap ``scenario.target`` in a few lines: logits are the logarithms of the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from specverify.base.process import threads_of_an_engine
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import LanguageModel, Pmf, Tokens
from specverify.reference.validation import shown
from specverify.subjects.allowed_tokens import QueriedConstraint
from specverify.subjects.call_arguments import with_length, with_seeds
from specverify.subjects.observer import Observer
from specverify.subjects.rank_groups import ALONE, Group
from specverify.subjects.subject import UnusableSubject


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
MOST_QUERIES = 4096
"""Number of queries of a run that are kept; if a run with a constraint raises an error, the last of them explain it."""
BEYOND_THE_END = 1000
"""A model is queried after texts of at most this many tokens beyond the prompt and the horizon of a scenario."""


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
    given = result if isinstance(result, Made) else Made(*_calls_in(result))
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


def _calls_in(result: Any) -> tuple[Any, ...]:
    """Return the calls in the ``result`` of a factory: a pair of calls, with and without speculation, or one call."""
    return result if isinstance(result, tuple) and len(result) <= 2 else (result,)


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
