"""``specverify report``: write the results of a run as a page and in the formats of other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specverify.base.files import check_writable, reason_of
from specverify.cli.options import checked, file_option, stop, write_report

if TYPE_CHECKING:
    from specverify.report.runs.said import RunSaid


def report_command(
    run: Annotated[Path, typer.Argument(help="What a command wrote with --json, or the results of a campaign.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The page: one HTML file that needs no other.",
            callback=checked(check_writable, "the file of --output"),
        ),
    ] = None,
    junit: Annotated[Path | None, file_option("JUnit XML.", "--junit")] = None,
    json_file: Annotated[Path | None, file_option("JSON in the published schema.", "--json")] = None,
    markdown: Annotated[Path | None, file_option("Markdown for a pull request.", "--markdown")] = None,
    sarif: Annotated[Path | None, file_option("SARIF 2.1.0 for code hosts.", "--sarif")] = None,
) -> None:
    """Write the results of an earlier run as an HTML page, or for test runners, pull requests and code hosts.

    Examines nothing.
    """
    from specverify.report.page.document import page
    from specverify.report.runs.as_json import run_as_json
    from specverify.report.runs.as_junit import run_as_junit
    from specverify.report.runs.as_markdown import run_as_markdown
    from specverify.report.runs.as_sarif import run_as_sarif

    writers: list[tuple[str, Path | None, Callable[[RunSaid], str]]] = [
        ("--output", output, page),
        ("--junit", junit, run_as_junit),
        ("--json", json_file, run_as_json),
        ("--markdown", markdown, run_as_markdown),
        ("--sarif", sarif, lambda said: run_as_sarif(said, str(run))),
    ]
    wanted = [(name, file, write) for name, file, write in writers if file is not None]
    if not wanted:
        stop(f"nothing is to be written, expected at least one of {', '.join(name for name, _, _ in writers)}")
    files = [file.absolute() for _, file, _ in wanted] + [run.absolute()]
    if len(set(files)) < len(files):
        stop("two of the files are the same, expected another one for each")
    said = _said(run)
    for name, file, write in wanted:
        write_report(file, write(said), f"the file of {name}")


def _said(run: Path) -> RunSaid:
    from specverify.report.runs.loading import said_of
    from specverify.run.campaign_report import is_campaign, said_of_campaign

    try:
        return said_of_campaign(run) if is_campaign(run) else said_of(run.read_text("utf-8"), repr(str(run)))
    except (OSError, UnicodeDecodeError) as error:
        stop(f"the run {str(run)!r} cannot be read: {reason_of(error)}")
    except ValueError as error:
        stop(str(error))
