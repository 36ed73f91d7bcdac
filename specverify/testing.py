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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from reference import Algorithm, Claim, Tokens
from specverify.base.arguments import (
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_law,
    check_seconds,
    refusal,
)
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions
from specverify.engines import found_engines
from specverify.report.prose import failure
from specverify.run.verify import Plan, verify_subject
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.engine import Models, engine_subject
from specverify.subjects.external import Form, decode_subject, verifier_subject_of
from specverify.subjects.given_calls import calls_subject
from specverify.subjects.hard_calls import HardCall, hard_calls
from specverify.subjects.recorded_calls import AnyCall, BatchedCall, Call, LogitsCall
from specverify.subjects.subject import Subject

__all__ = [
    "BatchedCall",
    "Call",
    "LogitsCall",
    "SpeculationRefuted",
    "check_decoder",
    "check_engine",
    "check_subject",
    "check_verifier",
    "hard_calls",
]

OnFail = Literal["raise"] | None
SECONDS = Plan(()).seconds


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold, or nothing could be said; the message is the report."""


def check_verifier(
    verify: Callable[..., Any],
    *,
    form: Form | None = None,
    gammas: Sequence[int] | None = None,
    claims: Collection[Claim] | None = None,
    cases: Iterable[AnyCall | HardCall] | None = None,
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

    With ``cases`` it is examined on single calls at the caller's own size, and on nothing else: recorded ones
    (``Call``, ``LogitsCall``, ``BatchedCall``; they tell the form) or ``hard_calls(vocabulary, gamma, dtype)``.
    """
    check_callable(verify, "the verifier")
    if cases is not None:
        if form is not None or gammas is not None or sampled:
            raise ValueError("cases are given with form, gammas or sampled, expected cases alone: calls tell the form")
        subject = _claiming(calls_subject(verify, _name(verify), _cases(cases)), claims)
        return check_subject(subject, on_fail=on_fail, seconds=seconds)
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
    speculative: Callable[[], Any],
    plain: Callable[[], Any] | Mapping[Tokens, float],
    *,
    models: Sequence[Any] = (),
    claims: Collection[Claim] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a call that decodes with speculation against the same call without it, or against a law.

    Both take no arguments and return the new token ids (see ``subjects.engine``). ``models`` are models of an engine
    that is known here; their forward passes may be remembered from run to run. ``claims`` are what it promises:
    LOSSLESS, and with it GREEDY and SUPPORTED, unless told otherwise. With ``sampled`` both calls are sampled as well,
    some ten thousand times each; that decides where the draws of an engine cannot be answered.
    """
    check_callable(speculative, "the call with speculation", arguments=0)
    if isinstance(plain, Mapping):
        check_law(plain, "the law")
    else:
        check_callable(plain, "the call without speculation", arguments=0)
    subject = _claiming(engine_subject(speculative, plain, _name(speculative), _models(models)), claims)
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
        raise refusal("the subject", subject, "a Subject, as specverify.subjects makes them")
    check_flag(sampled, "sampled")
    check_choice(on_fail, "on_fail", ("raise", None))
    check_seconds(seconds, "seconds")
    checks = CHECKS if sampled else EXACT_CHECKS
    verdicts = [
        verdict
        for verdict in verify_subject(subject, Plan(checks, Conditions(), seconds))
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


def _cases(cases: Any) -> Sequence[Any]:
    """Return the calls to examine a verifier on, as they were given."""
    if isinstance(cases, tuple) and hasattr(cases, "_fields"):
        raise ValueError(f"cases is one {type(cases).__name__}, expected a sequence of calls, such as [call]")
    if isinstance(cases, (str, bytes)) or not isinstance(cases, Iterable):
        raise refusal(
            "cases", cases, "calls, such as [Call(p, q, draft_tokens)] or hard_calls(vocabulary, gamma, dtype)"
        )
    found = list(cases)
    if not found:
        raise refusal("cases", found, "at least one call")
    return found


def _gammas(gammas: Any) -> tuple[int, ...]:
    """Return the numbers of drafts to examine a verifier at, as they were given."""
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise refusal("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}")
    if len(set(gammas)) < len(gammas):
        raise refusal("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))


def _models(models: Any) -> Models:
    """Return the models whose forward passes may be remembered, each with what its passes depend on."""
    engines = found_engines().engines.values()
    known = " or ".join(engine.name for engine in engines) or "an engine"
    if not isinstance(models, (tuple, list)):
        raise refusal("models", models, f"a tuple of models of {known}")
    found = []
    for model in models:
        passes = next((passes for engine in engines if (passes := engine.passes(model))), None)
        if passes is None or not callable(getattr(model, "forward", None)):
            raise refusal("a model", model, f"a model of {known}, with a forward method")
        found.append((model, passes))
    return tuple(found)


def _claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    """Return the subject held to ``claims``, where there are any."""
    if claims is None:
        return subject
    if isinstance(claims, str) or not isinstance(claims, Collection) or not claims:
        raise refusal("claims", claims, "a collection of at least one Claim")
    for claim in claims:
        check_choice(claim, "a claim", tuple(Claim))
    return subject._replace(claims=frozenset(claims))


def _told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    if verdict.status is Status.REFUTED:
        return f"{verdict.subject}: {failure(verdict, verdicts)}"
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"
