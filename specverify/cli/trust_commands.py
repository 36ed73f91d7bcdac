"""Commands that test the suite itself: whether planted bugs are refuted and right subjects are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from specverify.cli.looks import check_count, check_probability
from specverify.cli.options import (
    ChecksOption,
    JobsOption,
    JsonOption,
    MarkdownOption,
    SeedOption,
    check_classes,
    console,
    errors,
    made,
    option,
    processes,
    write_report,
)

AS_EXPECTED, OTHERWISE = 0, 1


def mutants_command(
    category: Annotated[list[str] | None, option("Only this class; repeatable.", "--class", check_classes)] = None,
    check: ChecksOption = None,
    every_check: Annotated[
        bool, typer.Option("--every-check", help="Every check on every bug: the kill matrix. It takes far longer.")
    ] = False,
    seed: SeedOption = 0,
    peers: Annotated[bool, typer.Option(help="Beside it, the statistics of other projects.")] = False,
    json_file: JsonOption = None,
    markdown: MarkdownOption = None,
    jobs: JobsOption = 0,
) -> None:
    """Run on every planted bug the check that must refute it. Exit 1 if it does not, or if right code is refuted.

    Right code is each bug's subject without the bug, under the same check, and code that looks wrong, under every
    check. --markdown writes the page of the kill matrix, so it runs every check on the bugs too.
    """
    from specverify.checks import CHECKS, Conditions, checks_named
    from specverify.mutants import left_out, mutants
    from specverify.report.progress import progress_shown
    from specverify.report.wrapping import width_of
    from specverify.trust.kill_page import kill_data, kill_page, kill_table
    from specverify.trust.kills import kill_matrix, number_of_works

    whole = every_check or markdown is not None
    checks = checks_named(check) if check else CHECKS if whole else None
    chosen = [
        mutant.name
        for mutant in mutants()
        if (not category or mutant.category in category) and (not check or mutant.killed_by in check)
    ]
    with progress_shown("mutants", number_of_works(chosen), errors) as progress:
        matrix = kill_matrix(
            chosen,
            checks,
            Conditions(seed=seed),
            peers,
            processes(jobs),
            lambda name: progress.done(1, name),
        )
    console.print(kill_table(matrix, width_of(console)))
    rows = len(matrix.mutants) + len(matrix.controls)
    good = sum(row.as_expected for row in matrix.mutants) + sum(row.as_expected for row in matrix.controls)
    console.print(
        f"{len(matrix.mutants)} planted bugs, {len(matrix.controls)} controls: {good} of {rows} as they must be"
    )
    if json_file is not None:
        write_report(json_file, json.dumps(kill_data(matrix) | {"made": made()}, indent=2), "the file of --json")
    if markdown is not None:
        write_report(markdown, kill_page(matrix, left_out()), "the file of --markdown")
    raise typer.Exit(AS_EXPECTED if good == rows else OTHERWISE)


def alarms_command(
    runs: Annotated[
        int, option("Correct subjects that the statistical layer judges.", "--runs", check_count, "the number of runs")
    ] = 10_000,
    configurations: Annotated[
        int,
        option(
            "Correct configurations that the exact layer examines.",
            "--configurations",
            check_count,
            "the number of configurations",
        ),
    ] = 5_000,
    budget: Annotated[
        float, option("False-alarm probability of one run.", "--budget", check_probability, "the budget")
    ] = 1e-2,
    seed: SeedOption = 0,
    markdown: MarkdownOption = None,
    jobs: JobsOption = 0,
) -> None:
    """Count how often correct subjects are refuted. Exit 1 if the rate is above the declared one."""
    from specverify.report.progress import progress_shown
    from specverify.trust.alarms_page import alarms_page
    from specverify.trust.false_alarms import SHARES, exact_alarms, statistical_alarms

    with progress_shown("alarms, the statistical layer", min(runs, SHARES), errors) as progress:
        statistical = statistical_alarms(runs, budget, seed, processes(jobs), lambda index: progress.done())
    with progress_shown("alarms, the exact layer", min(configurations, SHARES), errors) as progress:
        exact = exact_alarms(configurations, seed, processes(jobs), lambda index: progress.done())
    result: Sequence[str] = [
        f"{item.what}: {item.accused} of {item.runs}, declared {item.declared:g}" for item in (*statistical, exact)
    ]
    typer.echo("\n".join((*result, *exact.examples)))
    if markdown is not None:
        write_report(markdown, alarms_page(statistical, exact, budget, seed), "the file of --markdown")
    fine = exact.accused == 0 and all(item.as_declared for item in statistical)
    raise typer.Exit(AS_EXPECTED if fine else OTHERWISE)
