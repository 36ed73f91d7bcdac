"""Planted bugs asked the vectors: the page says what comes out, and a right program is refuted by none."""

from __future__ import annotations

from pathlib import Path

import pytest

from specverify.mutants import mutants
from specverify.trust.vector_answers import questions, sides
from specverify.trust.vector_draws import NotAsked
from specverify.vectors.all_vectors import all_vectors, kind_of
from specverify.vectors.grading import grade
from specverify.vectors.results import results_of
from specverify.vectors.vector import Outcome

pytestmark = pytest.mark.xdist_group("vectors")

PAGE = (Path(__file__).parents[2] / "docs" / "vectors.md").read_text("utf-8")
BY_NAME = {mutant.name: mutant for mutant in mutants()}
SURE = ("inverted-ratio", "residual-from-target", "inclusive-coin", "bonus-from-row-before", "eos-ignored-in-block")


@pytest.mark.thorough
def test_the_answers_on_the_page_are_right():
    block = PAGE[PAGE.index("```json") + 7 :].partition("```")[0]
    found = results_of(block, "the example", all_vectors())
    grades = grade(found.program, [all_vectors()[name] for name in found.answers], found.answers)
    assert [item.judged.outcome for item in grades.graded] == [Outcome.PASSED] * 2


def test_the_page_has_every_planted_bug_once():
    told = [
        line.split("|")[1].strip() for line in PAGE[PAGE.index("## Which planted bugs") :].splitlines() if "|" in line
    ]
    assert sorted(name for name in told if name in BY_NAME) == sorted(BY_NAME)


@pytest.mark.parametrize("name", SURE)
def test_bugs_of_the_first_lines_are_refuted(name):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {name} |"))
    first = line.split("`")[1]
    bug, control = sides(BY_NAME[name])
    vector = all_vectors()[first]
    said = [_worth(vector, side) for side in (bug, control)]
    assert Outcome.FAILED in said[0]
    assert Outcome.PASSED in said[1]


def _worth(vector, side):
    found = []
    for other, answer in questions(side):
        if other is vector:
            try:
                found.append(kind_of(vector).judge(vector, answer(side)).outcome)
            except NotAsked:
                continue
    return found
