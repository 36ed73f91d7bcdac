"""The page of released code: rows and sections that were found now stand in the place of those found before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reference import Task

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/released.md").read_text("utf-8")


def test_what_is_written_replaces_its_number_and_nothing_else():
    from tools.pages.released_page import BEGIN, END, HEAD, written

    first = written(f"intro\n{BEGIN}{END}", {2: "| 2 | b |", 1: "| 1 | a |"}, {2: "### 2. b\n\ntold\n", 1: ""})
    assert first == f"intro\n{BEGIN}{HEAD}| 1 | a |\n| 2 | b |\n{END}\n### 2. b\n\ntold\n"
    again = written(first, {1: "| 1 | c |"}, {1: "### 1. c\n\nnew\n"})
    assert again == f"intro\n{BEGIN}{HEAD}| 1 | c |\n| 2 | b |\n{END}\n### 1. c\n\nnew\n\n### 2. b\n\ntold\n"
    assert written(again, {}, {2: ""}) == f"intro\n{BEGIN}{HEAD}| 1 | c |\n| 2 | b |\n{END}\n### 1. c\n\nnew\n"


def test_a_law_cut_short_is_that_of_the_first_tokens():
    from test_support.shipped.beside import beginnings

    assert beginnings({(0, 1): 0.25, (0, 2): 0.25, (1, 1): 0.5}, 1) == {(0,): 0.5, (1,): 0.5}


def test_a_first_token_of_the_target_comes_before_what_the_row_says():
    from test_support.shipped.beside import after_first

    def target(tokens):
        import numpy as np

        return np.array([0.25, 0.75]) if len(tokens) == 1 else np.array([1.0, 0.0])

    found = after_first(lambda task, prompt: {(9, prompt[-1]): 1.0}, Task(target, horizon=3), (0,))
    assert found == {(0, 9, 0): 0.25, (1, 9, 1): 0.75}


def test_a_row_that_is_not_lossless_stands_with_its_declared_law():
    import numpy as np

    from test_support.shipped.beside import Beside, expected_law

    task = Task(lambda _: np.array([0.5, 0.5]), lambda _: np.array([1.0, 0.0]), horizon=2)
    law = expected_law(Beside("resample-from-target", {"gamma": 1}), None, task, (0,))
    assert law[0, 0] == pytest.approx(0.375)


def test_the_page_has_each_number_once_and_names_no_number_that_is_missing():
    rows = [int(found) for found in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    sections = [int(found) for found in re.findall(r"^### (\d+)\. ", PAGE, re.MULTILINE)]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) > 20
    assert sections == sorted(set(sections))
    assert set(sections) <= set(rows)
