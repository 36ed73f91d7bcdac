"""``specverify stats``: the statistical examination of all algorithms and engines.

Prints results as they are judged, then the table; an interrupt prints the finished ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from specverify.cli.options import (
    HOLDS,
    REFUTED,
    UNKNOWN,
    AlarmOption,
    BackendOption,
    CsvOption,
    JobsOption,
    JsonOption,
    PlotOption,
    SchedulerOption,
    SeedOption,
    console,
    made,
    shared,
    stop,
    write_report,
)
from specverify.report.wrapping import say, width_of

if TYPE_CHECKING:
    from specverify.checks.samples_fit_law import FitRow
    from specverify.report.progress import Progress
    from specverify.run.stats import JudgedSetting, StatisticsPlan

WIDTH = 260
"""Least width of a terminal, in columns, for the table; a narrower terminal gets one line per row instead."""


def stats_command(
    alarm: AlarmOption = 1e-6,
    seed: SeedOption = 0,
    jobs: JobsOption = 0,
    subject: Annotated[list[str] | None, typer.Option(help="Sample this subject only; repeatable.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Total variation 0.02, engines left out.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Total variation 0.001, every size.")] = False,
    engines: Annotated[bool, typer.Option(help="Also sample the engines (each needs its extra).")] = True,
    json_file: JsonOption = None,
    csv_file: CsvOption = None,
    plot: PlotOption = None,
    backend: BackendOption = "loky",
    scheduler: SchedulerOption = None,
) -> None:
    """Sample every algorithm and engine beyond enumerable sizes; print each result as it is judged, then one table."""
    from specverify.report.statistics_text import row_line, statistics_csv, statistics_data, statistics_table
    from specverify.run import stats
    from specverify.subjects.subject import UnusableSubject

    if quick and thorough:
        stop("--quick and --thorough were both given, expected one of them")
    if plot is not None:
        _check_plot(plot)
    scope = stats.QUICK if quick else stats.THOROUGH if thorough else stats.USUAL
    try:
        plan = stats.plan_statistics(alarm, seed, scope if engines else scope._replace(finer=None), subject or ())
    except UnusableSubject as error:
        stop(str(error) if subject else f"{error}; or leave engines out with --no-engines")
    say(
        console,
        f"alarm budget {alarm:g} over {plan.budget.parts} planned tests: {plan.budget.each:.2g} each; "
        f"miss {plan.miss:g} at the detectable TV; seed {seed}",
    )
    with shared(backend, scheduler, jobs) as workers:
        judged = _judged(plan, workers)
    rows = stats.in_order(judged)
    complete = len(judged) == len(plan.settings)
    if 0 < width_of(console) < WIDTH:
        console.print()
        for row in rows:
            say(console, row_line(row), style="green" if row.as_expected else "bold red")
    else:
        Console(width=max(console.width, WIDTH)).print(statistics_table(rows, seed), crop=False)
    if json_file is not None:
        write_report(
            json_file,
            json.dumps(statistics_data(rows, plan.budget, seed, complete) | {"made": made()}, indent=2),
            "the file of --json",
        )
    if csv_file is not None:
        write_report(csv_file, statistics_csv(rows), "the file of --csv")
    if plot is not None:
        from specverify.report.statistics_plot import write_plot

        write_plot(rows, plot)
    raise typer.Exit(_summed_up(rows, "" if complete else f"{len(judged)} of {len(plan.settings)}"))


def _judged(plan: StatisticsPlan, jobs: int) -> list[JudgedSetting]:
    """Run the plan with ``jobs`` processes and print every result as soon as it is judged; return all results.

    After an interrupt, return the results so far.
    """
    from specverify.report.progress import progress_shown
    from specverify.run.stats import run_statistics

    done: list[JudgedSetting] = []
    total = sum(item.cost for item in plan.settings)
    shown = console if console.is_terminal else Console(quiet=True)
    with progress_shown("sampling", total, shown, expected=total / jobs) as progress:
        try:
            for item in run_statistics(plan, jobs):
                done.append(item)
                progress.done(plan.settings[item.place].cost, f"{len(done)} of {len(plan.settings)}")
                for row in item.rows:
                    _print_row(row, progress)
        except KeyboardInterrupt:
            console.print("interrupted: what follows is what was done until then")
    return done


def _print_row(row: FitRow, progress: Progress) -> None:
    from specverify.report.statistics_text import row_line

    line = f"{progress.elapsed:5.0f} s  {progress.left or 'the last':>18}  {row_line(row)}"
    say(console, line, style="" if row.as_expected else "bold red")
    console.file.flush()


def _check_plot(file: Path) -> None:
    from specverify.report.statistics_plot import check_format

    try:
        check_format(file)
    except (ImportError, ValueError) as error:
        stop(str(error))


def _summed_up(rows: list[FitRow], interrupted: str) -> int:
    """Print how many of the results ``rows`` are as expected, and each unexpected one; return the exit status.

    The status is 1 if a result is unexpected and not unknown. Otherwise it is 3 if a result is unknown or the run was
    interrupted, else 0. ``interrupted`` is a text such as "7 of 40", the number of finished settings, or "" for a
    complete run.
    """
    unexpected = [row for row in rows if not row.as_expected]
    for row in unexpected:
        say(console, f"{row.subject} {row.setting}: {row.verdict} against the {row.against} law. {row.example}")
    console.print(f"{len(rows) - len(unexpected)} of {len(rows)} rows as they must be")
    if interrupted:
        console.print(f"interrupted: {interrupted} settings were examined; the others have no verdict")
    if not unexpected:
        return UNKNOWN if interrupted else HOLDS
    return UNKNOWN if all(row.verdict == "unknown" for row in unexpected) else REFUTED
