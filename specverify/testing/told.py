"""The messages about failed verdicts in a user's test run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specverify.base.verdict import Status, Verdict
from specverify.foreign.places import GIVEN
from specverify.report.prose import LAWS, also_refuted, by_cause, failure
from specverify.run.catalogue import find_subject, is_external
from specverify.run.replays import named_by
from specverify.subjects.subject import UnusableSubject

AT_BOUNDARY_DRAWS = "support_at_boundary_draws"
_ANSWER = re.compile(r"(returned \w+) .*(?=, expected )", re.DOTALL)
"""Matches a result of the wrong kind in a message; it differs in each call."""
_SEE = re.compile(r": (see \w+)$")
"""Matches the end of a reason that refers to the verdict of another check."""


def failure_message(group: Sequence[Verdict]) -> str:
    """Return the message about ``group``, the failed verdicts that have one cause."""
    verdict, *others = group
    if verdict.status is not Status.REFUTED:
        return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"
    return "\n".join(filter(None, [f"{verdict.subject}: {failure(verdict)}", also_refuted(others)]))


def not_decided(unknown: Sequence[Verdict]) -> str:
    """Return the line with the checks that stay UNKNOWN beside a refutation; "" if none does.

    Their reasons are left out, except the name of another check whose verdict is the reason.
    """
    names = ", ".join(_with_other_check(verdict).replace("_", " ") for verdict in unknown)
    return f"{unknown[0].subject}: not decided: {names}" if unknown else ""


def _with_other_check(verdict: Verdict) -> str:
    other = _SEE.search(verdict.statement)
    return f"{verdict.check} ({other.group(1)})" if other else verdict.check


def grouped(wrong: Sequence[Verdict]) -> list[list[Verdict]]:
    """Return the failed verdicts ``wrong`` in groups; the verdicts of a group have one cause, such as one wrong law.

    Groups with a refutation come first, in the order of ``report.prose.by_cause``, then the others in the order of
    ``wrong``. If a law could not be examined, what the answers mean is not known, so a refutation at boundary draws
    comes last.
    """
    refuted, others = by_cause(wrong), [[v] for v in each_said_once(wrong) if v.status is not Status.REFUTED]
    is_unusable = any(v.check in LAWS and v.status is Status.UNUSABLE for v in wrong)
    last = [group for group in refuted if is_unusable and group[0].check == AT_BOUNDARY_DRAWS]
    return [group for group in refuted if group not in last] + others + last


def each_said_once(wrong: Sequence[Verdict]) -> list[Verdict]:
    """Return the failed verdicts ``wrong``; UNUSABLE or UNKNOWN ones with the same reason are merged into one."""
    told: dict[tuple[Status, str], list[Verdict]] = {}
    for index, verdict in enumerate(wrong):
        reason = _ANSWER.sub(r"\1", verdict.statement.partition(GIVEN)[0])  # checks begin with different calls
        same = reason if verdict.status in {Status.UNUSABLE, Status.UNKNOWN} else str(index)
        told.setdefault((verdict.status, same), []).append(verdict)
    return [first._replace(statement=f"{first.statement}{_others(len(others))}") for first, *others in told.values()]


def _others(number: int) -> str:
    return f" ({number} other check{'s say' if number > 1 else ' says'} so too)" if number else ""


def without_false_replay(verdict: Verdict, *, replays: bool) -> Verdict:
    """Return the verdict without its replay identifier if ``specverify replay`` could not find the case.

    ``replays`` is False for a plan whose cases the command line never finds.
    """
    example = verdict.counterexample
    if example is None or (replays and _replays(verdict)):
        return verdict
    return verdict._replace(counterexample=example._replace(again=""))


def _replays(verdict: Verdict) -> bool:
    """Return whether ``specverify replay`` can repeat the failure of ``verdict``.

    It cannot if the subject is a lambda or a call with arguments, or if the case has gammas that the caller chose.
    """
    example = verdict.counterexample
    if example is None or not is_external(verdict.subject):
        return True
    if "<" in verdict.subject or "(" in verdict.subject or verdict.subject.rpartition("=")[2].startswith("__main__:"):
        return False
    try:
        named_by(example.again, find_subject)
    except (ValueError, UnusableSubject):
        return False
    return True
