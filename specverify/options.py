"""The options that commands share, refused before any work begins, and how a command stops."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from specverify.arguments import check_count, check_probability, check_seconds, check_seed

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3
MOST_JOBS = 1024

console = Console(width=None if sys.stdout.isatty() else 200)
errors = Console(stderr=True)


def stop(sentence: str) -> NoReturn:
    """End the command: what was asked for cannot be done."""
    errors.print(f"specverify: {sentence}", markup=False, soft_wrap=True, highlight=False)
    raise typer.Exit(UNUSABLE)


def checked(check: Callable[..., None], *given: Any) -> Callable[[Any], Any]:
    """Return the callback of an option that stops the command where ``check(value, *given)`` raises ``ValueError``."""

    def callback(value: Any) -> Any:
        try:
            if value is not None:
                check(value, *given)
        except ValueError as error:
            stop(str(error))
        return value

    return callback


def check_writable(file: Path, name: str) -> None:
    """Raise ``ValueError`` unless the file can be written. Nothing is written, and no file is left behind."""
    said = f"{name} {str(file)!r} cannot be written"
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise ValueError(f"{said}: {_reason(error)}") from None
    if mode is not None and S_ISDIR(mode):
        raise ValueError(f"{said}: it is a directory, expected a file")
    if mode is not None and not S_ISREG(mode):
        return  # a pipe or a device would notice
    try:
        with file.open("ab"):
            pass
        if mode is None:
            file.unlink()
    except (OSError, ValueError) as error:
        raise ValueError(f"{said}: {_reason(error)}") from None


def write(file: Path, text: str, name: str) -> None:
    """Write a report; stops the command, in a sentence, if that fails after all."""
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        stop(f"{name} {str(file)!r} could not be written: {_reason(error)}")


def _reason(error: OSError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def processes(jobs: int) -> int:
    """Return how many processes ``--jobs`` asks for."""
    return jobs or os.cpu_count() or 1


def _option(help_: str, check: Callable[..., None], *given: Any, name: str | None = None) -> Any:
    names = (name,) if name else ()
    return typer.Option(*names, help=help_, callback=checked(check, *given))


AlarmOption = Annotated[float, _option("False-alarm budget of the whole run.", check_probability, "the alarm budget")]
SeedOption = Annotated[int, _option("Seed of everything that is sampled.", check_seed)]
JobsOption = Annotated[
    int, _option("Processes; 0 means one per core.", check_count, "the number of processes", 0, MOST_JOBS)
]
RunsOption = Annotated[
    int, _option("Enumeration runs per law before it is cut off.", check_count, "the number of runs")
]
TimeoutOption = Annotated[float, _option("Seconds for a subject, all its checks together.", check_seconds)]
JsonOption = Annotated[
    Path | None, _option("Also write the report to this file.", check_writable, "the file of --json", name="--json")
]
MarkdownOption = Annotated[
    Path | None, _option("Also write a Markdown page to this file.", check_writable, "the file of --markdown")
]
IdentifierArgument = Annotated[str, typer.Argument(help="What a report printed after 'specverify replay'.")]
