"""The checks from inside somebody's own test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function raises ``SpeculationRefuted`` with the counterexample, or returns the verdicts with ``on_fail=None``.
What is handed in is looked at first: ``ValueError`` says in a sentence what was got and what was expected.

``seconds`` is the time limit of all checks together. In a thread that is not the main thread, or in code that catches
``BaseException``, it cannot always be kept (see ``specverify.limit``), and nothing here survives a crash of the
process: the command line examines in processes of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from reference import Algorithm, Tokens
from specverify.arguments import (
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_law,
    check_seconds,
    refusal,
)
from specverify.checks import CHECKS, Conditions
from specverify.guard import Guarded, guarded
from specverify.report.prose import failure
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.engine import engine_subject
from specverify.subjects.external import Form, decode_subject, verifier_subject_of
from specverify.subjects.subject import Subject
from specverify.verdict import Evidence, Status, Verdict
from specverify.verify import Plan, unready, verdict_of, verify_subject

OnFail = Literal["raise"] | None
SECONDS = Plan(()).seconds


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold, or nothing could be said; the message is the report."""


def check_verifier(
    verify: Callable[..., Any],
    *,
    form: Form | None = None,
    gammas: Sequence[int] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a rejection sampler at several gammas, in one of three forms.

    ``"row"``: ``verify(p, q, draft_tokens) -> emitted tokens``, see ``subjects.verifier``.
    ``"batched"``: the same with a leading dimension, and ``lengths`` if rows may differ; see ``batched_verifier``.
    ``"logits"``: ``verify(target_logits, draft_logits, draft_tokens, temperature=..., ...)``; see ``logits_verifier``.
    A form need not be given where a parameter called ``lengths``, ``temperature``, ``top_k``, ``top_p`` or ``min_p``
    tells it; without one of them it is a row.
    """
    check_callable(verify, "the verifier")
    if form is not None:
        check_choice(form, "form", get_args(Form))
    chosen, name = None if gammas is None else _gammas(gammas), _name(verify)
    return _judged(lambda: verifier_subject_of(verify, name, form, chosen), name, sampled, on_fail, seconds)


def check_decoder(
    decode: Callable[..., Any] | Algorithm,
    *,
    sampled: bool = False,
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a registry row, one round, or a whole decode (see ``subjects.external``)."""
    if isinstance(decode, Algorithm):
        return _judged(lambda: algorithm_subject(decode), decode.name, sampled, on_fail, seconds)
    check_callable(decode, "the decoder")
    name = _name(decode)
    return _judged(lambda: decode_subject(decode, name), name, sampled, on_fail, seconds)


def check_engine(
    speculative: Callable[[], Any],
    plain: Callable[[], Any] | Mapping[Tokens, float],
    *,
    models: Sequence[Any] = (),
    on_fail: OnFail = "raise",
    seconds: float = SECONDS,
) -> Sequence[Verdict]:
    """Examine a call that decodes with speculation against the same call without it, or against a law.

    Both take no arguments and return the new token ids (see ``subjects.engine``). ``models`` are transformers models
    whose forward passes may be remembered from run to run.
    """
    check_callable(speculative, "the call with speculation", arguments=0)
    if isinstance(plain, Mapping):
        check_law(plain, "the law")
    else:
        check_callable(plain, "the call without speculation", arguments=0)
    name, loaded = _name(speculative), _models(models)
    return _judged(lambda: engine_subject(speculative, plain, name, loaded), name, False, on_fail, seconds)


def check_subject(
    subject: Subject, *, sampled: bool = False, on_fail: OnFail = "raise", seconds: float = SECONDS
) -> Sequence[Verdict]:
    """Run every exact check on a subject, and with ``sampled`` the statistical one too.

    Raises ``SpeculationRefuted`` if a check refutes, is UNKNOWN or cannot be run, or if none applies, unless
    ``on_fail`` is None.
    """
    if not isinstance(subject, Subject):
        raise refusal("the subject", subject, "a Subject, as specverify.subjects makes them")
    return _judged(lambda: subject, subject.name, sampled, on_fail, seconds)


def _judged(
    make: Callable[[], Subject], name: str, sampled: bool, on_fail: OnFail, seconds: float
) -> Sequence[Verdict]:
    """Return the verdicts of the subject that ``make`` returns, for which it may have to be run."""
    check_flag(sampled, "sampled")
    check_choice(on_fail, "on_fail", ("raise", None))
    check_seconds(seconds, "seconds")
    checks = tuple(check for check in CHECKS if sampled or check.evidence is not Evidence.STATISTICAL)
    started = time.perf_counter()
    made: Guarded[Subject] = guarded(make, seconds)
    if made.result is None:
        status, statement = unready(made, "made ready", seconds)
        verdicts = [verdict_of(name, check, status, statement) for check in checks]
    else:
        spent = time.perf_counter() - started
        found = verify_subject(made.result, Plan(checks, Conditions(), seconds), spent=spent, changes=made.changes)
        verdicts = [verdict for verdict in found if verdict.status is not Status.NOT_APPLICABLE]
    wrong = [verdict for verdict in verdicts if verdict.status not in (Status.HOLDS, Status.DECLARED_BIAS)]
    if wrong and on_fail == "raise":
        raise SpeculationRefuted("\n\n".join(_told(verdict, verdicts) for verdict in wrong))
    if not verdicts and on_fail == "raise":
        raise SpeculationRefuted(f"{name}: no check applies to it, so nothing was examined")
    return verdicts


def _gammas(gammas: Any) -> tuple[int, ...]:
    """Return the numbers of drafts to examine a verifier at, as they were given."""
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise refusal("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}")
    if len(set(gammas)) < len(gammas):
        raise refusal("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))


def _models(models: Any) -> tuple[Any, ...]:
    """Return the models whose forward passes may be remembered."""
    if not isinstance(models, (tuple, list)):
        raise refusal("models", models, "a tuple of models of transformers")
    for model in models:
        if not callable(getattr(model, "forward", None)):
            raise refusal("a model", model, "a model of transformers, with a forward method")
    return tuple(models)


def _told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    if verdict.status is Status.REFUTED:
        return f"{verdict.subject}: {failure(verdict, verdicts)}"
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"
