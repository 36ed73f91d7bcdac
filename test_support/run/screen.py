"""Convert printed output to what a terminal shows: carriage returns and erased lines applied, colours removed."""

from __future__ import annotations

import re

_TOKENS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def screen(printed: str) -> list[str]:
    """Return the lines that are left, for the few control sequences that progress bars use."""
    lines, row, column = [""], 0, 0
    for argument, command, move, text in _TOKENS.findall(printed):
        if text:
            before = lines[row].ljust(column)
            lines[row] = before[:column] + text + before[column + len(text) :]
            column += len(text)
        elif move == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif move == "\r":
            column = 0
        elif command == "A":
            row = max(row - int(argument or 1), 0)
        elif command == "K":
            lines[row] = "" if argument == "2" else lines[row][:column]
    return [line.rstrip() for line in lines]
