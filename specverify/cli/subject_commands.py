"""The commands that examine subjects: ``verify``, ``replay`` and ``reproduce``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specverify.base.default_limits import EDGE as LEAST_EDGE
from specverify.base.default_limits import SECONDS
from specverify.cli.options import (
    EDGE,
    HOLDS,
    REFUTED,
    UNKNOWN,
    UNUSABLE,
    AlarmOption,
    BackendOption,
    ChecksOption,
    EdgeOption,
    FailureArgument,
    IdentifierArgument,
    JobsOption,
    JsonOption,
    MarkdownOption,
    OutputOption,
    RefutedByOption,
    RunsOption,
    SchedulerOption,
    SeedOption,
    TimeoutOption,
    console,
    errors,
    file_option,
    made,
    processes,
    shared,
    stop,
    write_report,
)
from specverify.report.wrapping import say

if TYPE_CHECKING:
    from specverify.base.verdict import Verdict
    from specverify.checks import Check
    from specverify.run.several import Listed, Workers
    from specverify.run.verify import Checklist
    from specverify.run.worker import Message


def verify_command(
    subjects: Annotated[list[str] | None, typer.Argument(help="reference:NAME, ENGINE:NAME or module:callable")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every reference algorithm.")] = False,
    check: ChecksOption = None,
    alarm: AlarmOption = 1e-6,
    edge: EdgeOption = LEAST_EDGE,
    seed: SeedOption = 0,
    json_file: JsonOption = None,
    markdown: MarkdownOption = None,
    runs: RunsOption = 200_000,
    timeout: TimeoutOption = SECONDS,
    jobs: JobsOption = 0,
    backend: BackendOption = "loky",
    scheduler: SchedulerOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Exact checks alone, on the cases of the quick plan.")] = False,
    certificate: Annotated[
        Path | None,
        file_option("A file for the trees of draws of one subject, which check-certificate adds up.", "--certificate"),
    ] = None,
) -> None:
    """Examine algorithms, engines or your code: report what holds, with which evidence, and what does not."""
    from specverify.base.verdict import Evidence
    from specverify.checks import Conditions
    from specverify.report.data import as_data
    from specverify.report.markdown import verdict_table
    from specverify.report.progress import progress_shown
    from specverify.report.terminal import print_failures, print_subject, print_summary
    from specverify.run.catalogue import within_table
    from specverify.run.several import Workers
    from specverify.run.verify import Checklist
    from specverify.run.worker import Loaded
    from specverify.statistics import divide_alarm

    names, checks = _names(subjects or (), every), _checks(check, quick)
    _refuse_files(json_file, markdown, certificate, names)
    with shared(backend, scheduler, jobs) as number, Workers(processes(jobs), timeout) as workers:
        with progress_shown("loading", console=errors):
            listed = _listed(workers, names)
        sampled = any(item.evidence is Evidence.STATISTICAL for item in checks)
        tests = sum(item.found.tests for item in listed if isinstance(item.found, Loaded)) if sampled else 0
        each = divide_alarm(alarm, tests).each if tests else alarm
        checklist = Checklist(checks, Conditions(runs, seed, each, jobs=number, edge=edge), timeout, quick)
        verdicts: list[Verdict] = []
        waiting, interrupted = list(listed), False
        try:
            for subject, mine in zip(listed, _verdicts(workers, listed, checklist, backend), strict=True):
                print_subject(console, subject.name, _summary(subject), mine, every=bool(check))
                verdicts, waiting = verdicts + mine, waiting[1:]
        except KeyboardInterrupt:
            interrupted = True
            for subject in waiting:
                mine = workers.known.get(subject.name, [])
                if mine:
                    print_subject(console, subject.name, _summary(subject), mine, every=bool(check))
                verdicts += mine
    reported = [*verdicts, *_unreached(waiting, checks, verdicts)] if interrupted else verdicts
    print_failures(console, verdicts)
    print_summary(console, verdicts, alarm, tests, seed)
    for file in workers.printed:
        say(errors, f"what was printed meanwhile is in {file}")
    if certificate is not None and not interrupted:
        _certify(names[0], certificate)
    if json_file is not None:
        write_report(json_file, json.dumps(as_data(reported, alarm, seed, made()), indent=2), "the file of --json")
    if markdown is not None:
        write_report(
            markdown, verdict_table(reported, {name: within_table(name) for name in names}), "the file of --markdown"
        )
    if interrupted:
        stopped = len(reported) - len(verdicts)
        say(errors, f"specverify: interrupted, {stopped} of the checks have no verdict")
        raise typer.Exit(exit_status(verdicts) or UNKNOWN)
    raise typer.Exit(exit_status(verdicts))


def _unreached(waiting: Sequence[Listed], checks: Sequence[Check], verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Yield UNKNOWN for each of ``checks`` on each subject in ``waiting`` that has none of ``verdicts``."""
    from specverify.base.verdict import Status
    from specverify.run.verify import verdict_of

    reached = {(verdict.subject, verdict.check) for verdict in verdicts}
    for subject in waiting:
        for check in checks:
            if (subject.name, check.name) not in reached:
                yield verdict_of(subject.name, check, Status.UNKNOWN, "not reached: the run was interrupted")


def _refuse_files(
    json_file: Path | None, markdown: Path | None, certificate: Path | None, names: Sequence[str]
) -> None:
    """Stop the command if two reports have the same file, or if certificates are requested for several subjects.

    ``json_file`` and ``markdown`` are the files of the reports, and ``certificate`` that of the certificates, or None.
    ``names`` are the names of the subjects.
    """
    if json_file is not None and json_file == markdown:
        stop(f"--json and --markdown both name {str(json_file)!r}, expected two files")
    if certificate is not None and len(names) != 1:
        stop(f"--certificate names a file for one subject, and there are {len(names)}")


def _certify(name: str, file: Path) -> None:
    """Write the certificates of the subject called ``name`` to ``file``. Print their number, or why there are none."""
    from specverify.run.catalogue import find_subject
    from specverify.run.certified import NothingToCertify, write_certificates
    from specverify.run.verify import warmed_up

    try:
        number = write_certificates(file, warmed_up(find_subject(name)))
    except (NothingToCertify, OSError) as reason:
        say(errors, f"specverify: no certificate: {reason}")
    else:
        say(errors, f"{number} certificates are in {file}")


def replay_command(identifier: IdentifierArgument) -> None:
    """Replay the one case in which a failure was found; the report of the failure has its identifier."""
    from specverify.base.verdict import Status
    from specverify.report.prose import failure

    verdict = _replayed(identifier)
    if verdict.status is Status.REFUTED:
        say(console, failure(verdict))
    else:
        say(console, f"{verdict.subject}: {verdict.check} {verdict.status} now: {verdict.statement}")
    raise typer.Exit(exit_status([verdict]))


def reproduce_command(
    identifier: FailureArgument,
    output: OutputOption = None,
    check: RefutedByOption = None,
) -> None:
    """Write a failure of an engine as a script that needs the engine alone.

    Instead of an identifier, a subject can be given that raises an error. With --check, a subject that this check
    refutes can be given.
    """
    from specverify.base.identifier import unpack_replay
    from specverify.report.progress import progress_shown
    from specverify.run.catalogue import is_external, written_as_scripts
    from specverify.run.replays import first_case, named_by
    from specverify.run.reproduce import printed_by, reproduction, reproduction_of_error
    from specverify.run.worker import ready_subject
    from specverify.subjects.subject import UnusableSubject

    try:
        is_subject = ":" in identifier
        if check is not None and not is_subject:
            stop("--check goes with the name of a subject, and an identifier names its check itself")
        name = identifier if is_subject else unpack_replay(identifier).subject
        if is_external(name):
            stop(f"{name} is not a call of {written_as_scripts()}, and only those are written as scripts")
        with progress_shown("reproduce", console=errors) as progress:
            if is_subject and check is None:
                result = reproduction_of_error(ready_subject(name), progress=progress.now)
            else:
                refuted = first_case(ready_subject(name), check) if check else named_by(identifier, ready_subject)
                result = reproduction(*refuted, progress=progress.now)
            progress.now(
                f"running the script: {result.fault.calls} calls with speculation, {result.fault.calls} without"
            )
            printed = printed_by(result.script)
    except (ValueError, UnusableSubject) as error:
        stop(str(error))
    if output is None:
        typer.echo(result.script, nl=False)
    else:
        write_report(output, result.script, "the file of --output")
    smaller = f" ({', '.join(result.smaller)})" if result.smaller else ""
    say(errors, f"{printed}\n{output or 'the script'}{smaller} was run and shows it")


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """Return the exit status of the worst verdict: unusable 2, refuted 1, refuted only at edges 4, unknown 3, else 0.

    If nothing was examined, the status is 3. An edge is a random number very close to 0 or 1.
    """
    from specverify.base.verdict import Status, is_edge

    result = {verdict.status for verdict in verdicts}
    if Status.UNUSABLE in result:
        return UNUSABLE
    if Status.REFUTED in result:
        edges = all(map(is_edge, (verdict for verdict in verdicts if verdict.status is Status.REFUTED)))
        return EDGE if edges else REFUTED
    examined = result - {Status.NOT_APPLICABLE, Status.REFUSED}
    return UNKNOWN if Status.UNKNOWN in result or not examined else HOLDS


def _names(subjects: Sequence[str], every: bool) -> list[str]:
    """Return the names of the subjects to examine, each once.

    ``subjects`` are the names on the command line. The name of a table of subjects stands for all subjects in the
    table. ``every`` adds all reference algorithms. Stops the command if no subject is named, a name is empty or
    repeated, or a table cannot be read.
    """
    from specverify.run.catalogue import default_subjects, expanded, kinds_of_names
    from specverify.subjects.subject import UnusableSubject

    if not subjects and not every:
        stop(f"no subject was named: expected {', '.join(kinds_of_names())}, or --all")
    for place, name in enumerate(subjects):
        if not name.strip():
            *kinds, last = kinds_of_names()
            stop(f"the name of subject {place + 1} is empty: expected {', '.join(kinds)} or {last}")
        if name in subjects[:place]:
            stop(f"{name} is named twice, expected each subject once")
    try:
        wanted = [name for item in subjects for name in expanded(item)]
    except UnusableSubject as error:
        stop(str(error))
    return list(dict.fromkeys([*wanted, *(default_subjects() if every else ())]))


def _checks(names: Sequence[str] | None, quick: bool) -> tuple[Check, ...]:
    """Return the checks with these names; without names all checks, or with ``quick`` the exact ones."""
    from specverify.checks import CHECKS, EXACT_CHECKS, checks_named

    if names:
        return checks_named(names)
    return EXACT_CHECKS if quick else CHECKS


def _listed(workers: Workers, names: Sequence[str]) -> list[Listed]:
    from specverify.subjects.subject import UnusableSubject

    try:
        return workers.listed(names)
    except UnusableSubject as error:
        stop(str(error))


def _summary(subject: Listed) -> str:
    from specverify.run.worker import Loaded

    return subject.found.summary if isinstance(subject.found, Loaded) else "it could not be loaded"


def _verdicts(
    workers: Workers, listed: Sequence[Listed], checklist: Checklist, backend: str
) -> Iterator[list[Verdict]]:
    """Yield, for each of the subjects ``listed``, the list of its verdicts, as soon as the subject is examined.

    Several subjects run in parallel. A single one gets all processes, and so does each one on a cluster (``backend``).
    Code from outside this project is examined in ``workers``, processes of this machine; on a cluster such a subject is
    refused, and the command stops. ``checklist`` has the checks and their conditions.
    """
    from specverify.report.progress import progress_shown
    from specverify.run.catalogue import find_subject, is_external
    from specverify.run.verify import verify_subject

    with progress_shown("verify", len(listed) * len(checklist.checks), errors) as progress:
        foreign = [subject.name for subject in listed if is_external(subject.name)]
        elsewhere = backend != "loky"
        if elsewhere and foreign:
            stop(f"{foreign[0]} is examined in processes of this machine, expected --backend loky")
        if foreign or (not elsewhere and min(len(listed), checklist.conditions.jobs) > 1):
            alone = checklist.conditions._replace(jobs=1) if len(listed) > 1 else checklist.conditions
            yield from workers.examined(listed, checklist._replace(conditions=alone), progress)
            return
        for name, _ in listed:
            mine = workers.known.setdefault(name, [])
            for verdict in verify_subject(find_subject(name), checklist, partial(progress.within, name)):
                progress.done(1, f"{name} {verdict.check}", name)
                mine.append(verdict)
            yield mine


def _replayed(identifier: str) -> Verdict:
    """Replay the case with this identifier and return its verdict.

    If the subject is code of another project, it runs in a separate process. Stops the command for an invalid
    identifier, or if the case cannot be replayed.
    """
    from specverify.base.identifier import unpack_replay
    from specverify.base.verdict import Verdict
    from specverify.run.catalogue import is_external
    from specverify.run.several import Workers
    from specverify.run.worker import Refusal, Stopped, replay

    answers: list[Message] = []
    try:
        wanted = unpack_replay(identifier)
    except ValueError as error:
        stop(str(error))
    if is_external(wanted.subject):
        with Workers(1, SECONDS) as workers:
            answers.append(workers.replayed(identifier))
    else:
        replay(identifier, SECONDS, answers.append)
    answer = answers[-1]
    if isinstance(answer, Refusal):
        stop(answer.sentence)
    if isinstance(answer, Stopped):
        return Verdict(wanted.subject, wanted.check, answer.status, answer.statement)
    assert isinstance(answer, Verdict)
    return answer
