"""Rounds of an engine: rows of the round before."""

from __future__ import annotations

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.engine_rounds import engine_rounds
from specverify.checks.explaining.round_readings import Models
from test_support.checks.recorded_rounds import P, Q, coin, model, token


def one_token_rounds(used_q):
    """Return every path of two rounds of one draft, in an engine that tests by ``used_q``."""
    result = []
    for first in (0, 1):
        for second in (0, 1):
            draws: list[PathDraw] = []
            for text, drafted in (((0,), first), ((0, first), second)):
                draws.append(token(drafted, *Q[text])._replace(before=(0,) * len(draws)))
                bound = min(1.0, model(P)(text)[drafted] / used_q(text)[drafted])
                draws += [coin(0.0, bound)._replace(before=(0,) * len(draws))] if bound < 1 else []
            models = Models(model(P), model(Q), (0,), 2, (), ((0, "draft", (0,)),))
            result.append((draws, (first, second), models))
    return result


def test_rows_of_the_round_before_are_named_where_all_paths_have_them():
    assert engine_rounds(one_token_rounds(lambda text: Q[text])).fault == ""
    said = engine_rounds(one_token_rounds(lambda text: Q[text[:-1] or text])).fault
    assert said.startswith("q in the test is computed without the last token of the text (one position early): draft ")
