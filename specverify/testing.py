"""The checks from inside somebody's own test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function raises ``SpeculationRefuted`` with the counterexample, or returns the verdicts with ``on_fail=None``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from reference import Algorithm, Claim, Tokens
from specverify.checks import CHECKS, Conditions
from specverify.report.prose import failure
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.engine import engine_subject
from specverify.subjects.external import Form, decode_subject, verifier_subject_of
from specverify.subjects.subject import Subject
from specverify.verdict import Evidence, Status, Verdict
from specverify.verify import Plan, verify_subject

OnFail = Literal["raise"] | None


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold, or nothing could be said; the message is the report."""


def check_verifier(
    verify: Callable[..., Any],
    *,
    form: Form | None = None,
    gammas: tuple[int, ...] | None = None,
    claims: Collection[Claim] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
) -> Sequence[Verdict]:
    """Examine a rejection sampler at several gammas, in one of three forms.

    ``"row"``: ``verify(p, q, draft_tokens) -> emitted tokens``, see ``subjects.verifier``.
    ``"batched"``: the same with a leading dimension, and ``lengths`` if rows may differ; see ``batched_verifier``.
    ``"logits"``: ``verify(target_logits, draft_logits, draft_tokens, temperature=..., ...)``; see ``logits_verifier``.
    A form need not be given where a parameter called ``lengths``, ``temperature``, ``top_k``, ``top_p`` or ``min_p``
    tells it; without one of them it is a row. ``claims`` are what it promises, all there is unless told otherwise: a
    lossless rule that accepts less than it could is held to ``{Claim.LOSSLESS}``.
    """
    subject = verifier_subject_of(verify, _name(verify), form, gammas)
    return check_subject(_claiming(subject, claims), sampled=sampled, on_fail=on_fail)


def check_decoder(
    decode: Callable[..., Any] | Algorithm, *, sampled: bool = False, on_fail: OnFail = "raise"
) -> Sequence[Verdict]:
    """Examine a registry row, one round, or a whole decode (see ``subjects.external``)."""
    subject = algorithm_subject(decode) if isinstance(decode, Algorithm) else decode_subject(decode, _name(decode))
    return check_subject(subject, sampled=sampled, on_fail=on_fail)


def check_engine(
    speculative: Callable[[], Any],
    plain: Callable[[], Any] | Mapping[Tokens, float],
    *,
    models: tuple[Any, ...] = (),
    claims: Collection[Claim] | None = None,
    sampled: bool = False,
    on_fail: OnFail = "raise",
) -> Sequence[Verdict]:
    """Examine a call that decodes with speculation against the same call without it, or against a law.

    Both take no arguments and return the new token ids (see ``subjects.engine``). ``models`` are transformers models
    whose forward passes may be remembered from run to run. ``claims`` are what it promises: LOSSLESS, and with it
    GREEDY and SUPPORTED, unless told otherwise. With ``sampled`` both calls are sampled as well, some ten thousand
    times each; that decides where the draws of an engine cannot be answered.
    """
    subject = engine_subject(speculative, plain, _name(speculative), models)
    return check_subject(_claiming(subject, claims), sampled=sampled, on_fail=on_fail)


def check_subject(subject: Subject, *, sampled: bool = False, on_fail: OnFail = "raise") -> Sequence[Verdict]:
    """Run every exact check on a subject, and with ``sampled`` the statistical one too.

    Raises ``SpeculationRefuted`` if a check refutes, is UNKNOWN or cannot be run, unless ``on_fail`` is None. Where the
    draws cannot be answered and a sample holds, the exact checks may stay UNKNOWN: the sample has decided.
    """
    checks = tuple(check for check in CHECKS if sampled or check.evidence is not Evidence.STATISTICAL)
    verdicts = [
        verdict
        for verdict in verify_subject(subject, Plan(checks, Conditions()))
        if verdict.status is not Status.NOT_APPLICABLE
    ]
    good = {Status.HOLDS, Status.DECLARED_BIAS}
    if any(verdict.evidence is Evidence.STATISTICAL and verdict.status in good for verdict in verdicts):
        good.add(Status.UNKNOWN)
    wrong = [verdict for verdict in verdicts if verdict.status not in good]
    if wrong and on_fail == "raise":
        raise SpeculationRefuted("\n\n".join(_told(verdict, verdicts) for verdict in wrong))
    return verdicts


def _claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    return subject if claims is None else subject._replace(claims=frozenset(claims))


def _told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    if verdict.status is Status.REFUTED:
        return f"{verdict.subject}: {failure(verdict, verdicts)}"
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"
