"""Write the tables of ``docs/jax.md`` again; run as a script."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "jax.md"
BEGIN, END = "<!-- {} -->\n", "<!-- end of {} -->\n"
HEAD = "| name | idiom | twin | its law is off by |\n|---|---|---|---|\n"


def line_of(idiom, wrong):
    """Return the table line of an idiom; ``wrong`` is the total variation of its twin's law, None if unknown."""
    right, instead = (piece.replace("|", "\\|") for piece in idiom.mistake)
    off = f"unknown: {idiom.unknown}" if wrong is None else f"{wrong:.2f}"
    return f"| {idiom.part}: {idiom.name} | {idiom.what} | `{instead}` for `{right}` | {off} |"


def on_page():
    """Return the lines about idioms on the present page, by part and name."""
    found = {}
    for line in _between("idioms").removeprefix(HEAD).splitlines():
        part, _, name = line.removeprefix("| ").partition(" | ")[0].partition(": ")
        found[part, name] = line
    return found


def calls_on_page():
    """Return the lines about functions of ``jax.random`` on the present page."""
    return _between("calls")


def calls_said():
    """Return the lines about functions of ``jax.random`` that the page should have."""
    from test_support.jax.calls import EXAMPLES, HARMLESS

    groups = {
        "Answered": [name for name, example in EXAMPLES.items() if not example.refused],
        "Refused": [name for name, example in EXAMPLES.items() if example.refused],
        "Drawing nothing": HARMLESS,
    }
    return "".join(f"* {said}: {', '.join(f'`{name}`' for name in sorted(names))}.\n" for said, names in groups.items())


def _between(table):
    begin, end = BEGIN.format(table), END.format(table)
    return PAGE.read_text("utf-8").split(begin)[1].split(end)[0]


def _write(table, content):
    begin, end = BEGIN.format(table), END.format(table)
    before, rest = PAGE.read_text("utf-8").split(begin)
    PAGE.write_text(before + begin + content + end + rest.partition(end)[2], "utf-8")


def write():
    """Write both tables of ``docs/jax.md``; the law of each twin is computed."""
    from test_support.jax import coins, tokens, verifiers
    from test_support.jax.idiom import idioms_of
    from test_support.jax.world import distance

    lines = [
        line_of(idiom, None if idiom.unknown else distance(idiom.wrong, idiom.gamma))
        for idiom in idioms_of(coins, tokens, verifiers)
    ]
    _write("idioms", HEAD + "\n".join(lines) + "\n")
    _write("calls", calls_said())


if __name__ == "__main__":
    write()
