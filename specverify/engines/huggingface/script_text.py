"""Parts of scripts: data as code, in lines of readable width."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

WIDTH = 120
"""The width of a line; only a single value that cannot be split is longer."""

UNTESTED = """
sys.excepthook = lambda kind, error, _: sys.exit(print(f"cannot be tested: {kind.__name__}: {error}") or 125)
""".strip()
"""Makes the script end with status 125 for any other exception."""


class Written(NamedTuple):
    """The imports and definitions that a script needs before its calls, collected while the calls are written as code.

    ``modules`` are the names of the modules to import.
    """

    imports: set[str]
    """Names to import from transformers."""
    modules: set[str]
    before: list[str]
    """Code of functions and objects to place before the calls."""
    names: dict[int, str]
    """``id`` of an object -> its name in the script."""
    vectors: dict[str, float]
    """Name of a one-dimensional weight -> the value of all its entries."""


def call_code(name: str, arguments: Mapping[str, str], width: int = WIDTH) -> str:
    """Return a call of ``name`` as code, on several lines if it is longer than ``width``.

    ``arguments`` maps the name of an argument to its value as code. Arguments whose name is blank are positional and
    must come first.
    """
    written = [value if not key.strip() else f"{key}={value}" for key, value in arguments.items()]
    line = f"{name}({', '.join(written)})"
    if len(line) <= width and "\n" not in line:
        return line
    return f"{name}(\n" + indented(",\n".join(packed(written, width - 4))) + ",\n)"


def packed(items: Iterable[str], width: int) -> Iterator[str]:
    """Yield lines of at most ``width`` with as many items as fit, separated by commas.

    A multi-line item has its own line.
    """
    line = ""
    for item in items:
        if line and ("\n" in line + item or len(line) + len(item) + 3 > width):
            yield line
            line = ""
        line += f", {item}" if line else item
    if line:
        yield line


def indented(text: str) -> str:
    """Return ``text`` with its lines indented by four columns."""
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))


def function_code(name: str, lines: Iterable[str]) -> str:
    """Return the code of the function ``name`` without arguments, whose body is ``lines``."""
    return f"def {name}():\n" + indented("\n".join(lines))


def code(value: Any) -> str:
    """Return ``value``, plain data (numbers, strings, lists, tuples, dictionaries), as code."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        items = ", ".join(map(code, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{code(key)}: {code(item)}" for key, item in value.items()) + "}"
    return repr(value)


def list_code(items: list[str]) -> str:
    """Return a list of ``items``, which are code, as code; on several lines if it is long."""
    line = f"[{', '.join(items)}]"
    return line if len(line) < WIDTH // 2 else "[\n" + indented(",\n".join(packed(items, WIDTH - 4))) + ",\n]"


def texts_code(texts: Sequence[Sequence[int]]) -> str:
    """Return code whose value is the list of ``texts``, each as a tuple of tokens.

    If the list is long and every token has one digit, the code writes each text as a word of digits, such as ``0121``.
    """
    result = list_code([code(tuple(text)) for text in texts])
    if "\n" not in result or any(token not in range(10) for text in texts for token in text):
        return result
    words = [f"{''.join(map(str, text))} " for text in texts]
    wide = (WIDTH - 6) // max(map(len, words))
    lines = "\n".join(f'    "{"".join(words[at : at + wide])}"' for at in range(0, len(words), wide))
    return f"[tuple(map(int, text)) for text in (\n{lines}\n).split()]"


def once(listed: list[str], item: str) -> None:
    """Append ``item`` to ``listed`` unless ``listed`` already contains an equal item."""
    if item not in listed:
        listed.append(item)


def joined(pieces: Iterable[str]) -> str:
    """Return the pieces of code in order, with empty lines around every definition."""
    text, block = "", False
    for piece in (piece.strip("\n") for piece in pieces):
        defines = piece.startswith(("def ", "class ", "@"))
        text += ("\n\n" if defines or block else "\n") + piece if text else piece
        block = piece.rpartition("\n")[2].startswith(" ") and defines
    return text + "\n"
