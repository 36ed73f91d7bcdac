"""The last step of every check function: run the plan, and raise an error for verdicts that do not hold."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Unpack

from specverify.base.arguments import argument_error
from specverify.base.verdict import Status, Verdict
from specverify.run.certified import NothingToCertify
from specverify.subjects.subject import Subject, UnusableSubject
from specverify.testing.plans import (
    DEFAULTS,
    CheckOptions,
    CheckPlan,
    Parameters,
    check_names,
    check_options,
    full_signature,
    seconds_of,
    subject_plan,
)
from specverify.testing.told import failure_message, grouped, not_decided, without_false_replay

GOOD = frozenset({Status.HOLDS, Status.DECLARED_BIAS})
heard: ContextVar[Callable[[Verdict], object] | None] = ContextVar("heard", default=None)
"""A second callback that gets every verdict, such as that of the pytest plugin; None if there is none."""
NOTHING: CheckOptions = {}
Verdicts = Sequence[Verdict]
_plans: ContextVar[list[CheckPlan] | None] = ContextVar("plans", default=None)
"""The list that receives a plan instead of running it, inside ``plan_of``; None elsewhere."""
asked: ContextVar[Callable[[str], object] | None] = ContextVar("asked", default=None)
"""Called with the name of each check that a test of ``parametrize_with_checks`` runs, if it is set."""
offered: ContextVar[CheckOptions] = ContextVar("offered", default=NOTHING)
"""The share of a time limit and of an alarm that a run of many tests assigns to the current test."""


class SpeculationRefuted(AssertionError):  # noqa: N818 - reads as the sentence it is
    """Raised if a check refutes the subject; the message is the report with the counterexample."""

    __module__ = "specverify.testing"


class SpeculationUndecided(AssertionError):  # noqa: N818 - as above
    """Raised if no check refutes the subject and at least one is undecided; the message names it and the reason."""

    __module__ = "specverify.testing"


class SpeculationWarning(UserWarning):
    """The warning that ``on_fail="warn"`` issues instead of an error, with the same message."""

    __module__ = "specverify.testing"


def judged(*taken: str) -> Callable[[Callable[Parameters, Verdicts]], Callable[Parameters, Verdicts]]:
    """Return the decorator of a check function: a function that makes a plan and returns ``judge(plan)``.

    The decorated function also validates the shared options, and shows them in its signature. Its attribute ``plan`` is
    a function of the same arguments that returns the plan and runs nothing. ``taken`` names the options in
    ``SOME_DEFAULTS`` that the check function takes.
    """

    def decorate(function: Callable[Parameters, Verdicts]) -> Callable[Parameters, Verdicts]:
        signature = full_signature(function, taken)

        @functools.wraps(function)
        def check(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Verdicts:
            __tracebackhide__ = True
            try:
                check_options(function.__name__, signature.parameters, kwargs)
                return function(*args, **kwargs)
            except (SpeculationRefuted, SpeculationUndecided, UnusableSubject, ValueError) as error:
                raise error.with_traceback(None)  # noqa: B904 - the same error, without the frames of this package

        check.__signature__ = signature  # type: ignore[attr-defined]
        check.plan = functools.partial(plan_of, check)  # type: ignore[attr-defined]
        return check

    return decorate


def plan_of(check: Callable[..., Verdicts], *args: Any, **kwargs: Any) -> CheckPlan:
    """Call ``check`` and return the plan of that call without running it."""
    plans: list[CheckPlan] = []
    token = _plans.set(plans)
    try:
        check(*args, **kwargs)
    finally:
        _plans.reset(token)
    return plans[0]


def judge(plan: CheckPlan) -> Verdicts:
    """Run a plan and return its verdicts; raise or warn for those that do not hold, as its options state.

    Inside ``plan_of`` the plan is stored and not run.

    Raises:
        SpeculationRefuted: If a check refutes.
        UnusableSubject: If none refutes and one cannot be run.
        SpeculationUndecided: If one is UNKNOWN, or none applies.
        ValueError: For names of checks that the plan does not have.
    """
    __tracebackhide__ = True
    check_names(plan.options.get("checks"), "checks", plan.checks)
    check_names(plan.options.get("expected_failures"), "expected_failures", plan.checks)
    plans = _plans.get()
    if plans is not None:
        plans.append(plan)
        return ()
    verdicts: list[Verdict] = []
    chosen = plan.options.get("checks")
    for verdict in examined(plan, tuple(chosen or plan.checks), {}):
        if verdict.status is Status.NOT_APPLICABLE:
            if chosen:
                said = f"{plan.name}: {verdict.check} was not examined: {verdict.statement}"
                warnings.warn(said, SpeculationWarning, stacklevel=4)
            continue
        verdicts.append(verdict)
        tell(plan, verdict)
        if plan.options.get("fail_fast") and fault_of(plan, verdicts[-1:]) is not None:
            break
    if plan.options.get("certificate") is not None:
        _certify(plan, Path(str(plan.options["certificate"])))
    settle(plan, fault_of(plan, verdicts))
    return verdicts


def _certify(plan: CheckPlan, file: Path) -> None:
    """Write the certificates of the plan's subject to ``file``; warn if there is nothing to certify."""
    try:
        plan.certify(file)
    except NothingToCertify as reason:
        warnings.warn(f"no certificate is written: {reason}", SpeculationWarning, stacklevel=4)


def examined(plan: CheckPlan, names: Sequence[str], known: Mapping[str, Verdict]) -> Iterator[Verdict]:
    """Yield the verdicts of the plan's checks, as each check ends.

    ``names`` are the selected checks; verdicts in ``known`` are not computed again.
    """
    given = seconds_of(plan.options)
    seconds = min(given, offered.get().get("timeout", given))
    for verdict in plan.examine(names, seconds, known):
        yield without_false_replay(verdict, replays=plan.replays)


def tell(plan: CheckPlan, verdict: Verdict) -> None:
    """Pass ``verdict`` to the callbacks: that of the plan, and that of the pytest plugin."""
    for listener in (plan.options.get("callback"), heard.get()):
        if listener is not None:
            listener(verdict)


def settle(plan: CheckPlan, fault: Exception | None) -> None:
    """Deal with the error ``fault`` according to the option ``on_fail`` of ``plan``.

    "raise" raises the error, "warn" issues it as a warning, and any other value does nothing. Nothing is done if
    ``fault`` is None.
    """
    __tracebackhide__ = True
    on_fail = plan.options.get("on_fail", DEFAULTS["on_fail"])
    if fault is not None and on_fail == "raise":
        raise fault
    if fault is not None and on_fail == "warn":
        warnings.warn(str(fault), SpeculationWarning, stacklevel=5)


def fault_of(plan: CheckPlan, verdicts: Sequence[Verdict]) -> Exception | None:
    """Return the error to raise for these verdicts of the plan's checks; None if all are as expected.

    If there are no verdicts, the error states that no check applies, unless only checks that are expected to fail were
    selected.
    """
    expected = plan.options.get("expected_failures") or {}
    wrong = [verdict for verdict in verdicts if _is_wrong(plan, verdict, verdicts)]
    right = {verdict.check for verdict in verdicts if verdict.status in GOOD}
    surprising = [_surprise(plan.name, name, why) for name, why in expected.items() if name in right]
    wrong = [verdict for verdict in wrong if verdict.check not in expected or verdict.status is Status.UNUSABLE]
    if not verdicts and not (set(plan.options.get("checks") or plan.checks) <= set(expected)):
        return SpeculationUndecided(f"{plan.name}: no check applies to it, so nothing was examined")
    if not wrong:
        return SpeculationUndecided("\n".join(surprising)) if surprising else None
    statuses = {verdict.status for verdict in wrong}
    if Status.REFUTED in statuses and plan.refuted_alone:
        wrong = [verdict for verdict in wrong if verdict.status is Status.REFUTED]
    unknown = [verdict for verdict in wrong if verdict.status is Status.UNKNOWN and Status.REFUTED in statuses]
    said = [failure_message(group) for group in grouped([verdict for verdict in wrong if verdict not in unknown])]
    message = "\n\n".join(filter(None, [*said, not_decided(unknown), *surprising, plan.hint()]))
    if Status.REFUTED in statuses:
        return SpeculationRefuted(message)
    return UnusableSubject(message) if Status.UNUSABLE in statuses else SpeculationUndecided(message)


def _is_wrong(plan: CheckPlan, verdict: Verdict, verdicts: Sequence[Verdict]) -> bool:
    if verdict.status is Status.UNKNOWN and plan.sample_decides:
        return not any(other.check in plan.statistical and other.status in GOOD for other in verdicts)
    return verdict.status not in GOOD


def _surprise(name: str, check: str, why: str) -> str:
    return f"{name}: {check} was expected to fail ({why}) and holds: take it out of expected_failures"


@judged("claims", "sampled", "tv", "seed", "certificate")
def check_subject(subject: Subject, **options: Unpack[CheckOptions]) -> Sequence[Verdict]:
    """Run every check on a subject of ``specverify.subjects``, or of a registry.

    Args:
        subject: The subject, as ``specverify.run.catalogue.find_subject(name)`` returns it.
        **options: See ``CheckOptions``. With ``sampled`` an exact check may stay UNKNOWN if a sample holds: the sample
            decides.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For an invalid subject or option.

    Examples:
        >>> from specverify.run.catalogue import find_subject
        >>> subject = find_subject("reference:speculative-sampling")
        >>> [verdict] = check_subject(subject, checks=["greedy_is_argmax"], quick=True)
        >>> verdict.status is Status.HOLDS
        True
    """
    if not isinstance(subject, Subject):
        raise argument_error("the subject", subject, "a Subject, as specverify.subjects makes them")
    return judge(subject_plan(subject, options))
