"""The command line.

Exit status: 0 all hold, 1 refuted, 2 unusable call or subject, 3 something UNKNOWN, 4 refuted only at edges (random
numbers very close to 0 or 1), 130 interrupted (verify and stats: the status of the verdicts so far), 141 the reader of
the output ended.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from specverify.base.files import check_folder
from specverify.cli.campaign_command import campaign_command
from specverify.cli.init_command import init_command
from specverify.cli.looks import check_count, check_seconds
from specverify.cli.options import (
    HOLDS,
    REFUTED,
    UNKNOWN,
    UNUSABLE,
    console,
    errors,
    file_option,
    option,
    stop,
    typed,
)
from specverify.cli.report_command import report_command
from specverify.cli.sample_command import sample_command
from specverify.cli.stats_command import stats_command
from specverify.cli.subject_commands import replay_command, reproduce_command, verify_command
from specverify.cli.trust_commands import alarms_command, mutants_command
from specverify.cli.vectors_command import vectors_app
from specverify.cli.word_commands import explain_command, list_command
from specverify.report.wrapping import say

INTERRUPTED, PIPE_CLOSED = 130, 141
"""128 plus the number of the signal with which other programs end then: SIGINT, and SIGPIPE of a closed pipe."""

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=__doc__)


def main() -> None:
    """Run the command line. An internal error ends the process with status 2, so it cannot be taken for a verdict."""
    typed.set(sys.argv[1:])
    gc.set_threshold(100_000, 20, 100)  # what is imported stays: to look through it as often as usual takes a tenth
    try:
        app()
    except SystemExit as end:
        sys.exit(_status_of(end))
    except KeyboardInterrupt:
        sys.exit(_interrupted())
    except Exception as error:  # noqa: BLE001 - a death is told as what it is, and so is a defect of ours
        from specverify.base.parallel import WorkerDied
        from specverify.foreign.places import sentence_of

        said = str(error) if isinstance(error, WorkerDied) else f"internal error: {sentence_of(error)}"
        say(errors, f"specverify: {said}")
        sys.exit(UNUSABLE)


def _status_of(end: SystemExit) -> str | int | None:
    """Return the exit status for ``end``, with which typer ended the command line.

    Typer ends with 1, our status of a refutation, if the reader of the output or the input ended.
    """
    reason = end.__context__
    if isinstance(reason, typer.Exit):
        return _interrupted() if isinstance(reason.__cause__, KeyboardInterrupt) else end.code
    if isinstance(reason, BrokenPipeError):
        return PIPE_CLOSED
    return UNUSABLE if end.code == REFUTED else end.code


def _interrupted() -> int:
    say(errors, "specverify: interrupted")
    return INTERRUPTED


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Callback that runs before every command: print the version and exit if ``show`` is true."""
    console.stderr = False  # as --json - left it
    if show:
        from specverify import __version__

        console.print(__version__)
        raise typer.Exit(HOLDS)


@app.command()
def prove(
    algorithm: Annotated[str, typer.Argument(help="An algorithm's name, mutant:NAME, or coupling.")],
    vocabulary: Annotated[int, option("Tokens in the vocabulary.", "--vocab", check_count, "the vocabulary", 2)] = 2,
    gamma: Annotated[int, option("Drafted tokens of a round, at most.", "--gamma", check_count, "gamma", 0)] = 1,
    what: Annotated[str, typer.Option(help="The statement: law, joint, acceptance, stopping, greedy ...")] = "law",
    timeout: Annotated[
        float,
        option("Time limit in seconds; after it the result is unknown.", "--timeout", check_seconds),
    ] = 300.0,
    cache: Annotated[
        Path | None, option("A folder of proofs to look in first, and to add to.", "--cache", check_folder, "--cache")
    ] = None,
    certificate: Annotated[
        Path | None,
        file_option("A file for the evidence, which check-certificate checks without z3.", "--certificate"),
    ] = None,
) -> None:
    """Prove a statement for all p and q, or show p and q where it is false (needs the package extra "proof")."""
    try:
        from specverify import proof  # needs the extra proof
        from specverify.proof.text import proof_text
        from specverify.report.formal_proofs import coverage_text
        from specverify.report.progress import progress_shown

        with progress_shown(f"prove {algorithm} {what}, {timeout:g} s at most", console=errors) as progress:
            result = proof.prove(algorithm, vocabulary, gamma, what, timeout, cache=cache, progress=progress.now)
            if certificate is not None:
                proof.certify(result, certificate, timeout, progress=progress.now)
    except (ImportError, ValueError, OSError) as error:
        stop(str(error))
    say(console, "\n".join(filter(None, (proof_text(result), coverage_text(algorithm)))))
    status = {proof.ProofStatus.PROVED: HOLDS, proof.ProofStatus.REFUTED: REFUTED, proof.ProofStatus.UNKNOWN: UNKNOWN}
    raise typer.Exit(status[result.status])


@app.command("check-certificate")
def check_certificate_command(
    file: Annotated[Path, typer.Argument(help="What prove or verify --certificate FILE wrote.")],
    tables: Annotated[
        int | None,
        option(
            "Of a proof: random tables per place to run the algorithm on, 50 if omitted.",
            "--tables",
            check_count,
            "the number of tables",
            0,
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Of enumerations: run the subject on numbers of the listed paths.")
    ] = False,
) -> None:
    """Check a certificate by exact arithmetic; for that of a proof, compare it with runs of its algorithm, too."""
    from specverify.certificates import CertificateRefused, NothingToReplay, check_certificate

    try:
        checked = check_certificate(file, tables, replayed=replay)
    except CertificateRefused as reason:
        say(console, f"refused: {reason}")
        raise typer.Exit(REFUTED) from reason
    except (NothingToReplay, ValueError) as error:
        stop(str(error))
    figures = ", ".join(f"{number} {name}" for name, number in checked.figures.items())
    say(console, f"accepted: {checked.statement}{f' ({figures})' if figures else ''}")


app.command("init")(init_command)
app.command("list")(list_command)
app.command("explain")(explain_command)
app.command("verify")(verify_command)
app.command("replay")(replay_command)
app.command("reproduce")(reproduce_command)
app.command("sample")(sample_command)
app.command("campaign")(campaign_command)
app.command("report")(report_command)
app.command("mutants")(mutants_command)
app.command("alarms")(alarms_command)
app.command("stats")(stats_command)
app.add_typer(vectors_app, name="vectors")
