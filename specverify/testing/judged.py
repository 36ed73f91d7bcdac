"""What every check function does in the end: run its plan, and raise what is not good."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Unpack

from specverify.base.arguments import argument_error
from specverify.base.verdict import Status, Verdict
from specverify.subjects.subject import Subject, UnusableSubject
from specverify.testing.plans import (
    DEFAULTS,
    Judging,
    Parameters,
    Plan,
    full_signature,
    seconds_of,
    subject_plan,
    with_options_checked,
)
from specverify.testing.told import grouped, told, without_false_replay

GOOD = frozenset({Status.HOLDS, Status.DECLARED_BIAS})
heard: ContextVar[Callable[[Verdict], object] | None] = ContextVar("heard", default=None)
"""Who is told of every verdict beside the caller, as the plugin of pytest is."""
NOTHING: Judging = {}
offered: ContextVar[Judging] = ContextVar("offered", default=NOTHING)
"""The share of a time limit and of an alarm that a run of many tests leaves to this one."""


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A claim does not hold; the message is the report."""

    __module__ = "specverify.testing"


class SpeculationUndecided(AssertionError):  # noqa: N818 - as above
    """Nothing is refuted, and something could not be said; the message says what and why."""

    __module__ = "specverify.testing"


class SpeculationWarning(UserWarning):
    """What would be raised, with ``on_fail="warn"``."""

    __module__ = "specverify.testing"


def judged(planned: Callable[Parameters, Plan]) -> Callable[Parameters, Sequence[Verdict]]:
    """Return the check function of what makes its plan: it judges, with the common options in its signature."""
    plan = with_options_checked(planned)

    def check(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Sequence[Verdict]:
        __tracebackhide__ = True
        return judge(plan(*args, **kwargs))

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(check, name, getattr(planned, name))
    check.__signature__ = full_signature(planned)  # type: ignore[attr-defined]
    check.plan = plan  # type: ignore[attr-defined]
    return check


def judge(plan: Plan) -> Sequence[Verdict]:
    """Run a plan and return its verdicts, or raise or warn as it is told.

    Raises ``SpeculationRefuted`` if a check refutes, ``UnusableSubject`` if none does and one cannot be run,
    ``SpeculationUndecided`` if one is UNKNOWN or none applies.
    """
    __tracebackhide__ = True
    verdicts: list[Verdict] = []
    for verdict in examined(plan, tuple(plan.how.get("checks") or plan.checks), {}):
        verdicts.append(verdict)
        tell(plan, verdict)
        if plan.how.get("fail_fast") and fault_of(plan, verdicts[-1:]) is not None:
            break
    settle(plan, fault_of(plan, verdicts))
    return verdicts


def examined(plan: Plan, names: Sequence[str], known: Mapping[str, Verdict]) -> Iterator[Verdict]:
    """Yield the verdicts of these checks of a plan that say something of its subject, each when it ends."""
    given = seconds_of(plan.how)
    seconds = min(given, offered.get().get("timeout", given))
    for verdict in plan.examine(names, seconds, known):
        if verdict.status is not Status.NOT_APPLICABLE:
            yield without_false_replay(verdict, replays=plan.replays)


def tell(plan: Plan, verdict: Verdict) -> None:
    """Hand a verdict to those who asked for it."""
    for listener in (plan.how.get("callback"), heard.get()):
        if listener is not None:
            listener(verdict)


def settle(plan: Plan, fault: Exception | None) -> None:
    """Raise what is not good, or warn, or do neither."""
    __tracebackhide__ = True
    on_fail = plan.how.get("on_fail", DEFAULTS["on_fail"])
    if fault is not None and on_fail == "raise":
        raise fault
    if fault is not None and on_fail == "warn":
        warnings.warn(str(fault), SpeculationWarning, stacklevel=4)


def fault_of(plan: Plan, verdicts: Sequence[Verdict]) -> Exception | None:
    """Return what is to be raised of these verdicts, if anything is."""
    expected = plan.how.get("expected_failures") or {}
    wrong = [verdict for verdict in verdicts if _is_wrong(plan, verdict, verdicts)]
    right = {verdict.check for verdict in verdicts} - {verdict.check for verdict in wrong}
    surprising = [_surprise(plan.name, name, why) for name, why in expected.items() if name in right]
    wrong = [verdict for verdict in wrong if verdict.check not in expected or verdict.status is Status.UNUSABLE]
    if not verdicts and not (set(plan.how.get("checks") or plan.checks) <= set(expected)):
        return SpeculationUndecided(f"{plan.name}: no check applies to it, so nothing was examined")
    if not wrong:
        return SpeculationUndecided("\n".join(surprising)) if surprising else None
    statuses = {verdict.status for verdict in wrong}
    if Status.REFUTED in statuses and plan.refuted_alone:
        wrong = [verdict for verdict in wrong if verdict.status is Status.REFUTED]
    said = [told(group) for group in grouped(wrong)] + surprising
    message = "\n\n".join(filter(None, [*said, plan.hint()]))
    if Status.REFUTED in statuses:
        return SpeculationRefuted(message)
    return UnusableSubject(message) if Status.UNUSABLE in statuses else SpeculationUndecided(message)


def _is_wrong(plan: Plan, verdict: Verdict, verdicts: Sequence[Verdict]) -> bool:
    if verdict.status is Status.UNKNOWN and plan.sample_decides:
        return not any(other.check in plan.statistical and other.status in GOOD for other in verdicts)
    return verdict.status not in GOOD


def _surprise(name: str, check: str, why: str) -> str:
    return f"{name}: {check} was expected to fail ({why}) and holds: take it out of expected_failures"


@judged
def check_subject(subject: Subject, *, sampled: bool = False, **how: Unpack[Judging]) -> Plan:
    """Run every exact check on a subject, and with ``sampled`` the statistical one too.

    Where the draws cannot be answered and a sample holds, the exact checks may stay UNKNOWN: the sample has decided.
    """
    if not isinstance(subject, Subject):
        raise argument_error("the subject", subject, "a Subject, as specverify.subjects makes them")
    return subject_plan(subject, how, sampled=sampled)
