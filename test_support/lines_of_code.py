"""Count the lines of code of a module: those that are not blank, and belong to no docstring."""

from __future__ import annotations

import ast


def lines_of_code(source: str) -> int:
    """Return the number of lines in ``source`` that are not blank and lie in no string that is a statement."""
    prose = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return sum(bool(line.strip()) and number not in prose for number, line in enumerate(source.splitlines(), start=1))
