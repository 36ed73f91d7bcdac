"""Rounds of an engine: rows of the round before."""

from __future__ import annotations

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.engine_rounds import drawn_again, engine_rounds
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


def test_a_last_draft_that_is_emitted_in_place_of_the_bonus_is_named():
    """A decoder that requests its draws reads the last token too, so a last token without a draw is chosen."""
    certain = Models(model(P), model(Q), (0,), 2, guesses=False, open_end=False)
    again = [([token(0, *Q[0,])], (0, 0), certain), ([token(1, *Q[0,]), coin(0.0, 0.625)], (1, 1), certain)]
    said = "the bonus token is the last draft again, expected a draw from p after the last draft: "
    assert engine_rounds(again).fault.startswith(said)
    unread = [(draws, new, models._replace(open_end=True)) for draws, new, models in again]
    assert engine_rounds(unread).fault == ""


def test_rows_of_the_round_before_are_named_where_all_paths_have_them():
    assert engine_rounds(one_token_rounds(lambda text: Q[text])).fault == ""
    said = engine_rounds(one_token_rounds(lambda text: Q[text[:-1] or text])).fault
    assert said.startswith("q in the test is computed without the last token of the text (one position early): draft ")


def path_of_two_draws(first, second, emitted, between=()):
    """Return a path of two draws after (0,); ``between`` are further queries before the second draw."""
    one, other = (token(outcome, *P[0,])._replace(before=(0,) * at) for at, outcome in enumerate((first, second)))
    queries = ((0, "target", (0,)), *((1, "target", text) for text in between))
    return [one, other], (emitted, 0), Models(model(P), None, (0,), 2, queries=queries)


def test_a_token_that_is_drawn_twice_at_one_position_is_named():
    again = [path_of_two_draws(0, 1, 1), path_of_two_draws(1, 0, 0)]
    said = "new token 1 is drawn from p twice: the first draw, 0 (e.py:1), is discarded, and 1 (e.py:1) is emitted"
    assert drawn_again(again).startswith(said)
    assert drawn_again(again[:1]) == ""
    assert drawn_again([path_of_two_draws(0, 1, 0), path_of_two_draws(1, 0, 1)]) == ""
    assert drawn_again([path_of_two_draws(0, 1, 1, ((0, 0),)), path_of_two_draws(1, 0, 0, ((0, 1),))]) == ""


def test_draws_of_an_engine_without_recorded_queries_are_at_no_known_position():
    again = [path_of_two_draws(0, 1, 1), path_of_two_draws(1, 0, 0)]
    unknown = [(draws, new, models._replace(prompt=(), queries=())) for draws, new, models in again]
    assert drawn_again(unknown) == ""
