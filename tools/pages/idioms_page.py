"""Write ``docs/idioms.md`` from the lines that ``test_support/idioms/verdicts.py`` wrote.

    python -m tools.pages.idioms_page FILE

``FILE`` has one line for each idiom. The laws are computed by this script.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path

from specverify.intercept.cpython.sandbox import look_around
from test_support.idioms.tables import IDIOMS
from test_support.idioms.verdicts import there
from test_support.idioms.world import distance

PAGE = Path(__file__).parents[2] / "docs" / "idioms.md"
BEFORE = json.loads((Path(__file__).parent / "said_before.json").read_text("utf-8"))
"""What the first version of this project said of each idiom that was there then, by table and name."""
LONGEST = 160
"""Longer code is read in the table itself."""
EXACT, ROUNDED = 1e-12, 1e-6
"""A law as near as float64 is exact; what float32 rounds of one is less than the second."""
_COLUMNS = (
    *("idiom", "code", "twin", "law off by", "twin's law off by", "first version", "verdict", "twin's verdict"),
)
COLUMNS = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"
HEAD = """# Idioms: how rejection samplers use random numbers

This page shows in which ways published code uses random numbers, and that specverify judges each of them. Look here
if you want to know whether your way to write a step is supported. Each line is one way to write a step of a rejection
sampler (an *idiom*), and its twin: the same code with one mistake. The code is examined unchanged: specverify
intercepts its calls of torch, NumPy and `random` and supplies their results. The columns:

* *code*: the code of the idiom. Of long code only the piece that differs in the twin is shown; the file below the
  heading has all of it. In the sections on coins, p and q are the two probabilities of the draft. *Twin*: "`a` for
  `b`" means that the twin's text has `a` in place of `b`; a piece may begin or end inside an expression.
* *law off by*: the total variation between the computed law of the idiom and the law of rejection sampling in closed
  form, for rows of three tokens with frequent rejections. "exact": below 1e-12. "float32": below 1e-6, which is the
  rounding of the idiom itself. If a comparison depends on several uniforms, its probability is known between two
  bounds about a millionth apart, and their middle is used. *Twin's law off by*: the same for the twin.
* *verdict*: the joint verdict of all exact checks on the idiom, in a sixth of its scenarios (the next idiom gets
  another sixth). *Twin's verdict*: the same of the twin.
* *first version*: for comparison, the verdict of the first version of this project in the same scenarios, with a
  limit of a minute; the first check that did not hold ended the examination. *Not asked*: the idiom was added later.
  All idioms are right, so *refuted* is a false alarm. Numbers of these verdicts: {before}.

Is the computed law the real one? To test this, each idiom and each twin also runs without interception, and a planned
sample of its own draws is compared with the same closed form. The idioms fit, the twins do not.
`engine_tests/idioms/test_idioms.py` compares every line with the computed values: a sixth of the laws and some of the
samples in the default run, and all of them, with the verdicts, in the [thorough run](thorough.md).
`tools/pages/idioms_page.py` writes the page from the results of `test_support/idioms/verdicts.py`.

A function of `torch.compile`, `torch.jit.script` or `torch.vmap` runs as ordinary Python code; the compiler is not
examined. Uniforms in 16 bits have the few values of their format.
"""


def _code(piece: str) -> str:
    return "`" + " ".join(piece.split()).replace("|", "\\|") + "`"


@cache
def _bodies(table: str):
    """Return the statements of every function in a module of idioms, by name, without the docstrings."""
    tree = ast.parse((Path(__file__).parents[2] / "test_support" / "idioms" / f"{table}.py").read_text("utf-8"))
    return {node.name: node.body[1:] for node in tree.body if isinstance(node, ast.FunctionDef)}


def _written(idiom):
    """Return the code of an idiom; if it is long, only the piece that differs in its twin."""
    body = _bodies(idiom.table)[idiom.name.replace(" ", "_")]
    code = "; ".join(ast.unparse(statement) for statement in body)
    return idiom.mistake[0] if len(code) > LONGEST or "\n" in code else code


def begin_of(idiom):
    """Return the first cells of an idiom's table row: its description, its code, and the code of its twin."""
    right, wrong = map(_code, idiom.mistake)
    return f"| {idiom.what.replace('|', '/')} | {_code(_written(idiom))} | {wrong} for {right} |"


def of_law(found):
    """Return the distance of a law in a word: exact, float32, or the number."""
    return "exact" if found < EXACT else "float32" if found < ROUNDED else f"{found:.2f}"


def laws_of(idiom):
    """Return the cells with the laws of an idiom and its twin; empty if no law is computed."""
    if idiom.unknown:
        return "| |"
    return f"{of_law(distance(idiom, idiom.right))} | {of_law(distance(idiom, idiom.wrong))} |"


def said_before(idiom):
    """Return the verdict of the first version of the project on an idiom; "not asked" if the idiom is newer."""
    return BEFORE.get(idiom.table, {}).get(idiom.name, "not asked")


def end_of(idiom, status, twin):
    """Return the last cells of an idiom's row: the verdicts of the first version, of today, and on its twin."""
    said = f"{status}: {idiom.unknown}" if idiom.unknown else status
    return f"{said_before(idiom)} | {said} | {twin} |"


def _told_before() -> str:
    """Return how often the first version gave each verdict, in words."""
    counts = Counter(map(said_before, IDIOMS))
    return ", ".join(f"{word} {number}" for word, number in counts.most_common())


def on_page():
    """Return the lines of the present page, keyed by their first cells."""
    begins = [begin_of(idiom) for idiom in IDIOMS]
    lines = PAGE.read_text("utf-8").splitlines()
    known = ((next((begin for begin in begins if line.startswith(begin)), ""), line) for line in lines)
    return {begin: line for begin, line in known if begin}


def page(found):
    """Return the text of ``docs/idioms.md``, given the verdicts on each idiom."""
    text = [HEAD.replace("{before}", _told_before())]
    for table, idioms in groupby(IDIOMS, lambda idiom: idiom.table):
        text.append(f"\n## {table.replace('_', ' ').capitalize()}\n\n`test_support/idioms/{table}.py`\n\n")
        text.append(COLUMNS)
        for idiom in idioms:
            line = found[idiom.table, idiom.name]
            end = end_of(idiom, line["right"]["status"], line["wrong"]["status"])
            text.append(f"{begin_of(idiom)} {laws_of(idiom)} {end}\n")
    return "".join(text)


if __name__ == "__main__":
    look_around()
    PAGE.write_text(page(there(Path(sys.argv[1]))), "utf-8")
