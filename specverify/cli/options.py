"""Options shared by commands, validated before any work begins, and the function that stops a command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from specverify.base.files import check_writable, reason_of
from specverify.cli.looks import check_choice, check_count, check_edge, check_probability, check_seconds, check_seed
from specverify.report.wrapping import say

HOLDS, REFUTED, UNUSABLE, UNKNOWN, EDGE = 0, 1, 2, 3, 4
MOST_JOBS = 1024

typed: ContextVar[Sequence[str] | None] = ContextVar("typed", default=None)
"""The arguments of the command line, without the program's name; None if there is no command line."""
console = Console(width=None if sys.stdout.isatty() else 200)
errors = Console(stderr=True)


def stop(sentence: str) -> NoReturn:
    """Print ``sentence`` as an error message and end the command with the exit status of unusable input, 2."""
    say(errors, f"specverify: {sentence}")
    raise typer.Exit(UNUSABLE)


def checked(check: Callable[..., None], *given: Any) -> Callable[[Any], Any]:
    """Return the callback of a command-line option that validates its value.

    The callback stops the command if ``check(value, *given)`` raises ``ValueError``.
    """

    def callback(value: Any) -> Any:
        try:
            if value is not None:
                check(value, *given)
        except ValueError as error:
            stop(str(error))
        return value

    return callback


def check_names(names: Sequence[str], what: str, known: Sequence[str]) -> None:
    """Raise ``ValueError`` unless all ``names`` are in ``known``.

    ``what`` is the noun of the message, such as "check".
    """
    from specverify.base.arguments import nearest

    for name in names:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}, expected one of {', '.join(known)}{nearest(name, known)}")


def check_checks(names: Sequence[str]) -> None:
    """Raise ``ValueError`` unless all ``names`` are names of checks."""
    from specverify.checks import CHECKS

    check_names(names, "check", [check.name for check in CHECKS])


def check_check(name: str) -> None:
    """Raise ``ValueError`` unless ``name`` is the name of a check."""
    check_checks([name])


def check_classes(letters: Sequence[str]) -> None:
    """Raise ``ValueError`` unless all ``letters`` are names of classes of planted bugs, such as "A"."""
    from specverify.mutants import CATEGORIES

    check_names(letters, "class", list(CATEGORIES))


def check_backend(name: str) -> None:
    """Raise ``ValueError`` unless ``name`` is the name of a backend for parallel work, such as ``loky``."""
    from specverify.base.parallel import BACKENDS

    check_choice(name, "--backend", BACKENDS)


@contextmanager
def shared(backend: str, scheduler: str | None, jobs: int) -> Iterator[int]:
    """In the ``with`` block, run parallel work on ``backend``; yield how many tasks run at the same time.

    For ``loky``, processes of this machine, ``jobs`` is their number, and ``scheduler`` must be None. For a cluster,
    ``scheduler`` is its address. Stops the command if the two do not fit, or if the backend is not available.
    """
    from specverify.base.parallel import shared_among

    if (backend == "loky") != (scheduler is None):
        stop("--backend dask or ray and --scheduler belong together, expected both or neither")
    with ExitStack() as stack:
        try:
            elsewhere = stack.enter_context(shared_among(backend, scheduler))
        except ValueError as error:
            stop(str(error))
        yield elsewhere or processes(jobs)


RESERVED = {
    **dict.fromkeys(("seed", "n", "best_of", "stream"), "each request has its own"),
    **dict.fromkeys(("prompt", "messages", "inputs", "text", "input_ids"), "use --prompt"),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "n_predict", "max_new_tokens"), "use --max-tokens"),
    **dict.fromkeys(("temperature",), "use --temperature"),
    **dict.fromkeys(("model",), "use --model"),
    **dict.fromkeys(("logprobs", "top_logprobs", "n_probs", "post_sampling_probs"), "it is set where it is needed"),
}
"""Field of a request that ``--set`` must not set -> the reason, or what the user should write instead."""


def sampling_options(given: Sequence[str], name: str) -> dict[str, Any]:
    """Return the ``KEY=VALUE`` texts ``given`` for the option ``name`` as a dictionary.

    A value is read as JSON if it is valid JSON, otherwise as a string. Stops the command for a text without KEY or
    ``=``, and for a key that is given twice or has an option of its own.
    """
    options: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            stop(f"{name} is {text!r}, expected KEY=VALUE, such as top_k=2")
        if key in RESERVED:
            stop(f"{name} cannot set {key!r}: {RESERVED[key]}")
        if key in options:
            stop(f"{name} sets {key!r} twice, expected each key once")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


STANDARD_OUTPUT = Path("-")
"""The file of ``--json -``: the report goes to standard output, and all other output to standard error."""


def check_json(file: Path) -> None:
    """Raise ``ValueError`` unless ``file`` can be written or is standard output, ``-``.

    For standard output, all other output of the command goes to standard error from now on.
    """
    console.stderr = file == STANDARD_OUTPUT
    if file != STANDARD_OUTPUT:
        check_writable(file, "the file of --json")


def write_report(file: Path, text: str, name: str) -> None:
    """Write ``text`` to ``file``, or print it if ``file`` is ``-``. If writing fails, stop the command.

    ``name`` describes the file in the error message.
    """
    if file == STANDARD_OUTPUT:
        typer.echo(text)
        return
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        stop(f"{name} {str(file)!r} could not be written: {reason_of(error)}")


def made() -> dict[str, Any]:
    """Return the command line and the versions of the loaded packages, to be stored in the report of this run."""
    from specverify.report.data import made_by

    return made_by(typed.get())


def processes(jobs: int) -> int:
    """Return the number of processes for the value of ``--jobs``, in which 0 means one per core."""
    return jobs or os.cpu_count() or 1


def option(said: str, name: str, check: Callable[..., None], *given: Any) -> Any:
    """Return the command-line option ``name`` with the help text ``said``.

    A value on the command line must pass ``check(value, *given)``, which raises ``ValueError`` for a wrong one; the
    command then stops.
    """
    return typer.Option(name, help=said, callback=checked(check, *given))


def file_option(said: str, name: str) -> Any:
    """Return the command-line option ``name``, a file that can be written, with the help text ``said``."""
    return option(said, name, check_writable, f"the file of {name}")


AlarmOption = Annotated[
    float, option("False-alarm budget of the whole run.", "--alarm", check_probability, "the alarm budget")
]
EdgeOption = Annotated[
    float,
    option(
        "Smallest probability per draft at which a fault at an extreme random number refutes.", "--edge", check_edge
    ),
]
SeedOption = Annotated[int, option("Seed of everything that is sampled.", "--seed", check_seed)]
JobsOption = Annotated[
    int, option("Processes; 0 means one per core.", "--jobs", check_count, "the number of processes", 0, MOST_JOBS)
]
BackendOption = Annotated[
    str, option("Where the work runs: loky (processes of this machine), dask or ray.", "--backend", check_backend)
]
SchedulerOption = Annotated[
    str | None, typer.Option("--scheduler", help="Of dask: tcp://HOST:PORT; of ray: HOST:PORT, or local.")
]
RunsOption = Annotated[
    int, option("Enumeration runs per law before it is cut off.", "--runs", check_count, "the number of runs")
]
TimeoutOption = Annotated[float, option("Seconds for a subject, all its checks together.", "--timeout", check_seconds)]
JsonOption = Annotated[
    Path | None, option("Also write the report to this file; - is standard output.", "--json", check_json)
]
CsvOption = Annotated[Path | None, file_option("Also write the rows to this file.", "--csv")]
PlotOption = Annotated[
    Path | None,
    file_option("Also draw the rows to this file (needs the extra plot).", "--plot"),
]
MarkdownOption = Annotated[
    Path | None,
    file_option("Also write the page or table to this file.", "--markdown"),
]
OutputOption = Annotated[Path | None, file_option("Write the script to this file.", "--output")]
ChecksOption = Annotated[
    list[str] | None,
    option("Only this check; repeatable.", "--check", check_checks),
]
IdentifierArgument = Annotated[str, typer.Argument(help="What a report printed after 'specverify replay'.")]
FailureArgument = Annotated[
    str, typer.Argument(help="What a report printed after 'specverify replay', or a subject that raises or is refuted.")
]
RefutedByOption = Annotated[
    str | None,
    option("With a subject: the check that refutes it; omitted if it raises.", "--check", check_check),
]
