"""Commands that describe the product: ``list`` and ``explain``."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from specverify.cli.looks import check_choice
from specverify.cli.options import MarkdownOption, stop, write_report
from specverify.report.wrapping import wrapped

KINDS = ("algorithms", "subjects", "checks", "mutants")
NARROWEST = 56


def list_command(
    kind: Annotated[str | None, typer.Argument(help="algorithms, subjects, checks or mutants")] = None,
    word: Annotated[str | None, typer.Argument(help="Only those with this in their line.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: MarkdownOption = None,
) -> None:
    """List algorithms with the systems that use them, subjects of engines, checks or planted bugs, one line each."""
    from specverify.run.listing import everything, line_of, numbers, rows_of

    if markdown is not None:
        if kind is not None or as_json:
            stop("--markdown writes the page of all algorithms, expected no kind, no word and no --json")
        from specverify.report.systems import systems_markdown

        write_report(markdown, systems_markdown(), "the file of --markdown")
        return
    try:
        if kind is not None:
            check_choice(kind, "the kind", KINDS)
    except ValueError as error:
        stop(str(error))
    if kind is None and not as_json:
        for title, number in numbers().items():
            typer.echo(f"{title}: specverify list {title} names {number}")
        return
    data = _with_word({kind: rows_of(kind)} if kind else everything(), word)
    if as_json:
        typer.echo(json.dumps(data, indent=2))
        return
    for rows in data.values():
        echo_lines([(row["name"], line_of(row)) for row in rows])


def explain_command(
    words: Annotated[
        list[str], typer.Argument(metavar="WORD...", help="A check, a refusal, a bug class, an algorithm, a word")
    ],
) -> None:
    """Explain a check, a code of refusals, a class of bugs, an algorithm, a planted bug or a word of the field."""
    from specverify.run.explain import explained

    try:
        said = explained(" ".join(words))
    except ValueError as error:
        stop(str(error))
    for paragraph in said.split("\n"):
        indent = " " * (len(paragraph) - len(paragraph.lstrip()))
        typer.echo(wrapped(paragraph, _width(), indent + "  " * bool(indent)))


def echo_lines(rows: Sequence[tuple[str, str]]) -> None:
    """Print ``rows``, pairs (name, description).

    On a terminal, long descriptions are wrapped beside the name, or below the name if the terminal is narrow. Otherwise
    each pair is one line.
    """
    width, names = _width(), max((len(name) for name, _ in rows), default=0)
    for name, said in rows:
        behind = f"{name:<{names}}  {said}".rstrip()
        if width == 0 or width - names - 2 >= NARROWEST:
            typer.echo(wrapped(behind, width, " " * (names + 2)))
        else:
            typer.echo(f"{name}\n{wrapped(f'  {said}', width, '  ')}")


def _width() -> int:
    """Return the width of the terminal in columns; 0 in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _with_word(data: Mapping[str, Any], word: str | None) -> Mapping[str, Any]:
    """Return ``data``, a mapping from titles to rows, with only the rows whose text contains ``word``.

    All rows are kept if ``word`` is None. Stops the command if no row contains ``word``.
    """
    if word is None:
        return data
    kept = {title: [row for row in rows if word.lower() in json.dumps(row).lower()] for title, rows in data.items()}
    if not any(kept.values()):
        from specverify.base.arguments import nearest

        names = [row["name"].partition(":")[2] or row["name"] for rows in data.values() for row in rows]
        stop(f"nothing that is listed has {word!r} in it{nearest(word, names)}")
    return kept
