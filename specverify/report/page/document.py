"""The page of a run: verdicts by claim, every failure, every subject, and how to reproduce the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from specverify.base.verdict import Verdict, word_of
from specverify.report.page.charts import panel
from specverify.report.page.markup import Content, Markup, element, joined, scrolling, table
from specverify.report.page.matrix import matrix
from specverify.report.prose import SYMBOLS, scope, strength
from specverify.report.runs.said import APART, BY_CLAIM, FAILED, OPEN, SETTLED, RunSaid, SubjectSaid, by_claim, counted

TITLES = {
    "verdicts": "What was examined",
    "statistics": "Planned samples",
    "kill matrix": "Planted bugs",
    "campaign": "A campaign of samples",
}
TOLD_AT_ONCE = 40
"""The largest number of subjects for which all sections of the page are open."""


def page(run: RunSaid) -> str:
    """Return the text of the HTML file that reports a run."""
    title = f"{TITLES[run.kind]}: {_in_short(run)}"
    sections = [part for part in (_summary(run), _failures(run), _undecided(run), _matrix(run), _subjects(run)) if part]
    sections += [_again(run), _made(run)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Markup(f"<style>{style()}</style>"),
    )
    names = [(name, heading) for name, heading, _ in sections]
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading in names]
    body = element(
        "body",
        element("a", "Skip to what was found", href=f"#{names[0][0]}", class_="skip"),
        element("header", element("h1", title), element("nav", element("ul", *links), aria_label="Parts of this page")),
        element("main", *(_section(*section) for section in sections)),
        element("footer", element("p", "Written by specverify. UNKNOWN is a verdict: it is never turned into a pass.")),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en').text}\n"


def style() -> str:
    """Return the style sheet of the page."""
    return files("specverify.report.page").joinpath("style.css").read_text("utf-8")


Section = tuple[str, str, Markup]


def _section(name: str, heading: str, content: Markup) -> Markup:
    return element("section", element("h2", heading, id=name), content, aria_labelledby=name)


def _in_short(run: RunSaid) -> str:
    told = [f"{number} {status}" for status, number in counted(run.verdicts).items()]
    return ", ".join(told) or "nothing was examined"


def badge(status: str) -> Markup:
    """Return the badge of a status: its word with a sign, so that colour is not the only distinction."""
    return element("span", f"{SYMBOLS[status]} {status}", class_=f"status {status.replace(' ', '-')}")


def _summary(run: RunSaid) -> Section:
    rows = [(claim, *map(str, numbers)) for claim, numbers in by_claim(run.verdicts).items()]
    tiles = [
        element("li", element("b", str(number)), badge(status), class_="tile")
        for status, number in counted(run.verdicts).items()
    ]
    parts: list[Content] = [element("ul", *tiles, class_="tiles")]
    parts += [element("p", sentence, class_="unfinished") for sentence in run.unfinished]
    parts.append(scrolling("Verdicts by claim", table("Verdicts by claim", BY_CLAIM, rows)))
    return "summary", "Summary by claim", joined(parts)


def _failures(run: RunSaid) -> Section | None:
    result = [verdict for verdict in run.verdicts if verdict.status in FAILED]
    if not result:
        return None
    return (
        "failures",
        f"Failures ({len(result)})",
        joined(failure(number, item) for number, item in enumerate(result, 1)),
    )


def failure(number: int, verdict: Verdict) -> Markup:
    """Return a failed ``verdict`` (REFUTED or UNUSABLE) as HTML: its statement, and its counterexample if it has one.

    The counterexample has the terms Let, Then, Because and Again. ``number`` is that of the failure on the page.
    """
    name = f"failure-{number}"
    parts: list[Content] = [
        element("h3", f"{number}. {verdict.subject}: {verdict.check.replace('_', ' ')}", id=name),
        element("p", badge(word_of(verdict)), f" {_about(verdict)}{verdict.statement}"),
    ]
    example = verdict.counterexample
    if example is not None:
        lines = [("Let", line) for line in example.let] + [("Then", example.then)]
        lines += [("Because", line) for line in example.because]
        terms = list(_terms(lines))
        if example.again:
            terms += [element("dt", "Again"), element("dd", element("code", f"specverify replay {example.again}"))]
        parts.append(element("dl", *terms))
    return element("article", *parts, class_="failure", aria_labelledby=name)


def _terms(lines: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    last = ""
    for word, line in lines:
        if word != last:
            yield element("dt", word)
        yield element("dd", element("span", line, class_="line"))
        last = word


def _about(verdict: Verdict) -> str:
    parts = [verdict.claim.upper() if verdict.claim else "", str(verdict.evidence or "")]
    told = ", ".join(filter(None, parts))
    return f"{told}: " if told else ""


def _undecided(run: RunSaid) -> Section | None:
    result = [verdict for verdict in run.verdicts if verdict.status in OPEN]
    rows = [(verdict.subject, verdict.check.replace("_", " "), verdict.statement) for verdict in result]
    whole = scrolling(
        "Not decided", table("What is neither held nor refuted", ("subject", "check", "why"), rows, class_="told")
    )
    return ("undecided", f"Not decided ({len(result)})", whole) if result else None


def _matrix(run: RunSaid) -> Section | None:
    return None if run.matrix is None else ("kill-matrix", "Kill matrix", matrix(run.matrix))


def _subjects(run: RunSaid) -> Section | None:
    """Return the section of the subjects of ``run`` with their checks; None if it would be empty.

    For a kill matrix it contains only the subjects with an unexpected result.
    """
    shown = [item for item in run.subjects if run.matrix is None or not _is_fine(item)]
    if not shown:
        return None
    many = len(shown) > TOLD_AT_ONCE
    return "subjects", f"Subjects ({len(shown)})", joined(_subject(i, item, many) for i, item in enumerate(shown, 1))


def _is_fine(subject: SubjectSaid) -> bool:
    return not any(verdict.status in (*FAILED, *OPEN) for verdict in subject.verdicts)


def _subject(number: int, subject: SubjectSaid, many: bool) -> Markup:
    asked = [verdict for verdict in subject.verdicts if verdict.status not in APART]
    rows: list[Sequence[Content]] = [
        (verdict.check.replace("_", " "), badge(word_of(verdict)), verdict.statement, _covers(verdict))
        for verdict in asked
    ]
    apart = len(subject.verdicts) - len(asked)
    name = f"subject-{number}"
    counts = counted(tuple(asked))
    heading = element("h3", subject.name, id=name)
    summary = element("summary", heading, *(badge(status) for status in counts))
    checks = table("Checks", ("check", "verdict", "what was found", "how far"), rows, class_="told")
    parts: list[Content] = [
        scrolling(f"Checks of subject {number}", checks),
        *([element("p", f"{apart} checks do not apply.", class_="quiet")] if apart else []),
        *(panel(result, f"{name}-{place}") for place, result in enumerate(subject.panels, start=1)),
    ]
    closed = many and _is_fine(subject)
    return element("details", summary, *parts, class_="subject", open=None if closed else "")


def _covers(verdict: Verdict) -> str:
    told = strength(verdict) if verdict.status in SETTLED else str(verdict.evidence or "")
    return "; ".join(filter(None, (told, scope(verdict))))


def _again(run: RunSaid) -> Section:
    parts: list[Content] = []
    if run.command:
        parts += [
            element("p", "The whole run, with the same seeds:"),
            element("pre", element("code", run.command), tabindex="0"),
        ]
    else:
        parts.append(element("p", "The command that started the run is not recorded."))
    parts.append(element("p", "One failure alone: the command that stands beside Again. It needs the same version."))
    return "again", "How to see it again", joined(parts)


def _made(run: RunSaid) -> Section:
    facts = [(name, value) for name, value in run.facts.items()]
    versions = [(name, value) for name, value in sorted(run.versions.items())]
    parts = [
        scrolling("Seeds and budget", table("Decided before the run", ("what", "value"), facts)),
        scrolling("Versions", table("Versions", ("package", "version"), versions)),
    ]
    return "made", "Seeds, alarm budget, versions", joined(parts)
