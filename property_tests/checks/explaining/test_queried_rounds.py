"""The round of a wrong token, read from the queries of the models."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from specverify.checks.explaining.engine_counterexamples import _or_fault_of_queries
from specverify.checks.explaining.engine_rounds import EngineRounds
from specverify.checks.explaining.first_difference import Difference
from specverify.checks.explaining.queried_rounds import (
    argmax_without_draw,
    exchanged_answers,
    rejected_end,
    round_around,
    row_not_computed,
)
from specverify.subjects.subject import Trace


def test_the_round_of_a_wrong_token_is_read_off_the_questions_to_the_models():
    queries = (("draft", (0,)), ("draft", (0, 1)), ("target", (0,)), ("target", (0, 1)), ("draft", (0, 1, 3)))
    trace = Trace((((0,), (1, 3, 2)),), queries, lambda tokens: np.eye(4)[(2 * len(tokens) - 1) % 4])
    assert round_around(trace, 0, (1, 2, 2)) == (
        "round from new token 1: drafted 1 3, 2 of 2 accepted (inferred from the tokens)"
    )


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (2, "round from new token 3: drafted 2, 0 of 1 accepted (inferred from the tokens)"),  # so 1 is the bonus
        (1, ""),  # 1 may be the bonus or a draft
    ],
)
def test_a_bonus_with_whose_text_a_draft_network_is_queried_is_no_draft(choice, said):
    draft = lambda tokens: np.eye(4)[{1: 0, 2: choice, 3: 2}[len(tokens)]]  # noqa: E731
    queries = (("draft", (3,)), ("target", (3,)), ("target", (3, 0)), ("draft", (3, 0)), ("draft", (3, 0, 1)))
    trace = Trace((((3,), (0, 1, 0)),), queries, draft)
    assert round_around(trace, 0, (0, 1, 1)) == said


def traced(new, *, drawn):
    """Return a path of one draft and a bonus: ``drawn`` says whether a draw follows the query for the bonus."""
    queries = (("draft", (0,)), ("target", (0,)), ("target", (0, new[0])), ("draft", (0, *new)))
    draft = lambda tokens: np.full(3, 1 / 3)  # noqa: E731
    target = lambda tokens: np.roll((0.5, 0.3, 0.2), tokens[-1])  # noqa: E731
    trace = Trace((((0,), (*new, 0)),), queries, draft, target, (0, 1, 2, 2 + drawn))
    return trace, 3 + drawn


def test_a_bonus_that_is_chosen_without_a_draw_is_named():
    argmax = [traced((token, token), drawn=False) for token in range(3)]
    assert argmax_without_draw(argmax) == (
        "the token after accepted drafts is the argmax of p, without a draw: new token 2 is 0 after (0, 0), expected a "
        "draw from p = (0.5, 0.3, 0.2)"
    )
    assert argmax_without_draw([*argmax, traced((1, 2), drawn=False)]) == ""
    assert argmax_without_draw([traced((token, token), drawn=True) for token in range(3)]) == ""
    assert argmax_without_draw(argmax[:1]) == ""


def test_answers_in_another_order_are_named():
    said = "the answers are returned in another order: row 1 gets that of row 2, row 2 gets that of row 1"
    assert exchanged_answers(((1, 2), (3, 4)), ((3, 4), (1, 2)), "row") == said
    assert exchanged_answers(((1, 2), (3, 4)), ((3, 4), (1, 1)), "row") == ""
    assert exchanged_answers(((1, 2), (1, 2)), ((1, 2), (1, 2)), "row") == ""


@pytest.mark.parametrize(("eos", "told"), [(3, True), (4, False)])
def test_a_rejected_draft_that_is_the_end_token_is_named_if_the_text_ends_too_early(eos, told):
    queries = (("draft", (0,)), ("draft", (0, 1)), ("draft", (0, 1, 3)), ("target", (0,)))
    trace = Trace((((0,), (1, 2)),), queries, eos=eos)
    said = "; draft 2 of the last round is the end token 3, and is not accepted"
    assert rejected_end(trace, 0, (1, 2, 2, 2)) == (said if told else "")


def test_the_round_of_a_bonus_from_the_draft_model_ends_before_its_query():
    queries = (("draft", (0,)), ("draft", (0, 1)), ("target", (0,)), ("target", (0, 1)), ("draft", (0, 1)))
    queries = (*queries, ("draft", (0, 1, 3)), ("draft", (0, 1, 3, 2)), ("target", (0, 1, 3, 2)))
    trace = Trace((((0,), (1, 3, 2, 0)),), queries, lambda tokens: np.eye(4)[(1, 3, 2, 0)[len(tokens) - 1]])
    said = "round from new token 1: drafted 1 3, 2 of 2 accepted (inferred from the tokens)"
    assert round_around(trace, 0, (1, 3, 1, 0), bonus=True) == said
    assert round_around(trace, 0, (1, 3, 1, 0)) != said


def test_a_text_with_which_the_target_is_never_queried_is_named():
    def trace(*asked, new=(1, 0)):
        return Trace((((0,), new),), tuple(("target", text) for text in asked), None, lambda text: np.array([0.5, 0.5]))

    said, seen = "p of new token 2 is not computed after (0, 1)", {0: 0.5, 1: 0.5}
    assert (
        row_not_computed([trace((0,), (0, 0)), None], (1,), seen)
        == f"{said}, but after (0, 0) (with token 0 in place of 1)"
    )
    assert row_not_computed([trace((0,), (0, 0)), None], (1,), {0: 0.25, 1: 0.75}) == said
    assert row_not_computed([trace((0,), (0, 0)), trace((0,), (1, 1))], (1,), seen) == said
    assert row_not_computed([trace((0,), (0, 0)), trace((0,), (0, 1))], (1,), seen) == ""
    assert row_not_computed([trace((0,), (0, 0), new=(0, 0))], (1,), seen) == ""
    assert row_not_computed([trace()], (1,), seen) == ""


def test_a_shorter_text_that_is_queried_again_in_its_place_is_named():
    def traced(*asked, new=(1, 1, 0)):
        rows = {(0,): np.array([0.25, 0.75])}
        target = lambda text: rows.get(text, np.array([0.5, 0.5]))  # noqa: E731
        return Trace((((0,), new),), tuple(("target", text) for text in asked), None, target)

    traces = [traced((0,), (0, 1), (0,), last) for last in ((0, 1, 0), (0, 0, 0))]
    said = "p of new token 3 is not computed after (0, 1, 1)"
    assert row_not_computed(traces, (1, 1), {0: 0.25, 1: 0.75}) == f"{said}, but after (0,) (without the last 2 tokens)"
    assert row_not_computed(traces, (1, 1), {0: 0.5, 1: 0.5}) == said


def test_a_last_token_that_the_row_does_not_see_is_named():
    def traced(last):
        rows = {(0,): np.array([0.25, 0.75]), (0, 1): np.array([0.5, 0.5])}
        queries = tuple(("target", text) for text in ((0,), (0, 0, last)))
        return Trace((((0,), (1, last)),), queries, None, lambda text: rows.get(text, np.array([0.6, 0.4])))

    traces, said = [traced(0), traced(1)], "p of new token 2 is not computed after (0, 1)"
    assert row_not_computed(traces, (1,), {0: 0.25, 1: 0.75}) == f"{said}, but after (0,) (without the last token)"
    assert row_not_computed(traces, (1,), {0: 0.3, 1: 0.7}) == said


def test_the_text_of_a_wrong_row_is_named_rather_than_its_numbers():
    target = lambda text: np.array([0.25, 0.75])  # noqa: E731
    trace = Trace((((0,), (1, 0)),), (("target", (0,)), ("target", (1,))), None, target)
    difference = Difference("", (), (1,), {0: 0.25, 1: 0.75}, {0: 0.5, 1: 0.5})
    program = SimpleNamespace(split=None)

    def named(rounds, said, queries=trace.queries):
        traces = [trace._replace(queries=queries)]
        return _or_fault_of_queries((rounds, said), program, traces, difference)

    quoted, other = (
        EngineRounds([], "the bonus token is drawn from (0.25, 0.75)"),
        (("target", (0,)), ("target", (0, 1))),
    )
    missing = "p of new token 2 is not computed after (0, 1), but after (1,) (without the first token)"
    assert named(quoted, quoted.fault) == missing
    assert named(quoted._replace(named=True), quoted.fault) == quoted.fault
    assert named(quoted, "a wrong row") == "a wrong row"
    assert named(quoted, quoted.fault, other) == quoted.fault
    assert named(quoted, "") == missing


def test_the_sibling_in_the_text_of_a_certain_row_is_named():
    target = lambda tokens: np.eye(4)[len(tokens) % 4]  # noqa: E731
    queries = (("draft", (0, 1)), ("target", (0,)), ("target", (0, 1)), ("target", (0, 1, 2)))
    trace = Trace((((0,), (2, 3)),), queries, target, target)
    said = "p of new token 2 is not computed after (0, 2)"
    behind = ", but after (0, 1, 2), which also has 1, another draft for the place of 2"
    assert row_not_computed([trace], (2,), {3: 1.0}) == said + behind
    assert row_not_computed([trace], (2,), {1: 1.0}) == said
    two = trace._replace(queries=(*queries, ("target", (0, 1, 1, 2))))
    assert row_not_computed([two], (2,), {3: 1.0}) == said
    undrafted = trace._replace(queries=queries[1:])
    assert row_not_computed([undrafted], (2,), {3: 1.0}) == f"{said}, but after (0, 1, 2) (another text)"


def test_a_query_before_the_text_is_reached_does_not_hide_the_text_of_the_wrong_row():
    target = lambda text: np.eye(4)[2 if text == (0, 2, 0, 3) else 1]  # noqa: E731
    queries = tuple(("target", text) for text in ((0,), (0, 3), (0, 1), (0, 2, 0, 3)))
    trace = Trace((((0,), (1, 3, 2)),), queries, None, target)
    said = "p of new token 3 is not computed after (0, 1, 3)"
    assert row_not_computed([trace], (1, 3), {2: 1.0}) == f"{said}, but after (0, 2, 0, 3) (another text)"
    later = trace._replace(queries=(*queries, ("target", (0, 2, 3))))
    assert row_not_computed([later], (1, 3), {2: 1.0}) == said
