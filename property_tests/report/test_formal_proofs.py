"""The theorem of each row: it exists, is stated in English, and covers the row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reference import ALGORITHMS
from specverify.report.formal_proofs import covered_rows, theorems, uncovered_rows

FOLDER = Path(__file__).parents[2] / "proofs"


@pytest.mark.parametrize("name", theorems())
def test_the_theorem_exists_with_a_statement_in_english_above(name):
    text = (FOLDER / f"{theorems()[name].file}.v").read_text("utf-8")
    assert re.search(rf"\*\)\n(Theorem|Corollary|Lemma) {name}\b", text)
    assert f"\n{name}\n     : " in "\n" + (FOLDER / "statements.txt").read_text("utf-8")


def test_every_row_is_covered_or_says_why_not():
    rows = {row.name for row in ALGORITHMS}
    assert set(covered_rows()) | set(uncovered_rows()) == rows
    assert not set(covered_rows()) & set(uncovered_rows())
    assert len(covered_rows()) >= 40


def test_a_biased_row_is_covered_by_a_law_and_a_lossless_one_by_a_theorem_of_losslessness():
    biased = {row.name: row.declared_law is not None for row in ALGORITHMS}
    laws = {"greedy_lossless", "speculative_sampling_lossless"}  # greedy text; the declared mixture as target
    for row, theorem in covered_rows().items():
        assert theorem.name.endswith("_law") <= biased[row]
        assert (not biased[row]) or theorem.name.endswith("_law") or theorem.name in laws
