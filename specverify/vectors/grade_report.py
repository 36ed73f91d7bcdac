"""Grades as text and as JSON: a table of groups, the first failures with their inputs, and the conventions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from specverify.vectors.conventions import meaning_of
from specverify.vectors.grading import FreeChoice, Graded, Grades
from specverify.vectors.notes import NOTES
from specverify.vectors.vector import FORMAT_VERSION, Outcome

FIRST, OF_A_GROUP = 6, 2
"""Most failures that are printed: in total, and of one group."""
LONGEST = 160
MOST_NOTES = 2
COLUMNS = (Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED, Outcome.NOT_ANSWERED)


def table_rows(grades: Grades) -> list[tuple[str, ...]]:
    """Return a table row for every group with an answer: its name, and its number of answers for each grade."""
    rows = []
    for group in grades.groups:
        counts = grades.counted(group)
        if counts[Outcome.NOT_ANSWERED] < counts.total():
            rows.append((group, *(str(counts[column] or "") for column in COLUMNS)))
    return rows


def unanswered_groups(grades: Grades) -> list[str]:
    """Return the names of the groups in ``grades`` without any answer.

    If a kind has more than 9 such groups, one entry with their number replaces them.
    """
    result = [
        group for group in grades.groups if grades.counted(group)[Outcome.NOT_ANSWERED] == grades.counted(group).total()
    ]
    of_kind = Counter(group.split("/")[0] for group in result)
    many = [f"{number} groups of {kind}" for kind, number in of_kind.items() if number > 9]
    return [*(group for group in result if of_kind[group.split("/")[0]] <= 9), *many]


def told_failures(grades: Grades) -> Iterator[str]:
    """Yield some failures of ``grades`` as text, each with the inputs and the reason, to be checked by hand.

    These are the first ``OF_A_GROUP`` of each group, but at most ``FIRST`` in total.
    """
    told: Counter[str] = Counter()
    for item in grades.failures:
        told[item.vector.group] += 1
        if told[item.vector.group] <= OF_A_GROUP and sum(min(n, OF_A_GROUP) for n in told.values()) <= FIRST:
            yield "\n".join(_failure(item))


def convention_lines(grades: Grades) -> Iterator[str]:
    """Yield a line for each family of conventions in ``grades``: the convention that the program follows.

    A family is one question, such as how ties are broken, and its conventions are the possible answers. If no
    convention fits all answers of the program, the line names two vectors whose answers follow different conventions.
    """
    for item in grades.conventions:
        yield (
            _mixed(item) if not item.flags else f"{item.family}: {', '.join(item.flags)} ({meaning_of(item.flags[0])})"
        )


def _mixed(item: FreeChoice) -> str:
    seen = ", ".join(f"{flag} at {vector}" for flag, vector in item.examples.items())
    return f"{item.family}: two conventions are mixed: {seen}"


def summary(grades: Grades) -> str:
    """Return one line with the number of answers of each grade."""
    counts = grades.counted()
    words = [f"{counts[column]} {column}" for column in COLUMNS if counts[column]]
    mixed = f", {len(grades.mixed)} conventions mixed" if grades.mixed else ""
    return f"{', '.join(words) or 'nothing was asked'}{mixed}"


def grades_data(grades: Grades) -> dict[str, Any]:
    """Return all grades as a dictionary that ``json.dumps`` can write."""
    return {
        "format": "specverify vector grades",
        "format_version": FORMAT_VERSION,
        "program": grades.program,
        "counts": _counts(grades, None),
        "groups": {group: _counts(grades, group) for group in grades.groups},
        "conventions": [
            {"family": item.family, "flags": list(item.flags), "mixed": dict(item.examples)}
            for item in grades.conventions
        ],
        "not_passed": [
            {"id": item.vector.id, "outcome": item.judged.outcome.value, "reason": item.judged.reason}
            for item in grades.graded
            if item.judged.outcome is not Outcome.PASSED
        ],
    }


def _counts(grades: Grades, group: str | None) -> dict[str, int]:
    counts = grades.counted(group)
    return {column.value: counts[column] for column in COLUMNS}


def _failure(item: Graded) -> Iterator[str]:
    yield item.vector.id
    for place, (name, value) in enumerate(item.vector.inputs.items()):
        yield f"  {'Let' if place == 0 else '':<5} {name} = {_short(value)}"
    yield f"  Then  {item.judged.reason}"
    for place, note in enumerate(item.vector.notes[:MOST_NOTES]):
        result = NOTES[note]
        yield f"  {'As' if place == 0 else '':<5} {note}: {result.text} ({result.citations[0]})"


def _short(value: Any) -> str:
    text = json.dumps(value).replace('"', "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
