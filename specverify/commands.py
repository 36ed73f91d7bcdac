"""The commands that say how far the suite itself can be believed: planted bugs killed, correct subjects accused."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

AS_EXPECTED, OTHERWISE, UNUSABLE = 0, 1, 2
errors = Console(stderr=True)


def mutants_command(
    category: Annotated[list[str] | None, typer.Option("--class", help="Only this class (A to Q); repeatable.")] = None,
    check: Annotated[list[str] | None, typer.Option(help="Only these checks, and the bugs they must kill.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is sampled.")] = 0,
    peers: Annotated[bool, typer.Option(help="Beside it, the statistics of other projects.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the matrix to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the page to this file.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0 means one per core.")] = 0,
) -> None:
    """Run every check on every planted bug: the kill matrix. Exit 1 if a bug survives or a control is accused."""
    from specverify.checks import CHECKS, Conditions
    from specverify.kills import kill_matrix
    from specverify.mutants import CATEGORIES, left_out, mutants, suspects
    from specverify.report.kills import kill_data, kill_page, kill_table
    from specverify.report.progress import progress_shown

    unknown = [letter for letter in category or () if letter not in CATEGORIES]
    unknown += [name for name in check or () if name not in {item.name for item in CHECKS}]
    if unknown:
        _stop(
            f"there is no class or check {unknown[0]!r}, expected a letter of {''.join(CATEGORIES)} or a check's name"
        )
    checks = tuple(item for item in CHECKS if not check or item.name in check)
    chosen = [
        mutant.name
        for mutant in mutants()
        if (not category or mutant.category in category) and (not check or mutant.killed_by in check)
    ]
    console = Console(width=None if os.isatty(1) else 200)
    with progress_shown("mutants", len(chosen) + len(suspects())) as progress:
        matrix = kill_matrix(
            chosen,
            checks,
            Conditions(seed=seed),
            peers,
            jobs or os.cpu_count() or 1,
            lambda name: progress.done(1, name),
        )
    console.print(kill_table(matrix))
    rows = len(matrix.mutants) + len(matrix.controls)
    good = sum(row.as_expected for row in matrix.mutants) + sum(row.as_expected for row in matrix.controls)
    console.print(
        f"{len(matrix.mutants)} planted bugs, {len(matrix.controls)} controls: {good} of {rows} as they must be"
    )
    if json_file is not None:
        json_file.write_text(json.dumps(kill_data(matrix), indent=2), "utf-8")
    if markdown is not None:
        markdown.write_text(kill_page(matrix, left_out()), "utf-8")
    raise typer.Exit(AS_EXPECTED if good == rows else OTHERWISE)


def alarms_command(
    runs: Annotated[int, typer.Option(help="Correct subjects that the statistical layer judges.")] = 10_000,
    configurations: Annotated[int, typer.Option(help="Correct configurations that the exact layer examines.")] = 5_000,
    budget: Annotated[float, typer.Option(help="False-alarm probability of one statistical run.")] = 1e-2,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    markdown: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0 means one per core.")] = 0,
) -> None:
    """Count how often correct subjects are accused. Exit 1 if it is more often than declared."""
    from specverify.false_alarms import SHARES, exact_alarms, statistical_alarms
    from specverify.report.false_alarms import alarms_page
    from specverify.report.progress import progress_shown

    if runs < 1 or configurations < 1 or not 0 < budget < 1:
        _stop("expected at least one run and one configuration, and a budget between 0 and 1")
    processes = jobs or os.cpu_count() or 1
    with progress_shown("alarms, the statistical layer", min(runs, SHARES)) as progress:
        statistical = statistical_alarms(runs, budget, seed, processes, lambda index: progress.done())
    with progress_shown("alarms, the exact layer", min(configurations, SHARES)) as progress:
        exact = exact_alarms(configurations, seed, processes, lambda index: progress.done())
    found: Sequence[str] = [
        f"{item.what}: {item.accused} of {item.runs}, declared {item.declared:g}" for item in (*statistical, exact)
    ]
    typer.echo("\n".join((*found, *exact.examples)))
    if markdown is not None:
        markdown.write_text(alarms_page(statistical, exact, budget, seed), "utf-8")
    fine = exact.accused == 0 and all(item.as_declared for item in statistical)
    raise typer.Exit(AS_EXPECTED if fine else OTHERWISE)


def _stop(sentence: str) -> NoReturn:
    errors.print(f"specverify: {sentence}", markup=False, soft_wrap=True, highlight=False)
    raise typer.Exit(UNUSABLE)
