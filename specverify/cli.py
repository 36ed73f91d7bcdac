"""The command line. Exit status: 0 all hold, 1 refuted, 2 unusable call or subject, 3 something UNKNOWN."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from specverify import __version__
from specverify.commands import alarms_command, mutants_command
from specverify.stats_command import stats_command

if TYPE_CHECKING:
    from specverify.checks import Check, Conditions
    from specverify.subjects.subject import Case, Subject
    from specverify.verdict import Verdict
    from specverify.verify import Plan

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=__doc__)
console = Console(width=None if sys.stdout.isatty() else 200)
errors = Console(stderr=True)

AlarmOption = Annotated[float, typer.Option(help="False-alarm budget of the whole run.")]
SeedOption = Annotated[int, typer.Option(help="Seed of everything that is sampled.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the report to this file.")]
IdentifierArgument = Annotated[str, typer.Argument(help="What a report printed after 'specverify replay'.")]
JobsOption = Annotated[int, typer.Option(help="Processes for sampling; 0 means one per core.")]


def main() -> None:
    """Run the command line."""
    app()


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Decide whether an implementation of speculative decoding is correct."""
    if show:
        console.print(__version__)
        raise typer.Exit(HOLDS)


@app.command("list")
def list_everything(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write the page of all systems to this file instead.")] = None,
) -> None:
    """List algorithms with the systems that decode so, engines, checks and mutants."""
    from reference import ALGORITHMS
    from specverify.listing import described, everything
    from specverify.report.systems import algorithms_table, systems_markdown

    if markdown is not None:
        markdown.write_text(systems_markdown(), "utf-8")
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
        lines = (f"  {row['name']:<{width}}  {described(row)}" for row in rows)
        console.print("\n".join(lines), soft_wrap=True, markup=False, highlight=False)


@app.command()
def verify(
    subjects: Annotated[list[str] | None, typer.Argument(help="reference:NAME, hf:NAME or module:callable")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every reference algorithm.")] = False,
    check: Annotated[list[str] | None, typer.Option(help="Run this check only; repeatable.")] = None,
    alarm: AlarmOption = 1e-6,
    seed: SeedOption = 0,
    json_file: JsonOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write a Markdown table to this file.")] = None,
    runs: Annotated[int, typer.Option(help="Enumeration runs per law before it is cut off.")] = 200_000,
    timeout: Annotated[float, typer.Option(help="Seconds for one exact check on one subject.")] = 600.0,
    jobs: JobsOption = 0,
) -> None:
    """Examine subjects and say what holds, how strongly, and what does not."""
    from specverify.catalogue import default_subjects
    from specverify.checks import Conditions
    from specverify.checks.samples_fit_law import tests_of
    from specverify.report.data import as_data
    from specverify.report.markdown import verdict_table
    from specverify.report.terminal import print_failures, print_subject, print_summary
    from specverify.statistics import divide_alarm
    from specverify.verdict import Evidence
    from specverify.verify import Plan

    wanted = [*(subjects or ()), *(default_subjects() if every else ())]
    if not wanted:
        _stop("no subject was named: expected reference:NAME, hf:NAME, module:callable, or --all")
    names = list(dict.fromkeys(name for item in wanted for name in _expanded(item)))
    checks = _checks(check)
    found = [_subject(name) for name in names]
    sampled = [item for item in checks if item.evidence is Evidence.STATISTICAL]
    tests = sum(tests_of(setting) for subject in found for setting in subject.settings) if sampled else 0
    processes = jobs or os.cpu_count() or 1
    each = divide_alarm(_alarm(alarm), tests).each if tests else _alarm(alarm)
    plan = Plan(checks, Conditions(runs, seed, each, jobs=processes), timeout)
    verdicts: list[Verdict] = []
    for subject, mine in zip(found, _verdicts(names, found, plan), strict=True):
        print_subject(console, subject, mine, every=bool(check))
        verdicts += mine
    print_failures(console, verdicts)
    print_summary(console, verdicts, alarm, tests, seed)
    if json_file is not None:
        json_file.write_text(json.dumps(as_data(verdicts, alarm, seed), indent=2), "utf-8")
    if markdown is not None:
        markdown.write_text(verdict_table(verdicts), "utf-8")
    raise typer.Exit(exit_status(verdicts))


@app.command()
def replay(identifier: IdentifierArgument) -> None:
    """Repeat the one case that a failure was found in."""
    from specverify.report.prose import failure
    from specverify.verdict import Status
    from specverify.verify import run_case

    case, check, conditions = _replayed(identifier)
    verdict = run_case(case, check, conditions)
    if verdict.status is Status.REFUTED:
        console.print(failure(verdict, [verdict]), markup=False, soft_wrap=True, highlight=False)
    else:
        console.print(f"{verdict.subject}: {verdict.check} {verdict.status} now: {verdict.statement}", markup=False)
    raise typer.Exit(exit_status([verdict]))


@app.command()
def reproduce(
    identifier: IdentifierArgument,
    output: Annotated[Path | None, typer.Option(help="Write the script to this file.")] = None,
) -> None:
    """Write a failure of an engine as a script that needs the engine alone."""
    from specverify.report.progress import progress_shown
    from specverify.reproduce import printed_by, reproduction

    try:
        with progress_shown("reproduce", console=errors) as progress:
            found = reproduction(*_replayed(identifier), progress=progress.now)
            progress.now(f"running the script: {found.fault.calls} calls with speculation, {found.fault.calls} without")
            printed = printed_by(found.script)
    except ValueError as error:
        _stop(str(error))
    if output is None:
        typer.echo(found.script, nl=False)
    else:
        output.write_text(found.script, "utf-8")
    smaller = f" ({', '.join(found.smaller)})" if found.smaller else ""
    errors.print(f"{printed}\n{output or 'the script'}{smaller} was run and shows it", soft_wrap=True, markup=False)


@app.command()
def prove(
    algorithm: Annotated[str, typer.Argument(help="An algorithm's name, mutant:NAME, or coupling.")],
    vocabulary: Annotated[int, typer.Option("--vocab", help="Tokens in the vocabulary, at least 2.")] = 2,
    gamma: Annotated[int, typer.Option(help="Drafted tokens of a round, at most.")] = 1,
    what: Annotated[str, typer.Option(help="The statement: law, joint, acceptance, stopping, greedy ...")] = "law",
    timeout: Annotated[float, typer.Option(help="Seconds after which it stays open.")] = 300.0,
    cache: Annotated[Path | None, typer.Option(help="A folder of proofs to look in first, and to add to.")] = None,
) -> None:
    """Prove a statement for all p and q, or show p and q where it is false (needs the extra proof)."""
    try:
        from specverify import proof  # needs the extra proof
        from specverify.proof.text import proof_text
        from specverify.report.progress import progress_shown

        with progress_shown(f"prove {algorithm} {what}, {timeout:g} s at most", console=errors) as progress:
            found = proof.prove(algorithm, vocabulary, gamma, what, timeout, cache=cache, progress=progress.now)
    except (ImportError, ValueError) as error:
        _stop(str(error))
    console.print(proof_text(found), markup=False, soft_wrap=True, highlight=False)
    status = {proof.Status.PROVED: HOLDS, proof.Status.REFUTED: REFUTED, proof.Status.UNKNOWN: UNKNOWN}
    raise typer.Exit(status[found.status])


app.command("mutants")(mutants_command)
app.command("alarms")(alarms_command)
app.command("stats")(stats_command)


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """Return the exit status of a run: unusable before refuted before unknown."""
    from specverify.verdict import Status

    found = {verdict.status for verdict in verdicts}
    if Status.UNUSABLE in found:
        return UNUSABLE
    if Status.REFUTED in found:
        return REFUTED
    examined = found - {Status.NOT_APPLICABLE}
    return UNKNOWN if Status.UNKNOWN in found or not examined else HOLDS


def _verdicts(names: Sequence[str], found: Sequence[Subject], plan: Plan) -> Iterator[list[Verdict]]:
    """Yield each subject's verdicts: several side by side, one alone with every process to itself."""
    from specverify.report.progress import progress_shown
    from specverify.several import verdicts_of_several
    from specverify.verify import verify_subject

    if len(found) > 1 and plan.conditions.jobs > 1:
        with progress_shown("verify", len(found), errors) as progress:
            yield from verdicts_of_several(names, plan, lambda place: progress.done(1, names[place]))
        return
    with progress_shown("verify", len(found) * len(plan.checks), errors) as progress:
        for subject in found:
            mine = []
            for verdict in verify_subject(subject, plan, lambda check: progress.now(f"{subject.name} {check}")):  # noqa: B023
                progress.done(1, f"{subject.name} {verdict.check}")
                mine.append(verdict)
            yield mine


def _expanded(name: str) -> tuple[str, ...]:
    from specverify.catalogue import expanded
    from specverify.subjects.subject import UnusableSubject

    try:
        return expanded(name)
    except UnusableSubject as error:
        _stop(str(error))


def _subject(name: str) -> Subject:
    from specverify.catalogue import find_subject
    from specverify.subjects.subject import UnusableSubject

    try:
        return find_subject(name)
    except UnusableSubject as error:
        _stop(str(error))


def _checks(names: Sequence[str] | None) -> tuple[Check, ...]:
    from specverify.checks import CHECKS

    known = {check.name: check for check in CHECKS}
    for name in names or ():
        if name not in known:
            _stop(f"there is no check {name!r}, expected one of {', '.join(known)}")
    return tuple(check for check in CHECKS if check.name in names) if names else CHECKS


def _replayed(identifier: str) -> tuple[Case, Check, Conditions]:
    from specverify.checks import Conditions
    from specverify.identifier import decode
    from specverify.verify import settled

    try:
        wanted = decode(identifier)
        case = _case(settled(_subject(wanted.subject)), wanted.variant, wanted.scenario, wanted.setting)
        return case, _checks([wanted.check])[0], Conditions(seed=wanted.seed)
    except ValueError as error:
        _stop(str(error))


def _case(subject: Subject, variant: str, scenario: str, setting: str) -> Case:
    from specverify.scenarios import scenario_named
    from specverify.subjects.subject import Case

    if setting:
        sampled = next((item for item in subject.settings if item.name == setting), None)
        program = next((item for item in subject.programs if item.name == setting), None)
        pair = next((item for item in subject.pairs if item.name == setting), None)
        if sampled is None and program is None and pair is None:
            raise ValueError(f"{subject.name} has no setting {setting!r} any more")
        return Case(subject, setting=sampled, program=program, pair=pair)
    option = next((item for item in subject.variants if item.label == variant), None)
    if option is None:
        raise ValueError(f"{subject.name} has no variant {variant!r} any more")
    return Case(subject, option, scenario_named(scenario))


def _alarm(alarm: float) -> float:
    if not 0 < alarm < 1:
        _stop(f"the alarm budget is {alarm}, expected a probability between 0 and 1")
    return alarm


def _stop(sentence: str) -> NoReturn:
    errors.print(f"specverify: {sentence}", markup=False, soft_wrap=True, highlight=False)
    raise typer.Exit(UNUSABLE)
