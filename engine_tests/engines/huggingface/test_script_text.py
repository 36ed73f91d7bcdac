"""Data as lines of code."""

from __future__ import annotations

import pytest

from specverify.engines.huggingface.script_text import call_code, list_code, texts_code


def test_a_long_call_takes_several_lines_and_none_is_too_long():
    made = call_code("f", {f"name{number}": "1" * 20 for number in range(12)})
    assert max(map(len, made.splitlines())) <= 120
    assert len(made.splitlines()) == 5
    assert call_code("f", {"": "**same", "a": "1"}) == "f(**same, a=1)"
    assert max(map(len, list_code(["(0, 1, 2)"] * 40).splitlines())) <= 120
    assert list_code(["(0,)"]) == "[(0,)]"


@pytest.mark.parametrize(
    ("texts", "lines"),
    [([(0, 1)], 1), ([(token, 9 - token, 3) for token in range(10)] * 5, 4), ([(10, 2, 3)] * 50, 8), ([()], 1)],
)
def test_texts_are_said_in_few_lines_and_are_what_they_were(texts, lines):
    made = texts_code(texts)
    assert eval(made) == texts
    assert len(made.splitlines()) == lines
    assert max(map(len, made.splitlines())) <= 120
