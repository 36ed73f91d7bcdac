"""What is said of a verdict that is not good, in somebody's own test run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specverify.base.verdict import Evidence, Status, Verdict
from specverify.foreign.places import GIVEN
from specverify.report.prose import failure
from specverify.run.catalogue import find_subject, is_external
from specverify.run.replays import named_by
from specverify.subjects.subject import UnusableSubject

_ANSWER = re.compile(r"(returned \w+) .*(?=, expected )", re.DOTALL)
"""An answer of the wrong kind, as it is shown: another one in each call."""
NO_NAME = "the command line cannot name what was examined, so specverify replay cannot show it"


def told(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return what is said of a verdict that is not good, ``verdicts`` being all of the subject's."""
    if verdict.status is Status.REFUTED:
        said, example = f"{verdict.subject}: {failure(verdict, verdicts)}", verdict.counterexample
        unnamed = example is not None and not example.again and is_external(verdict.subject)
        sampled = verdict.evidence is Evidence.STATISTICAL  # the seeds of a sample stand in the call
        return f"{said}\n  Again run this test: {NO_NAME}" if unnamed and not sampled else said
    return f"{verdict.subject}: {verdict.check} is {verdict.status}: {verdict.statement}"


def each_said_once(wrong: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, those that are unusable for one and the same reason as one."""
    told: dict[tuple[Status, str], list[Verdict]] = {}
    for index, verdict in enumerate(wrong):
        reason = _ANSWER.sub(r"\1", verdict.statement.partition(GIVEN)[0])  # checks begin with different calls
        same = reason if verdict.status in {Status.UNUSABLE, Status.UNKNOWN} else str(index)
        told.setdefault((verdict.status, same), []).append(verdict)
    return [first._replace(statement=f"{first.statement}{_others(len(others))}") for first, *others in told.values()]


def _others(number: int) -> str:
    return f" ({number} other check{'s say' if number > 1 else ' says'} so too)" if number else ""


def without_false_replay(verdict: Verdict, *, replays: bool) -> Verdict:
    """Return the verdict without an identifier that the command line would not find the case of."""
    example = verdict.counterexample
    if example is None or (replays and _replays(verdict)):
        return verdict
    return verdict._replace(counterexample=example._replace(again=""))


def _replays(verdict: Verdict) -> bool:
    """Return whether the command line can see a failure again: not that of a lambda, of a call, of an own gamma."""
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
