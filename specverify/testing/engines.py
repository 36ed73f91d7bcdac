"""Checks of engines: calls that decode a whole text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

from specverify.base.arguments import (
    argument_error,
    check_callable,
    check_law,
    check_rounding,
    check_takes,
)
from specverify.base.verdict import Verdict
from specverify.checks import Check
from specverify.engines import found_engines, no_passes
from specverify.foreign.guard import guarded
from specverify.laws.near_ties import Logits
from specverify.laws.size_scenarios import Sizes
from specverify.promises import checks_of_returns
from specverify.promises.constraint import constraint_check
from specverify.promises.drafts import drafts_check
from specverify.promises.known_values import Kind
from specverify.promises.pairs import PROMISES, pair_checks
from specverify.promises.ranks import PROMISES as RANKS
from specverify.promises.ranks import ranks_check
from specverify.reference import Claim, Tokens
from specverify.subjects.alphabet_hint import alphabet_hint
from specverify.subjects.answering import answering_calls, answering_made, situations, tokens_made
from specverify.subjects.beside import without_values
from specverify.subjects.call_arguments import missing_without_prompt, with_seeds
from specverify.subjects.engine import ModelsWithPasses, engine_subject
from specverify.subjects.engine_factories import WithParameters, WithVocabulary
from specverify.subjects.engine_laws import constraint_of
from specverify.subjects.engine_making import EngineScenario, Made
from specverify.subjects.lengths_hint import lengths_hint
from specverify.subjects.made_engine import made_subject, sampled_over_rounds
from specverify.subjects.observer import Observer
from specverify.subjects.paired import paired_calls, paired_made
from specverify.testing.judged import judge, judged
from specverify.testing.plans import CheckOptions, name_of, subject_plan
from specverify.testing.promised import Returns, checked_sizes, promised_pairs, promised_values


@judged("claims", "sampled", "tv", "seed", "rounding", "certificate")
def check_engine(
    speculative: Callable[..., Any],
    plain: Callable[[], Any] | Mapping[Tokens, float] | None = None,
    *,
    observe: Observer | None = None,
    models: Sequence[Any] = (),
    logits: Callable[[Tokens], Any] | None = None,
    returns: Returns | None = None,
    promises: Collection[str] = (),
    sizes: Sizes | None = None,
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Examine a call that decodes with speculation against the same call without it, or against a law.

    Args:
        speculative: A call without arguments that returns the new token ids ``[horizon]`` (see ``subjects.engine``).
            Without ``plain`` it is a factory of such calls, ``make(scenario)``, which is called for each of about forty
            scenarios (see ``EngineScenario`` and ``Made``). A call from the factory may take a prompt; then it is also
            called for several prompts in turn. If it takes a list of prompts, it also serves several at once.
        plain: The same call without speculation, or the law: probabilities by tuple of new tokens.
        observe: An observer of the running engine; with it, drafts, their acceptance and caches are examined too.
        models: Models of a supported engine whose forward passes may be cached and used in several runs.
        logits: For greedy calls: ``logits(new)`` is the row ``[vocabulary]`` whose argmax follows the prompt and the
            new tokens ``new``, such as that of the same weights in float64. If the two texts differ, the message states
            the gap between the logits of the two tokens, and the largest gap that ``rounding`` explains. A gap that
            it explains (a near-tie) is UNKNOWN: no bug, and no proof of correctness.
        returns: Names of values that are returned beside the tokens, ``("logprobs", "text")``, or the promise for each,
            ``{"logprobs": "raw", "text": tokenizer.decode}``: ``"raw"`` refers to the unprocessed row of the target,
            ``"processed"`` to the law that the token is drawn from, ``"plain"`` to the value that the call without
            speculation returns with the same tokens; a function computes the value from the new tokens. The values are
            compared on every path (``subjects.beside`` lists their forms).
        promises: Names of further promises to examine:
            ``"seed"``: two calls with one seed return one text.
            ``"seed-as-plain"``: a seed gives one text with speculation and without.
            ``"batch"``: a text does not depend on neighbours, slot, order or requests before it.
            ``"resume"``: a text that is cut and continued is the uncut one.
            ``"drafts"``: every draft is the choice of ``scenario.draft`` after the current text; for drafts that
            form a chain.
            ``"ranks"``: the engine runs as several processes (ranks), each of which gets its communication group as
            ``scenario.group``; all emit the same tokens. ``"ranks-gloo"``: the same under ``torch.distributed`` with
            gloo.
            The first four are tested in pairs of runs, whose texts must be equal.
        sizes: Further sizes for the scenarios of a factory, such as ``Sizes(horizon=256, rows=16,
            vocabulary=151_936)``.
        **options: See ``CheckOptions``. With ``sampled`` both calls are sampled as well, some ten thousand times each;
            those of a factory with texts of 2 and of 7 new tokens.
            The default ``claims`` are LOSSLESS, GREEDY and SUPPORTED, with an observer OPTIMAL_COUPLING too.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For invalid calls, values, promises or sizes.

    Examples:
        >>> import random
        >>> def fast():
        ...     return [int(random.random() < 0.25)]
        >>> {str(verdict.status) for verdict in check_engine(fast, {(0,): 0.75, (1,): 0.25})}
        {'holds'}
    """
    name, checked = name_of(speculative), _to_be_read(observe)
    stated = Stated(promised_values(returns), promised_pairs(promises, (*PROMISES, DRAFTS, *RANKS)))
    hint: Callable[[], str] = str
    known = greedy_logits(logits, options.get("rounding", ROUNDING))
    if known is not None and (plain is None or isinstance(plain, Mapping)):
        raise argument_error("plain", plain, "the call without speculation, where logits are given")
    if plain is None:
        check_callable(speculative, "what makes the engine", arguments=1)
        sizes = checked_sizes(sizes)
        if checked is not None or models not in ((), []):
            raise argument_error(
                "observe or models", observe or models, "none: what is made for a scenario brings its own"
            )
        make: Any = WithParameters(partial(_made_to_be_read, speculative))
        if sizes.least_vocabulary:
            make = WithVocabulary(make, sizes.least_vocabulary)
        engine = tokens_made(make, tuple(stated.values)) if stated.values else make
        if sizes.ranks and not stated.pairs & RANKS.keys():
            raise argument_error("the ranks of sizes", sizes.ranks, "them with promises={'ranks'}")
        subject = made_subject(engine, name, inspect.getdoc(speculative) or "an engine", sizes)
        if options.get("sampled"):
            subject = subject._replace(situations=(*subject.situations, sampled_over_rounds(engine)))
        promised = _checks_of_made(make, engine, stated, sizes.ranks or 2)
        hint = cache(partial(_hint, make))
    else:
        _check_not_of_made(sizes, promises)
        _check_call(speculative, "the call with speculation")
        _check_plain(plain, speculative)
        fast, slow, promised = _checks_of_calls(speculative, plain, stated)
        subject = engine_subject(fast, slow, name, _models(models), observer=checked, logits=known)
    if any(program.watch for program in subject.programs):
        subject = subject._replace(claims=subject.claims | {Claim.OPTIMAL_COUPLING})
    return judge(subject_plan(subject, options, hint=hint, promises=promised))


def _check_not_of_made(sizes: Any, promises: Collection[str]) -> None:
    """Raise ``ValueError`` if two calls are given with an option that only an engine factory supports.

    These options are ``sizes`` and some of the names in ``promises``.
    """
    if sizes is not None:
        raise argument_error("sizes", sizes, "it to be left out with two calls: it is for make(scenario)")
    for promise in (DRAFTS, *RANKS):
        if promise in promises:
            raise argument_error("promises", promises, f"no {promise!r} with two calls: it is for make(scenario)")


class Stated(NamedTuple):
    """The promises of an engine other than the law of its tokens.

    ``values`` maps the name of each returned value to its promise. ``pairs`` has the names of all other promises; most
    of them are tested in pairs of runs, whose texts must be equal.
    """

    values: Mapping[str, Kind]
    pairs: frozenset[str]


def _checks_of_made(make: Any, engine: Any, stated: Stated, ranks: int) -> tuple[Check, ...]:
    """Return the checks of the promises in ``stated`` for the engines that ``make`` creates.

    The calls of these engines return tokens and other values. ``engine`` creates the same engines with calls that
    return only the tokens. ``ranks`` is the number of processes.
    """
    names, result = tuple(stated.values), list[Check]()
    if stated.values:
        result += checks_of_returns(answering_made(make, names), stated.values)
    if stated.pairs & set(PROMISES):
        result += pair_checks(paired_made(engine), stated.pairs)
    if DRAFTS in stated.pairs:
        result.append(drafts_check(engine))
    result += [ranks_check(engine, ranks, promise) for promise in RANKS if promise in stated.pairs]
    if constraint_of(engine):
        result.append(constraint_check(engine, {each.name: each.each for each in situations(engine)}))
    return tuple(result)


def _checks_of_calls(
    fast: Callable[..., Any], slow: Callable[[], Any] | Mapping[Tokens, float], stated: Stated
) -> tuple[Callable[..., Any], Callable[[], Any] | Mapping[Tokens, float], tuple[Check, ...]]:
    """Return (fast, slow, checks): both calls reduced to their tokens, and the checks of the promises in ``stated``.

    ``fast`` is the call with speculation; ``slow`` is the call without, or a law.
    """
    names, result = tuple(stated.values), list[Check]()
    if stated.values:
        result += checks_of_returns(answering_calls(fast, slow, names), stated.values)
        fast = without_values(fast, names)
        slow = slow if isinstance(slow, Mapping) else without_values(slow, names)
    if stated.pairs:
        result += pair_checks(paired_calls(fast, None if isinstance(slow, Mapping) else slow), stated.pairs)
    return fast, slow, tuple(result)


HINT_SECONDS = 5.0
ROUNDING = 1e-6
"""Relative error of a probability where the caller gives none."""
DRAFTS = "drafts"
"""The promise that drafts are those of the draft model of the scenario."""


def _hint(make: Any) -> str:
    """Return what an engine of ``make`` that fails may need: more tokens, or prompts of one length; "" if neither."""
    try:
        return guarded(lambda: alphabet_hint(make) or lengths_hint(make), HINT_SECONDS).result or ""
    except Exception:  # noqa: BLE001 - what goes wrong here says nothing more than was said
        return ""


def _check_call(call: Any, what: str) -> None:
    """Raise ``ValueError``, naming ``what``, unless ``call`` needs no arguments except seeds."""
    if not callable(call):
        raise argument_error(what, call, "something to call without arguments")
    try:
        check_takes(with_seeds(call), what, 0, "something to call without arguments")
    except ValueError as error:
        raise ValueError(f"{error}; {missing_without_prompt(call)}") from None


def _check_plain(plain: Any, speculative: Any) -> None:
    """Raise ``ValueError`` unless ``plain`` is a law, or another call than ``speculative`` that needs no arguments."""
    what = "the call without speculation"
    if isinstance(plain, Mapping):
        check_law(plain, "the law")
    elif plain is speculative:
        raise argument_error(what, plain, "another one than the call with speculation")
    elif not callable(plain):
        law = "{(0,): 0.25, (1,): 0.75}"
        raise argument_error(what, plain, f"something to call without arguments, or a law, such as {law}")
    else:
        _check_call(plain, what)


def greedy_logits(row: Any, rounding: Any) -> Logits | None:
    """Return the target's logits of next tokens for greedy calls; None if ``row`` is None.

    ``row(new)`` returns the logits after the new tokens, with the relative error ``rounding``. Raises ``ValueError``
    for an invalid function or rounding.
    """
    check_rounding(rounding, "rounding")
    if row is None:
        return None
    check_callable(row, "logits", arguments=1)
    return Logits(row, rounding)


def _made_to_be_read(make: Callable[[EngineScenario], Any], scenario: EngineScenario) -> Any:
    made = make(scenario)
    if isinstance(made, Made):
        _to_be_read(made.observer)
    return made


def _to_be_read(observe: Any) -> Observer | None:
    """Return ``observe``, the caller's ``Observer`` or None.

    If the observer has a target and no function ``read``, the returned observer has the ``read`` of the engine that
    supports the target, if there is one. Raises ``ValueError`` for a value of another type.
    """
    if observe is None:
        return None
    if not isinstance(observe, Observer):
        raise argument_error("observe", observe, "an Observer")
    if observe.target is not None and observe.read is None:
        readers = (engine.reads(observe.target) for engine in found_engines().engines.values())
        observe.read = next((read for read in readers if read), None)
    return observe


def _models(models: Any) -> ModelsWithPasses:
    """Return (model, data) for each of ``models``; a forward pass of the model depends on its arguments and these data.

    ``models`` is the argument of ``check_engine``: a tuple or list of models of a supported engine. Raises
    ``ValueError`` for another type, and for a model of another kind.
    """
    engines = [engine for engine in found_engines().engines.values() if engine.passes is not no_passes]
    known = " or ".join(engine.name for engine in engines) or "an engine"
    if not isinstance(models, (tuple, list)):
        raise argument_error("models", models, f"a tuple of models of {known}")
    result = []
    for model in models:
        passes = next((passes for engine in engines if (passes := engine.passes(model))), None)
        if passes is None or not callable(getattr(model, "forward", None)):
            raise argument_error("a model", model, f"a model of {known}, with a forward method")
        result.append((model, passes))
    return tuple(result)
