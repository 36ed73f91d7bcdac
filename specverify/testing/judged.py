"""What every function of this package does in the end: run the checks, and raise what is not good."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from reference import Claim
from specverify.base.arguments import (
    argument_error,
    check_choice,
    check_flag,
    check_integer,
    check_seconds,
)
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions
from specverify.report.prose import failure
from specverify.run.catalogue import find_subject, is_external
from specverify.run.replays import named_by
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.subject import Subject, UnusableSubject

OnFail = Literal["raise"] | None
SECONDS = Checklist(()).seconds


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold, or nothing could be said; the message is the report."""


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
    return judged(subject, Checklist(CHECKS if sampled else EXACT_CHECKS, Conditions(), seconds), on_fail)


def judged(subject: Subject, plan: Checklist, on_fail: OnFail, *, of_kernel: bool = False) -> Sequence[Verdict]:
    """Run the plan and raise what is not good. The command line cannot see a failure of a kernel again."""
    check_choice(on_fail, "on_fail", ("raise", None))
    check_seconds(plan.seconds, "seconds")
    verdicts = [
        _without_replay(verdict) if of_kernel or not _replays(verdict) else verdict
        for verdict in verify_subject(subject, plan)
        if verdict.status is not Status.NOT_APPLICABLE
    ]
    good = {Status.HOLDS, Status.DECLARED_BIAS}
    if not of_kernel and any(item.evidence is Evidence.STATISTICAL and item.status in good for item in verdicts):
        good.add(Status.UNKNOWN)
    wrong = [verdict for verdict in verdicts if verdict.status not in good]
    if wrong and on_fail == "raise":
        raise SpeculationRefuted("\n\n".join(told(verdict, verdicts) for verdict in _each_said_once(wrong)))
    if not verdicts and on_fail == "raise":
        raise SpeculationRefuted(f"{subject.name}: no check applies to it, so nothing was examined")
    return verdicts


def claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    """Return the subject held to ``claims``, where there are any."""
    if claims is None:
        return subject
    if isinstance(claims, str) or not isinstance(claims, Collection) or not claims:
        raise argument_error("claims", claims, "a collection of at least one Claim, such as {Claim.LOSSLESS}")
    for claim in claims:
        if not isinstance(claim, Claim):
            raise argument_error("a claim", claim, f"one of {', '.join(f'Claim.{each.name}' for each in Claim)}")
    return subject._replace(claims=frozenset(claims))


def name_of(function: Any) -> str:
    """Return where a function is from, as the command line names it."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"


def checked_gammas(gammas: Any) -> tuple[int, ...]:
    """Return the numbers of drafts to examine a verifier at, as they were given."""
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise argument_error("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}")
    if len(set(gammas)) < len(gammas):
        raise argument_error("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))


def told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return what is said of a verdict that is not good, ``verdicts`` being all of the subject's."""
    if verdict.status is Status.REFUTED:
        said, example = f"{verdict.subject}: {failure(verdict, verdicts)}", verdict.counterexample
        unnamed = example is not None and not example.again and is_external(verdict.subject)
        sampled = verdict.evidence is Evidence.STATISTICAL  # the seeds of a sample stand in the call
        return f"{said}\n  Again run this test: {NO_NAME}" if unnamed and not sampled else said
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


NO_NAME = "specverify replay takes what a module names and the command line makes of it, and this is not such a case"


def _replays(verdict: Verdict) -> bool:
    """Return whether the command line can see a failure again: not that of a lambda, of a call, of an own gamma."""
    example = verdict.counterexample
    if example is None or not is_external(verdict.subject):
        return True
    if "<" in verdict.subject or verdict.subject.rpartition("=")[2].startswith("__main__:"):
        return False
    try:
        named_by(example.again, find_subject)
    except (ValueError, UnusableSubject):
        return False
    return True


def _each_said_once(wrong: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, those that are unusable for one and the same reason as one."""
    told: dict[tuple[Status, str], list[Verdict]] = {}
    for index, verdict in enumerate(wrong):
        same = verdict.statement if verdict.status is Status.UNUSABLE else str(index)
        told.setdefault((verdict.status, same), []).append(verdict)
    return [
        first._replace(statement=f"{first.statement}{f' ({len(others)} other checks say so too)' if others else ''}")
        for first, *others in told.values()
    ]


def _without_replay(verdict: Verdict) -> Verdict:
    example = verdict.counterexample
    return verdict if example is None else verdict._replace(counterexample=example._replace(again=""))
