"""The command line. Exit status: 0 all hold, 1 refuted, 2 unusable call or subject, 3 something UNKNOWN."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reference import ALGORITHMS
from specverify import __version__
from specverify.arguments import check_count, check_seconds
from specverify.commands import alarms_command, mutants_command
from specverify.listing import described, everything
from specverify.options import (
    HOLDS,
    REFUTED,
    UNKNOWN,
    UNUSABLE,
    AlarmOption,
    JobsOption,
    MarkdownOption,
    SeedOption,
    check_folder,
    console,
    errors,
    option,
    processes,
    stop,
    write,
)
from specverify.parallel import WorkerDied
from specverify.places import sentence_of
from specverify.report.systems import algorithms_table, systems_markdown
from specverify.report.terminal import statistics_table
from specverify.stats import plan_statistics, run_statistics
from specverify.subject_commands import replay_command, reproduce_command, verify_command
from specverify.subjects.subject import UnusableSubject

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=__doc__)


def main() -> None:
    """Run the command line. Whatever goes wrong, the exit status is never that of a verdict."""
    try:
        app()
    except SystemExit as end:
        told = isinstance(end.__context__, typer.Exit)  # else nobody reads on, or the input ended
        sys.exit(UNUSABLE if end.code == REFUTED and not told else end.code)
    except WorkerDied as death:
        errors.print(f"specverify: {death}", markup=False, soft_wrap=True)
        sys.exit(UNUSABLE)
    except Exception as error:  # noqa: BLE001 - a defect of ours is told as what it is
        errors.print(f"specverify: a defect of its own: {sentence_of(error)}", markup=False, soft_wrap=True)
        sys.exit(UNUSABLE)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Decide whether an implementation of speculative decoding is correct."""
    if show:
        console.print(__version__)
        raise typer.Exit(HOLDS)


@app.command("list")
def list_everything(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: MarkdownOption = None,
) -> None:
    """List algorithms with the systems that decode so, engines, checks and mutants."""
    if markdown is not None:
        write(markdown, systems_markdown(), "the file of --markdown")
        return
    data = everything()
    if as_json:
        typer.echo(json.dumps(data, indent=2))
        return
    console.print("\n[bold]algorithms[/bold]")
    console.print(algorithms_table(ALGORITHMS))
    for title, rows in data.items():
        if title == "algorithms":
            continue
        console.print(f"\n[bold]{title}[/bold]")
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            console.print(f"  {escape(row['name']):<{width}}  {escape(described(row))}", soft_wrap=True)


@app.command()
def stats(
    alarm: AlarmOption = 1e-6,
    seed: SeedOption = 0,
    jobs: JobsOption = 0,
    engines: Annotated[bool, typer.Option(help="Also sample the engines (needs the extra hf).")] = True,
) -> None:
    """Sample every algorithm and engine beyond enumerable sizes; print one table."""
    try:
        plan = plan_statistics(alarm, seed, engines)
    except UnusableSubject as error:
        stop(f"{error}; or leave engines out with --no-engines")
    tests = plan.budget.parts
    console.print(
        f"alarm budget {alarm:g} over {tests} planned tests: {plan.budget.each:.2g} each; "
        f"miss {plan.miss:g} at the detectable TV; seed {seed}"
    )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("sampling", total=len(plan.settings))
        rows = run_statistics(
            plan,
            processes(jobs),
            lambda item: progress.update(task, advance=1, description=f"{item.subject} {item.setting.name}"),
        )
    console.print(statistics_table(rows, seed))
    unexpected = [row for row in rows if not row.as_expected]
    for row in unexpected:
        console.print(f"{row.subject} {row.setting}: {row.verdict} against the {row.against} law. {row.example}")
    console.print(f"{len(rows) - len(unexpected)} of {len(rows)} rows as they must be")
    if not unexpected:
        raise typer.Exit(HOLDS)
    raise typer.Exit(UNKNOWN if all(row.verdict == "unknown" for row in unexpected) else REFUTED)


@app.command()
def prove(
    algorithm: Annotated[str, typer.Argument(help="An algorithm's name, mutant:NAME, or coupling.")],
    vocabulary: Annotated[int, option("Tokens in the vocabulary.", "--vocab", check_count, "the vocabulary", 2)] = 2,
    gamma: Annotated[int, option("Drafted tokens of a round, at most.", "--gamma", check_count, "gamma", 0)] = 1,
    what: Annotated[str, typer.Option(help="The statement: law, joint, acceptance, stopping, greedy ...")] = "law",
    timeout: Annotated[
        float, option("Seconds after which it stays open.", "--timeout", check_seconds, "the time limit", 0.0)
    ] = 300.0,
    cache: Annotated[
        Path | None, option("A folder of proofs to look in first, and to add to.", "--cache", check_folder, "--cache")
    ] = None,
) -> None:
    """Prove a statement for all p and q, or show p and q where it is false (needs the extra proof)."""
    try:
        from specverify import proof  # noqa: PLC0415 - needs the extra proof
        from specverify.proof.text import proof_text  # noqa: PLC0415

        with errors.status(f"{algorithm}: {what}"):
            found = proof.prove(algorithm, vocabulary, gamma, what, timeout, cache=cache)
    except (ImportError, ValueError) as error:
        stop(str(error))
    console.print(proof_text(found), markup=False, soft_wrap=True, highlight=False)
    status = {proof.Status.PROVED: HOLDS, proof.Status.REFUTED: REFUTED, proof.Status.UNKNOWN: UNKNOWN}
    raise typer.Exit(status[found.status])


app.command("verify")(verify_command)
app.command("replay")(replay_command)
app.command("reproduce")(reproduce_command)
app.command("mutants")(mutants_command)
app.command("alarms")(alarms_command)
