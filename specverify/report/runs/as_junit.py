"""Results of a run as JUnit XML: one suite per subject, one test case per check."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from specverify.base.verdict import Status, Verdict, word_of
from specverify.report.prose import first_sentence, in_full
from specverify.report.runs.said import APART, RunSaid, SubjectSaid, printable

FAILURES = (Status.REFUTED, Status.UNKNOWN)
"""Statuses that fail a JUnit test. UNKNOWN is one, because a passing test must be evidence."""


def run_as_junit(run: RunSaid) -> str:
    """Return the JUnit XML of a run."""
    root = Element("testsuites", {"name": f"specverify {run.kind}", **_numbers(run.verdicts)})
    for subject in run.subjects:
        _suite(root, subject, run)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def allowed(text: str) -> str:
    """Return ``text`` without characters that XML does not allow."""
    return printable(text, "\n\t")


def _suite(root: Element, subject: SubjectSaid, run: RunSaid) -> None:
    suite = SubElement(root, "testsuite", {"name": allowed(subject.name), **_numbers(subject.verdicts)})
    properties = SubElement(suite, "properties")
    for name, value in (*run.facts.items(), *run.versions.items(), ("command", run.command)):
        SubElement(properties, "property", name=allowed(name), value=allowed(value))
    for verdict in subject.verdicts:
        case = SubElement(
            suite, "testcase", name=verdict.check, classname=allowed(subject.name), time=f"{verdict.seconds:.3f}"
        )
        _outcome(case, verdict, subject)


def _outcome(case: Element, verdict: Verdict, subject: SubjectSaid) -> None:
    said = allowed(first_sentence(verdict))
    if verdict.status in FAILURES:
        told = in_full(verdict)
        SubElement(case, "failure", type=word_of(verdict), message=said).text = allowed(told)
    elif verdict.status is Status.UNUSABLE:
        SubElement(case, "error", type=str(verdict.status), message=said).text = said
    elif verdict.status in APART:
        SubElement(case, "skipped", message=said or str(verdict.status))
    else:
        SubElement(case, "system-out").text = said


def _numbers(verdicts: tuple[Verdict, ...]) -> dict[str, str]:
    return {
        "tests": str(len(verdicts)),
        "failures": str(sum(verdict.status in FAILURES for verdict in verdicts)),
        "errors": str(sum(verdict.status is Status.UNUSABLE for verdict in verdicts)),
        "skipped": str(sum(verdict.status in APART for verdict in verdicts)),
        "time": f"{sum(verdict.seconds for verdict in verdicts):.3f}",
    }
