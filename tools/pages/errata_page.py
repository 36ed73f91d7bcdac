"""Write ``docs/errata.md`` from the tests: run ``python -m tools.pages.errata_page docs/errata.md``."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from property_tests.errata import (
    test_edge_cloud_guide,
    test_edge_cloud_protocol,
    test_edge_cloud_residual,
    test_edge_cloud_sampling,
    test_implementation,
    test_implementation_logits,
    test_implementation_loop,
    test_ngram,
    test_ngram_tables,
    test_survey,
    test_survey_fixed_points,
    test_survey_lossy,
    test_survey_trees,
    test_theory,
    test_theory_bound,
    test_theory_speed,
)
from test_support.errata.record import DOCUMENTS, ERRATA, Erratum, Verdict

MODULES = (
    *(test_theory, test_theory_bound, test_theory_speed),
    *(test_implementation, test_implementation_logits, test_implementation_loop),
    *(test_ngram, test_ngram_tables),
    *(test_edge_cloud_guide, test_edge_cloud_residual, test_edge_cloud_sampling, test_edge_cloud_protocol),
    *(test_survey, test_survey_lossy, test_survey_trees, test_survey_fixed_points),
)
"""Imported for the rows that they add to ``ERRATA``; the survey's rows stand in this order."""

HEAD = """# Errata of five notes on speculative decoding

Many people learn speculative decoding from five widely copied notes in Chinese:

{documents}

They are good introductions, but they contain false theorems, formulas that contradict each other, and code that is
biased or fails. Use this page if you have implemented one of them. It judges {count} of their claims, true ones
included, by document and section. *As printed* is the verdict on the claim as it is printed, *as meant* the verdict
on the reading that its author most plausibly meant:

* *true*, *false*, and *true under a condition*, which the last column states;
* *inconsistent*: the note contradicts itself;
* *defect*: code or a procedure that fails, or gives wrong results.

Each row is a test. It computes the numbers of its row, most by exact enumeration in rational arithmetic, and fails if
the result contradicts the verdict. The page is generated from the tests.

Words of the tables:

* p is the target and q the draft; the survey swaps the two letters. gamma and k are the number of drafts a round.
* alpha is the probability that one drafted token is accepted, unless stated otherwise. A *rate per position* is the
  same number: the probability that a draft is accepted if all drafts before it were. *Accepted over drafted* is
  smaller, because drafts after a rejection count as drafted.
* rho is the time of one call of the draft model, divided by that of the target.
* TV is the total variation. A *distance*, and *off by*, is the total variation from the law of sampling from p.
* A *context-dependent* table is a model whose pmf depends on the whole text so far.
* Shares of random samples have a fixed seed and an exact 95 % interval.

The first table counts the verdicts.

{counts}
"""


COLUMNS = ("section", "the note", "in English", "as printed", "as meant", "what is true, and the test")


def rows_of(document: str) -> list[Erratum]:
    """Return the errata of one document, ordered by section number, or as in ``MODULES`` if they have no sections."""
    order = [module.__name__.rpartition(".")[2] for module in MODULES]
    rows = [row for row in ERRATA if row.document == document]
    rows.sort(key=lambda row: order.index(Path(row.test.partition("::")[0]).stem))
    return sorted(rows, key=lambda row: _number(row.section))


def page() -> str:
    """Return the text of ``docs/errata.md``."""
    documents = "\n".join(f"* {key}: {name}" for key, name in DOCUMENTS.items())
    parts = [HEAD.format(documents=documents, count=len(ERRATA), counts=_counts())]
    for key, name in DOCUMENTS.items():
        parts.append(f"\n## {key}: {name}\n\n| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n")
        parts += [_line(row) for row in rows_of(key)]
    return "".join(parts)


def _line(row: Erratum) -> str:
    quoted, stated, correct = (
        text.replace("|", r"\|")
        for text in ("<br>".join(f"`` {sentence} ``" for sentence in row.quoted), row.stated, row.corrected())
    )
    return f"| {row.section} | {quoted} | {stated} | {row.verdict} | {row.meant} | {correct}<br>`{row.test}` |\n"


def _counts() -> str:
    printed = Counter((row.document, row.verdict) for row in ERRATA)
    meant = Counter((row.document, row.meant) for row in ERRATA)
    lines = ["| document | " + " | ".join(Verdict) + " | all |", "|---" * (len(Verdict) + 2) + "|"]
    for key in DOCUMENTS:
        for reading, found in (("as printed", printed), ("as meant", meant)):
            numbers = [found[key, verdict] for verdict in Verdict]
            lines.append(f"| {key}, {reading} | " + " | ".join(map(str, (*numbers, sum(numbers)))) + " |")
    return "\n".join(lines)


def _number(section: str) -> tuple[int, ...]:
    leading = re.match(r"\d+(\.\d+)*", section)
    return tuple(map(int, leading[0].split("."))) if leading else ()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
