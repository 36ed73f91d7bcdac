"""The checks from inside somebody's own test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function raises ``SpeculationRefuted`` with the counterexample, or returns the verdicts with ``on_fail=None``.
What is handed in is looked at first: ``ValueError`` says in a sentence what was got and what was expected.

``seconds`` is the time limit of all checks together. In a thread that is not the main thread, or in code that catches
``BaseException``, it cannot always be kept (see ``specverify.foreign.limit``), and nothing here survives a crash of the
process: the command line examines in processes of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from reference import Algorithm, Claim, Tokens
from specverify.base.arguments import (
    argument_error,
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_law,
    check_seconds,
)
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions
from specverify.engines import found_engines
from specverify.report.prose import failure
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.engine import ModelsWithPasses, engine_subject
from specverify.subjects.external import Form, decode_subject, verifier_subject_of
from specverify.subjects.made_engine import EngineScenario, Made, made_subject
from specverify.subjects.observer import Observer
from specverify.subjects.subject import Subject

OnFail = Literal["raise"] | None
SECONDS = Checklist(()).seconds


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold, or nothing could be said; the message is the report."""


def check_verifier(
    verify: Callable[..., Any],
    *,
    form: Form | None = None,
    gammas: Sequence[int] | None = None,
    claims: Collection[Claim] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a rejection sampler at several gammas, in one of three forms.

    ``"row"``: ``verify(p, q, draft_tokens) -> emitted tokens``, see ``subjects.verifier``.
    ``"batched"``: the same with a leading dimension, and ``lengths`` if rows may differ; see ``batched_verifier``.
    ``"logits"``: ``verify(target_logits, draft_logits, draft_tokens, temperature=..., ...)``; see ``logits_verifier``.
    A form need not be given where a parameter called ``lengths``, ``temperature``, ``top_k``, ``top_p`` or ``min_p``
    tells it; without one of them it is a row. ``claims`` are what it promises, all there is unless told otherwise: a
    lossless rule that accepts less than it could is held to ``{Claim.LOSSLESS}``.
    """
    check_callable(verify, "the verifier")
    if form is not None:
        check_choice(form, "form", get_args(Form))
    chosen, name = None if gammas is None else _gammas(gammas), _name(verify)
    subject = _claiming(verifier_subject_of(verify, name, form, chosen), claims)
    return check_subject(subject, sampled=sampled, on_fail=on_fail, seconds=seconds)


def check_decoder(
    decode: Callable[..., Any] | Algorithm,
    *,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a registry row, one round, or a whole decode (see ``subjects.external``)."""
    if not isinstance(decode, Algorithm):
        check_callable(decode, "the decoder")
    subject = algorithm_subject(decode) if isinstance(decode, Algorithm) else decode_subject(decode, _name(decode))
    return check_subject(subject, sampled=sampled, on_fail=on_fail, seconds=seconds)


def check_engine(
    speculative: Callable[..., Any],
    plain: Callable[[], Any] | Mapping[Tokens, float] | None = None,
    *,
    observe: Observer | None = None,
    models: Sequence[Any] = (),
    claims: Collection[Claim] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a call that decodes with speculation against the same call without it, or against a law.

    Both take no arguments and return the new token ids (see ``subjects.engine``). With ``plain`` left out the one
    argument is what makes them, ``make(scenario)``, for each of some twenty pairs of models (see
    ``subjects.made_engine``): bugs hide at one prompt. ``observe`` looks into the engine while it runs: drafts, their
    acceptance, caches (see ``subjects.observer``). ``models`` are models of an engine that is known here; their forward
    passes may be remembered from run to run. ``claims`` are what it promises: LOSSLESS, and with it GREEDY and
    SUPPORTED, unless told otherwise; where it is looked into, OPTIMAL_COUPLING too. With ``sampled`` both calls are
    sampled as well, some ten thousand times each; that decides where the draws of an engine cannot be answered.
    """
    name, checked = _name(speculative), _to_be_read(observe)
    if plain is None:
        check_callable(speculative, "what makes the engine", arguments=1)
        if checked is not None or len(models) > 0:
            raise argument_error(
                "observe or models", observe or models, "none: what is made for a scenario brings its own"
            )
        subject = made_subject(partial(_made_to_be_read, speculative), name, inspect.getdoc(speculative) or "an engine")
    else:
        check_callable(speculative, "the call with speculation", arguments=0)
        if isinstance(plain, Mapping):
            check_law(plain, "the law")
        else:
            check_callable(plain, "the call without speculation", arguments=0)
        subject = engine_subject(speculative, plain, name, _models(models), observer=checked)
    if any(program.watch for program in subject.programs):
        subject = subject._replace(claims=subject.claims | {Claim.OPTIMAL_COUPLING})
    subject = _claiming(subject, claims)
    return check_subject(subject, sampled=sampled, on_fail=on_fail, seconds=seconds)


def check_subject(
    subject: Subject, *, sampled: bool = False, on_fail: OnFail = "raise", seconds: float = SECONDS
) -> Sequence[Verdict]:
    """Run every exact check on a subject, and with ``sampled`` the statistical one too.

    Raises ``SpeculationRefuted`` if a check refutes, is UNKNOWN or cannot be run, or if none applies, unless
    ``on_fail`` is None. Where the draws cannot be answered and a sample holds, the exact checks may stay UNKNOWN: the
    sample has decided.
    """
    if not isinstance(subject, Subject):
        raise argument_error("the subject", subject, "a Subject, as specverify.subjects makes them")
    check_flag(sampled, "sampled")
    check_choice(on_fail, "on_fail", ("raise", None))
    check_seconds(seconds, "seconds")
    checks = CHECKS if sampled else EXACT_CHECKS
    verdicts = [
        verdict
        for verdict in verify_subject(subject, Checklist(checks, Conditions(), seconds))
        if verdict.status is not Status.NOT_APPLICABLE
    ]
    good = {Status.HOLDS, Status.DECLARED_BIAS}
    if any(verdict.evidence is Evidence.STATISTICAL and verdict.status in good for verdict in verdicts):
        good.add(Status.UNKNOWN)
    wrong = [verdict for verdict in verdicts if verdict.status not in good]
    if wrong and on_fail == "raise":
        raise SpeculationRefuted("\n\n".join(_told(verdict, verdicts) for verdict in wrong))
    if not verdicts and on_fail == "raise":
        raise SpeculationRefuted(f"{subject.name}: no check applies to it, so nothing was examined")
    return verdicts


def _gammas(gammas: Any) -> tuple[int, ...]:
    """Return the numbers of drafts to examine a verifier at, as they were given."""
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise argument_error("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}")
    if len(set(gammas)) < len(gammas):
        raise argument_error("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))


def _made_to_be_read(make: Callable[[EngineScenario], Any], scenario: EngineScenario) -> Any:
    made = make(scenario)
    if isinstance(made, Made):
        _to_be_read(made.observer)
    return made


def _to_be_read(observe: Any) -> Observer | None:
    """Return the observer with what an engine that is known here can tell of its target."""
    if observe is None:
        return None
    if not isinstance(observe, Observer):
        raise argument_error("observe", observe, "an Observer")
    if observe.target is not None and observe.read is None:
        readers = (engine.reads(observe.target) for engine in found_engines().engines.values())
        observe.read = next((read for read in readers if read), None)
    return observe


def _models(models: Any) -> ModelsWithPasses:
    """Return the models whose forward passes may be remembered, each with what its passes depend on."""
    engines = found_engines().engines.values()
    known = " or ".join(engine.name for engine in engines) or "an engine"
    if not isinstance(models, (tuple, list)):
        raise argument_error("models", models, f"a tuple of models of {known}")
    found = []
    for model in models:
        passes = next((passes for engine in engines if (passes := engine.passes(model))), None)
        if passes is None or not callable(getattr(model, "forward", None)):
            raise argument_error("a model", model, f"a model of {known}, with a forward method")
        found.append((model, passes))
    return tuple(found)


def _claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    """Return the subject held to ``claims``, where there are any."""
    if claims is None:
        return subject
    if isinstance(claims, str) or not isinstance(claims, Collection) or not claims:
        raise argument_error("claims", claims, "a collection of at least one Claim")
    for claim in claims:
        check_choice(claim, "a claim", tuple(Claim))
    return subject._replace(claims=frozenset(claims))


def _told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    if verdict.status is Status.REFUTED:
        return f"{verdict.subject}: {failure(verdict, verdicts)}"
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"


__all__ = [
    "EngineScenario",
    "Made",
    "Observer",
    "SpeculationRefuted",
    "check_decoder",
    "check_engine",
    "check_subject",
    "check_verifier",
]
