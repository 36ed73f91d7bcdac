"""Running checks on subjects: every case of every check, first failure reported, nothing turned into a pass."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import reference
from reference import Claim
from specverify.checks import Check, Conditions
from specverify.checks._replays import noticed
from specverify.checks.check import beyond_reach
from specverify.checks.program_is_its_draws import CHECK as PROGRAM_IS_ITS_DRAWS
from specverify.draws import NotAFunctionOfItsDraws
from specverify.enumeration import EnumerationTooLarge
from specverify.identifier import Replay, encode
from specverify.intercept.deferred import NeedsValue
from specverify.intercept.moved import look_around
from specverify.parallel import in_parallel
from specverify.subjects.subject import Case, Refused, Subject
from specverify.verdict import Evidence, Examination, Status, Verdict

SUMMED = ("runs", "unmerged_runs", "samples", "replays")


class _OutOfTime(BaseException):  # a subject's `except Exception` must not swallow it
    pass


class Plan(NamedTuple):
    """What to run on a subject."""

    checks: tuple[Check, ...]
    conditions: Conditions = Conditions()
    seconds: float = 600.0
    """Time limit of one exact check on one subject; a planned sample takes the time it takes."""


def verify_subject(
    subject: Subject, plan: Plan, progress: Callable[[str], None] = lambda check: None
) -> Iterator[Verdict]:
    """Yield the verdict of every check of the plan, also of those that do not apply."""
    blocked: str | None = None
    refused: str | None = None
    hidden = False
    try:
        with _time_limit(plan.seconds):
            subject = settled(subject)
    except _OutOfTime:
        blocked = f"its first decode did not finish within {plan.seconds:g} s"
    for check in _guarded(subject, plan.checks):
        progress(check.name)
        started = time.perf_counter()
        stopped = blocked and not (hidden and check.evidence is Evidence.STATISTICAL)
        verdict = _not_applicable(subject, check, refused) or (
            _verdict(subject, check, Status.UNKNOWN, blocked) if stopped else run_check(subject, check, plan)
        )
        if verdict.status is Status.REFUSED:
            refused = "the engine refuses the setting"
        if verdict.figures.get("function_of_draws") is False:
            blocked, hidden = "it is not a function of its draws, so it has no law to compare", True
        elif verdict.status is Status.UNKNOWN and verdict.figures.get("replays") == 0:
            blocked, hidden = verdict.statement, True
        if check in plan.checks or hidden:
            yield verdict._replace(seconds=time.perf_counter() - started)


def _guarded(subject: Subject, checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """Return the checks with the one that all exact ones of foreign code rest on, said only if it fails."""
    foreign = subject.programs or subject.intercepted
    resting = any(check.evidence is not Evidence.STATISTICAL for check in checks)
    needed = foreign and resting and PROGRAM_IS_ITS_DRAWS not in checks
    return (PROGRAM_IS_ITS_DRAWS, *checks) if needed else checks


def settled(subject: Subject) -> Subject:
    """Return the subject with the arithmetic it can do found out; what foreign code draws from is looked for."""
    if subject.warm is not None:
        subject.warm()
    if subject.intercepted or subject.programs:
        look_around()
    return subject if subject.probe is None else subject._replace(rational=subject.probe(), probe=None)


def run_check(subject: Subject, check: Check, plan: Plan) -> Verdict:
    """Run one check on all its cases, within the time limit."""
    try:
        with nullcontext() if check.evidence is Evidence.STATISTICAL else _time_limit(plan.seconds):
            return _over_cases(subject, check, check.cases(subject), plan)
    except _OutOfTime:
        return _verdict(subject, check, Status.UNKNOWN, f"not finished after {plan.seconds:g} s")
    except _SAID as reason:
        status = Status.REFUSED if isinstance(reason, Refused) else Status.UNKNOWN
        return _verdict(subject, check, status, _why(subject, reason))
    except Exception as error:  # noqa: BLE001 - a subject may raise anything; it is named, never passed
        return _verdict(subject, check, Status.UNUSABLE, _one_sentence(error))


_SAID = (Refused, EnumerationTooLarge, NeedsValue, NotAFunctionOfItsDraws)
"""What says in its own words why there is no verdict."""


def _why(subject: Subject, reason: Exception) -> str:
    if isinstance(reason, NeedsValue):
        return f"cannot be enumerated, only sampled{': see samples_fit_law' if subject.settings else ''}: {reason}"
    return f"not a function of its draws: {reason}" if isinstance(reason, NotAFunctionOfItsDraws) else str(reason)


def run_case(case: Case, check: Check, conditions: Conditions) -> Verdict:
    """Run one check on one case: what a replay does."""
    return _judge(case.subject, check, [(case, check.examine(case, conditions))], conditions)


def _over_cases(subject: Subject, check: Check, cases: Iterable[Case], plan: Plan) -> Verdict:
    jobs = plan.conditions.jobs
    if check.evidence is Evidence.STATISTICAL and jobs > 1:
        listed = list(cases)
        found = in_parallel([partial(check.examine, case, plan.conditions) for case in listed], jobs)
        return _judge(subject, check, list(zip(listed, found, strict=True)), plan.conditions)
    examined, skipped = [], 0
    for case in cases:
        if beyond_reach(case):
            skipped += 1
            continue
        examined.append((case, check.examine(case, plan.conditions)))
        if examined[-1][1].failed:
            break
    verdict = _judge(subject, check, examined, plan.conditions)
    return verdict._replace(figures={**verdict.figures, "skipped": skipped}) if skipped else verdict


def _judge(subject: Subject, check: Check, examined: list[tuple[Case, Examination]], conditions: Conditions) -> Verdict:
    figures = _merged([examination.figures for _, examination in examined])
    figures["cases"] = len(examined)
    figures["rational"] = all(examination.rational for _, examination in examined)
    failed = next(((case, item) for case, item in examined if item.failed), None)
    unknown = next((item for _, item in examined if item.unknown), None)
    if failed:
        case, item = failed
        again = encode(_replay(case, check, conditions))
        verdict = _verdict(subject, check, Status.REFUTED, item.statement)
        figures["tv"] = item.figures.get("tv", 0.0)
        figures["rational"] = item.rational
        example = item.counterexample._replace(again=again) if item.counterexample else None
        return verdict._replace(counterexample=example, figures=figures)
    if unknown:
        return _verdict(subject, check, Status.UNKNOWN, unknown.statement)._replace(figures=figures)
    if not examined:
        return _verdict(subject, check, Status.UNKNOWN, "no case applies, so nothing was examined")
    status = Status.DECLARED_BIAS if figures.get("bias") else Status.HOLDS
    return _verdict(subject, check, status, examined[-1][1].statement)._replace(figures=figures)


def _not_applicable(subject: Subject, check: Check, refused: str | None) -> Verdict | None:
    reason = check.obstacle(subject) or refused
    if reason is None and check.claim is not None and check.claim not in implied(subject.claims):
        reason = f"it does not claim to be {check.claim.value}"
    return None if reason is None else _verdict(subject, check, Status.NOT_APPLICABLE, reason)


def implied(claims: frozenset[Claim]) -> frozenset[Claim]:
    """Return the claims and what follows from them: LOSSLESS for every target includes one-hot targets."""
    return claims | {Claim.GREEDY, Claim.SUPPORTED} if Claim.LOSSLESS in claims else claims


def _verdict(subject: Subject, check: Check, status: Status, statement: str | None) -> Verdict:
    claim = check.claim.value if check.claim else None
    return Verdict(subject.name, check.name, status, statement or "", claim, check.evidence)


def _replay(case: Case, check: Check, conditions: Conditions) -> Replay:
    return Replay(
        case.subject.name,
        check.name,
        case.variant.label if case.variant else "",
        case.scenario.name if case.scenario else "",
        next((part.name for part in (case.setting, case.program, case.pair) if part), ""),
        conditions.seed,
    )


def _merged(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for item in figures:
        for name, value in item.items():
            if name not in merged:
                merged[name] = value
            elif name in SUMMED or isinstance(value, list):
                merged[name] = merged[name] + value
            elif isinstance(value, (int, float)):
                merged[name] = max(merged[name], value)
    return merged | ({"noticed_above": noticed(merged["replays"])} if "replays" in merged else {})


def _one_sentence(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((item for item in reversed(frames) if not _is_ours(item.filename)), frames[-1])
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message} ({Path(frame.filename).name}:{frame.lineno})"


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(Path(__file__).parent) or Path(filename).is_relative_to(
        Path(reference.__file__).parent
    )


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
