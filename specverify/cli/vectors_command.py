"""``specverify vectors``: test vectors for programs in any language, and grades of their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specverify.base.files import check_folder, reason_of
from specverify.cli.options import (
    HOLDS,
    REFUTED,
    UNKNOWN,
    JobsOption,
    JsonOption,
    MarkdownOption,
    checked,
    console,
    errors,
    made,
    option,
    processes,
    stop,
    write_report,
)
from specverify.report.wrapping import say

if TYPE_CHECKING:
    from specverify.vectors.grading import Grades
    from specverify.vectors.results import Results
    from specverify.vectors.vector import Vector

vectors_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Test vectors for programs in any language (docs/vectors.md)."
)


def _check_groups(names: list[str]) -> None:
    from specverify.base.arguments import nearest
    from specverify.vectors.all_vectors import KINDS, groups

    known = (*(kind.name for kind in KINDS), *groups())
    for name in names:
        if name not in known:
            kinds = ", ".join(kind.name for kind in KINDS)
            raise ValueError(f"there is no group {name!r}, expected {kinds}, or one of them/FLAG{nearest(name, known)}")


@vectors_app.command("export")
def export_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to.", callback=checked(check_folder, "the folder"))
    ],
) -> None:
    """Write the test vectors (inputs with their right answers) as JSON files, one for each kind, and their schemas."""
    from specverify.vectors.all_vectors import all_vectors
    from specverify.vectors.export import export

    try:
        written = export(folder)
    except OSError as error:
        stop(f"the folder {str(folder)!r} cannot be written: {reason_of(error)}")
    say(console, f"{len(all_vectors())} vectors in {len(written)} files of {folder}")


@vectors_app.command("check")
def check_command(
    results: Annotated[Path, typer.Argument(help="The answers of a program: see docs/vectors.md.")],
    only: Annotated[
        list[str] | None, option("Only this kind, or KIND/FLAG; repeatable.", "--only", _check_groups)
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Grade a program's answers to the vectors. Exit 0 if all are right, 1 if one is wrong, 3 if one is missing."""
    from specverify.vectors.all_vectors import all_vectors
    from specverify.vectors.grade_report import grades_data
    from specverify.vectors.grading import grade

    result = _results(results)
    wanted = [vector for vector in all_vectors().values() if _is_wanted(vector, only)]
    grades = grade(result.program, wanted, result.answers)
    _print(grades)
    if json_file is not None:
        write_report(json_file, json.dumps(grades_data(grades) | {"made": made()}, indent=2), "the file of --json")
    raise typer.Exit(_status(grades))


def _is_wanted(vector: Vector, only: list[str] | None) -> bool:
    return not only or vector.kind in only or vector.group in only


def _results(file: Path) -> Results:
    from specverify.vectors.all_vectors import all_vectors
    from specverify.vectors.results import results_of

    try:
        return results_of(file.read_text("utf-8"), repr(str(file)), all_vectors())
    except (OSError, UnicodeDecodeError) as error:
        stop(f"the results {str(file)!r} cannot be read: {reason_of(error)}")
    except ValueError as error:
        stop(str(error))


def _status(grades: Grades) -> int:
    from specverify.vectors.vector import Outcome

    if grades.failures or grades.mixed:
        return REFUTED
    counts = grades.counted()
    return HOLDS if counts[Outcome.PASSED] == counts.total() > 0 else UNKNOWN


def _print(grades: Grades) -> None:
    from rich.table import Table
    from rich.text import Text

    from specverify.vectors.grade_report import (
        COLUMNS,
        convention_lines,
        summary,
        table_rows,
        told_failures,
        unanswered_groups,
    )

    console.print(Text(grades.program, style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", *COLUMNS):
        table.add_column(str(heading), justify="right" if heading else "left")
    for row in table_rows(grades):
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    for number, text in enumerate(told_failures(grades), start=1):
        say(console, f"\n{number}. {text}")
    if more := len(grades.failures) - sum(1 for _ in told_failures(grades)):
        console.print(f"\nand {more} more", highlight=False)
    lines = [*convention_lines(grades)]
    if silent := unanswered_groups(grades):
        lines.append(f"without any answer: {', '.join(silent)} (--only GROUP selects some groups)")
    say(console, "\n" + "\n".join((*lines, summary(grades))))


@vectors_app.command("mutants")
def mutants_command(markdown: MarkdownOption = None, jobs: JobsOption = 0) -> None:
    """Run every planted bug on the test vectors, and report which of them refute it (table in docs/vectors.md)."""
    from specverify.mutants import mutants
    from specverify.report.progress import progress_shown
    from specverify.trust.vector_kills import vector_rows
    from specverify.trust.vector_page import vector_page

    with progress_shown("mutants", len(mutants()), errors) as progress:
        rows = list(vector_rows(processes(jobs), lambda name: progress.done(1, name)))
    for row in rows:
        console.print(f"{row.category} {row.name}: {row.killers[0] if row.killers else 'survives'}", highlight=False)
    killed = sum(bool(row.killers) for row in rows)
    console.print(f"{killed} of {len(rows)} planted bugs are refuted by a vector")
    if markdown is not None:
        write_report(markdown, vector_page(rows), "the file of --markdown")
