"""``specverify init``: write a first test file for the functions of a package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from specverify.cli.options import stop

FILE = "test_speculation.py"


def init_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The project; its tests may be in DIR/tests.")] = Path(),
) -> None:
    """Write a first test file for functions that look like a verifier, a decoder or an engine.

    Never overwrites a file.
    """
    from specverify.run.first_test import found_in, test_text

    if not folder.is_dir():
        stop(f"{str(folder)!r} is no folder, expected that of a project")
    tests = folder / "tests"
    file = (tests if tests.is_dir() else folder) / FILE
    if file.exists():
        stop(f"{str(file)!r} is there already, and nothing is overwritten: rename it, or go on in it")
    result = found_in(folder)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(test_text(result))
    except OSError as error:
        stop(f"{str(file)!r} cannot be written: {error.strerror}")
    kinds = ", ".join(
        f"{number} {kind}{'s' * (number > 1)}" for kind, number in Counter(item.kind for item in result).items()
    )
    typer.echo(f"{file}: {kinds or 'nothing was found that looks like a verifier, so it is a template'}")
    for item in result:
        typer.echo(f"  {item.kind}: {item.module}.{item.name}({', '.join(item.parameters)})")
    typer.echo(f"next: read it, then python -m pytest {file}")
