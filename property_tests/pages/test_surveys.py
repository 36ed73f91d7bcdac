"""The table of a survey: what is refuted comes first, with what became of it when it was repeated."""

from __future__ import annotations

import runpy
from pathlib import Path

SURVEY = runpy.run_path(str(Path(__file__).parents[2] / "engine_surveys" / "survey.py"))


def verdict(name, status):
    figures = {"samples": 100, "tv_detectable": 0.05, "tv_observed": 0.2, "activity": [f"{name}: 3 drafts"]}
    told = {"subject": f"mlx:all/{name}", "status": status, "statement": "it takes too long | really\nmore"}
    return told | {"figures": figures, "seconds": 1.5, "counterexample": {"because": ["draft 1"]}}


def lines(found, repeats):
    return SURVEY["table"](found, repeats).splitlines()


def test_a_row_says_how_often_it_was_refuted_again_and_how_often_that_was_not_decided():
    found = [verdict("right", "holds"), verdict("slow", "unknown"), verdict("wrong", "refuted")]
    repeats = [[verdict("wrong", status)] for status in ("refuted", "unknown", "refuted")]
    said = lines(found, repeats)
    assert said[0] == "1 refuted, 0 unusable, 1 unknown, 1 holds; 4 seconds."
    assert [line.split(" | ")[0] for line in said[4:]] == ["| wrong", "| slow", "| right"]
    assert "refuted in 2 of 3 repeats, not decided in 1; draft 1" in said[4]
    assert "it takes too long / really" in said[5]


def test_repeats_that_are_all_decided_are_counted_alone():
    wrong = verdict("wrong", "refuted")
    assert "refuted in 1 of 2 repeats; draft 1" in lines([wrong], [[wrong], [verdict("wrong", "holds")]])[4]
