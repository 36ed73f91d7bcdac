"""The first wrong token of a request, explained by the texts with which the models are queried."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.positions import WRONG_POSITION
from specverify.checks.explaining.wrong_rows import (
    context_with_draft,
    text_of_other_request,
    wrong_row,
)
from specverify.subjects.subject import Trace


def test_a_context_that_has_lost_the_tokens_before_the_fed_ones_is_named():
    target = lambda tokens: np.eye(4)[int(tokens[0] == 3)]  # noqa: E731
    queries = (("target", (3,)), ("target", (3, 0)), ("target", (1,)), ("target", (1, 2)))
    trace = Trace((((3,), (0, 1, 0)),), queries, target, target)
    said = "the target's context has lost all tokens before new token 2: p is computed after (1) alone and not after "
    assert wrong_row(trace, 0, (0, 1, 1)) == f"{said}(3 0 1)"
    ambiguous = trace._replace(queries=(*queries, ("target", (0, 1))))
    assert "lost" not in wrong_row(ambiguous, 0, (0, 1, 1))
    right = trace._replace(queries=(*queries, ("target", (3, 0, 1))))
    assert "lost" not in wrong_row(right, 0, (0, 1, 1))


@pytest.mark.parametrize(("window", "differs"), [((1,), "1 token too few"), ((3, 0, 1), "1 token too many")])
def test_a_window_of_another_length_than_without_speculation_is_named(window, differs):
    """Decoding without speculation computes p after the last two tokens."""
    target = lambda tokens: np.eye(4)[0 if tokens == window else 1]  # noqa: E731
    queries = (("target", (3,)), ("target", (3, 0)), ("target", window))
    trace = Trace((((2, 3), (0, 1, 0)),), queries, target, target, of_plain=lambda: ((2, 3), (3, 0), (0, 1)))
    shown = " ".join(map(str, window))
    said = f"the target's context has {differs}: p is computed after ({shown}), without speculation after (0 1)"
    assert wrong_row(trace, 0, (0, 1, 1)) == said
    either = trace._replace(of_plain=lambda: ((2, 3), (3, 0), (0, 1), window))
    assert "context" not in wrong_row(either, 0, (0, 1, 1))


def test_a_token_of_the_draft_model_without_a_row_of_p_is_a_bonus_or_an_untested_draft():
    certain = lambda tokens: np.eye(4)[1]  # noqa: E731
    texts, draft = (((0,), (1, 2)), ((3,), (1, 1))), lambda tokens: np.eye(4)[2 - (tokens[0] == 3)]
    begin, tested, asked = ("draft", (0,)), ("target", (0,)), ("draft", (0, 1))
    bonus = Trace(texts, (begin, tested, asked, ("draft", (3,))), draft, certain)
    said = "the token after accepted drafts is the draft model's, and p is not computed for it (p has 1 there)"
    assert wrong_row(bonus, 0, (1, 1)) == said
    untested = bonus._replace(queries=(begin, asked, tested, ("draft", (3,))))
    said = "it is a draft that is not tested: p is not computed for it (p has 1 there)"
    assert wrong_row(untested, 0, (1, 1)) == said
    computed = bonus._replace(queries=(begin, tested, asked, ("target", (0, 1)), ("draft", (3,))))
    assert wrong_row(computed, 0, (1, 1)) == "it is the draft, which p does not choose: p has 1 there"


def test_a_draft_that_is_tested_after_a_wrong_text_is_not_called_untested():
    """Block 0 of a cache is overwritten: the target computes p after another prompt, and chooses the draft there."""
    target = lambda tokens: np.eye(4)[2 if tokens[0] == 1 else 1]  # noqa: E731
    texts, draft = (((0,), (1, 2)), ((3,), (1, 1))), lambda tokens: np.eye(4)[2 if len(tokens) == 2 else 1]
    queries = (("draft", (0,)), ("draft", (0, 1)), ("target", (0,)), ("target", (1, 1)), ("draft", (3,)))
    said = "it is the choice of p after (1 1), which holds 1 in place of 0 (token 1 of the prompt)"
    assert wrong_row(Trace(texts, queries, draft, target), 0, (1, 1)) == said


@pytest.mark.parametrize("computed", [True, False])
def test_a_token_that_the_models_see_and_the_answer_lacks_is_named(computed):
    target = lambda tokens: np.eye(5)[(2 * tokens[-1] + 1) % 5]  # noqa: E731
    behind = (0, 1, 3) if computed else (0, 3)  # 1 is the first token
    trace = Trace((((0,), (3, 2, 0)),), (("target", (0,)), ("target", behind)), target, target)
    said = "1 is missing in the answer; the next ones are the choices of p after (0 1)"
    assert (wrong_row(trace, 0, (1, 3, 2)) == said) is computed


def test_a_text_that_only_begins_like_another_request_is_not_its_text():
    target = lambda tokens: np.eye(4)[2 if tokens[1:2] == (3,) else 1]  # noqa: E731
    texts, draft = (((0,), (1, 1)), ((0, 1, 0), (2,))), lambda tokens: np.eye(4)[1]
    queries = (("target", (0,)), ("draft", (0, 1, 0)), ("target", (0, 3, 0)))
    said = "it is the choice of p after (0 3 0), which holds 3 in place of 1 (token 2 of the prompt)"
    assert wrong_row(Trace(texts, queries, draft, target), 1, (1,)) == said


def test_a_row_behind_rejected_drafts_that_are_kept_is_named():
    choice = lambda tokens: np.eye(4)[len(tokens) % 4]  # noqa: E731
    draft = lambda tokens: np.eye(4)[3]  # noqa: E731
    queries = (("target", (0,)), ("draft", (0,)), ("target", (0, 3, 1)))
    trace = Trace((((0,), (1, 3)),), queries, draft, choice)
    assert wrong_row(trace, 0, (1, 2)) == (
        "it is the choice of p after (0 3 1), which still holds 3: tokens that are no part of the text "
        "(a cache that keeps rejected drafts)"
    )
    never_drafted = trace._replace(draft=lambda tokens: np.eye(4)[2])
    assert "rejected drafts" not in wrong_row(never_drafted, 0, (1, 2))


def test_a_context_with_a_rejected_draft_whose_replacement_is_known_is_named():
    target = lambda tokens: np.eye(4)[1]  # noqa: E731
    draft = lambda tokens: np.eye(4)[3]  # noqa: E731
    queries = (("draft", (0,)), ("target", (0,)), ("draft", (0, 1)), ("target", (0, 3, 3)))
    trace = Trace((((0,), (1, 2)),), queries, draft, target)
    held = "the target's context still holds the rejected draft token 3 in place of 1 (new token 1)"
    said = f"{held}: the target is queried with (0 3 3) and never with (0 1)"
    assert wrong_row(trace, 0, (1, 1)) == said
    before = held.replace("in place of 1", "before 1, its replacement")
    for used, where in (((0, 3), held), ((0, 3, 1), before)):
        asked = trace._replace(queries=(*queries, ("target", used)))
        after = f"p is computed after ({' '.join(map(str, used))}) and not after (0 1)"
        assert wrong_row(asked, 0, (1, 1)) == f"{where}: {after}"
    before = trace._replace(queries=(*queries[:2], queries[3], queries[2]))  # a test of drafts, and no stale context
    assert "still holds" not in wrong_row(before, 0, (1, 1))


@pytest.mark.parametrize(
    ("asked", "clause"),
    [
        ((0, 3, 2, 1), ", which holds 3 in place of 1 (token 2 of the prompt)"),
        ((3, 3, 2, 1), ", which holds 3 3 in place of 0 1 (token 1 of the prompt)"),
        ((3, 1, 3, 1), ", which holds 3 1 3 in place of 0 1 2 (token 1 of the prompt)"),
        ((3, 1, 2), None),
    ],
)
def test_the_wrong_tokens_of_a_context_of_the_same_length_are_named(asked, clause):
    target = lambda tokens: np.eye(4)[2 if tokens == asked else 0]  # noqa: E731
    texts = (((0, 1, 2), (1, 2)), ((2, 2), (1, 0)))
    trace = Trace(texts, (("target", (0, 1, 2)), ("target", asked), ("target", (2, 2))), None, target)
    said = "" if clause is None else f"it is the choice of p after ({' '.join(map(str, asked))}){clause}"
    assert wrong_row(trace, 0, (1, 0)) == said


def test_a_text_with_padding_before_it_is_named():
    target = lambda tokens: np.eye(4)[len(tokens) % 4]  # noqa: E731
    texts = (((3, 3, 3, 3), (1,)), ((1, 2), (0,)))
    trace = Trace(texts, (("draft", (1, 2)), ("target", (3, 3, 3, 3)), ("target", (0, 0, 1, 2))), target, target)
    assert wrong_row(trace, 1, (2,)) == (
        "p is computed after the text with the tokens 0 0 before its beginning, as by padding that is not masked"
    )
    other = trace._replace(queries=(*trace.queries[:2], ("target", (0, 3, 1, 2))))
    assert "padding" not in wrong_row(other, 1, (2,))


def test_the_row_that_has_a_wrong_certain_token_is_named():
    texts = (((0,), (1, 2)), ((3,), (2, 2)))
    certain = lambda tokens: np.eye(4)[(2 * tokens[0] + len(tokens)) % 4]  # noqa: E731
    trace = Trace(texts, (("draft", (3,)), ("target", (0,))), certain, certain)
    assert wrong_row(trace, 1, (3, 3)) == "p is not computed after (3)"
    trace = trace._replace(texts=(((0,), (1, 2)), ((3,), (1, 2))))
    assert wrong_row(trace, 1, (3, 3)) == "it is the choice of p after (0), a text of request 1"


def test_the_row_of_another_candidate_is_named():
    target = lambda tokens: np.eye(4)[3 if tokens[-2:] == (1, 1) else 2]  # noqa: E731
    queries = (("target", (0,)), ("target", (0, 1, 1)), ("target", (0, 1, 2)))
    trace = Trace((((0,), (1, 2, 3)),), queries, None, target)
    assert wrong_row(trace, 0, (1, 2, 2)) == "it is the choice of p after another candidate, (0 1 1)"
    assert "candidate" not in wrong_row(trace._replace(queries=queries[:2]), 0, (1, 2, 2))
    assert "candidate" not in wrong_row(trace._replace(queries=(*queries, ("draft", (0,)))), 0, (1, 2, 2))
    several = trace._replace(queries=(*queries, ("target", (0, 2, 1)), ("target", (0, 3, 3))))
    assert "candidate" in wrong_row(several, 0, (1, 2, 2))
    assert "candidate" not in wrong_row(several._replace(target=lambda tokens: np.eye(4)[3]), 0, (1, 2, 2))


def test_the_complete_text_of_another_request_is_named():
    """The second call serves the same prompts and asks for the right row: only the first call is examined."""
    target = lambda tokens: np.eye(4)[{(0, 1, 2): 3, (3, 1): 2}.get(tokens, 1)]  # noqa: E731
    one, two = ((0,), (1, 2)), ((3,), (1, 3))
    begun = (("target", (0,)), ("target", (3,)), ("target", (0, 1)))
    queries = (*begun, ("target", (0, 1, 2)), *begun, ("target", (3, 1)))
    trace = Trace((one, two, one, ((3,), (1, 2))), queries, target, target, batches=(2, 2), calls=((0, 0), (2, 4)))
    said = "a row of p is used that was computed after a text of request 1: p is not computed after (3 1), and its "
    assert wrong_row(trace, 1, (1, 2)) == f"{said}choice after its complete text (0 1 2) is used"
    assert "request 1" not in wrong_row(trace._replace(calls=()), 1, (1, 2))
    assert trace.of_call(3).queries == queries[4:]
    assert [list(trace.call_of(i)) for i in range(4)] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_a_context_with_a_rejected_draft_in_the_place_of_a_token_is_named():
    target = lambda tokens: np.eye(4)[(2 if tokens[-1] == 3 else 1)]  # noqa: E731
    draft = lambda tokens: np.eye(4)[3]  # noqa: E731
    queries = (("target", (0,) * 9), ("draft", (0,) * 9), ("target", (*(0,) * 9, 3)))
    trace = Trace((((0,) * 9, (1, 2)),), queries, draft, target)
    said = "the target's context still holds the rejected draft token 3 in place of 1 (new token 1): the choice of p"
    assert wrong_row(trace, 0, (1, 1)) == f"{said} after (... 0 0 0 0 0 0 0 3)"
    other = trace._replace(draft=lambda tokens: np.eye(4)[0])
    assert wrong_row(other, 0, (1, 1)).startswith("the target's context holds 3 in place of 1 (new token 1): ")
    right = trace._replace(queries=(*trace.queries, ("target", (*(0,) * 9, 1))))
    assert "context" not in wrong_row(right, 0, (1, 1))


def test_a_request_that_is_decoded_with_p_after_the_text_of_another_one_is_named():
    target = lambda tokens: np.eye(5)[(tokens[0] + len(tokens)) % 5]  # noqa: E731
    one, two = ((0,), (1, 2, 3, 4, 0)), ((3,), (1, 2, 3, 4, 0))
    queries = []
    for length in range(5):
        queries += [("draft", (3, *two[1][:length])), ("target", (0, *one[1][:length]))]
    trace = Trace((one, two), tuple(queries), target, target)
    said = "p of request 2 is computed after the text of request 1, not after its own"
    assert text_of_other_request(trace, 1) == said
    own = [(name, (3, *text[1:])) for name, text in queries]
    assert text_of_other_request(trace._replace(queries=tuple(own)), 1) == ""
    assert text_of_other_request(trace._replace(queries=tuple(queries[:5])), 1) == ""
    assert text_of_other_request(trace._replace(texts=(one, one, two)), 2) == ""


def test_a_context_with_a_rejected_draft_is_proved_by_the_queries():
    rows = {(0, 1, 2): (1, 0, 0), (0, 2, 1, 2): (0, 0.5, 0.5)}
    target = lambda tokens: np.array(rows.get(tokens, (1, 0, 0)))  # noqa: E731
    draft = lambda tokens: np.array((0.5, 0, 0.5) if tokens == (0,) else (1, 0, 0))  # noqa: E731
    queries = (("draft", (0,)), ("target", (0,)), ("target", (0, 2, 1, 2)))
    trace = Trace((((0,), (1, 2, 1)),), queries, draft, target)
    assert context_with_draft(trace, 0, (1, 2, 1)) == ((0, 2, 1, 2), 2)
    assert context_with_draft(trace, 0, (1, 2, 0)) is None
    asked = trace._replace(queries=(*queries, ("target", (0, 1, 2))))
    assert context_with_draft(asked, 0, (1, 2, 1)) is None
    assert context_with_draft(trace._replace(queries=queries[1:]), 0, (1, 2, 1)) is None


LATE = "it is the choice of p one position late, after draft 4"
EARLY = "it is the choice of p one position early"


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize(("read_at", "said"), [(lambda text: (*text, 4), LATE), (lambda text: text[:-1], EARLY)])
def test_a_row_of_another_position_is_named(read_at, said, several):
    """Of several requests, which may exchange their rows, one wrong token proves nothing."""
    target, draft = lambda tokens: np.eye(5)[len(tokens) % 5], lambda tokens: np.eye(5)[4]
    new = (int(target((4,)).argmax()),)
    for _ in range(3):
        new += (int(target(read_at((4, *new))).argmax()),)
    others = (((1, 1), (0,)),) if several else ()
    queries = tuple((model, (4, *new[:i])) for i in range(4) for model in ("draft", "target"))
    trace = Trace((((4,), new), *others), queries, draft, target)
    wanted = (new[0], int(target((4, new[0])).argmax()))
    assert wrong_row(trace, 0, wanted) == said
    shorter = trace._replace(texts=(((4,), new[:3]), *others))
    assert (wrong_row(shorter, 0, wanted) == said) is not several
    without_drafts = trace._replace(queries=queries[1::2])
    assert (wrong_row(without_drafts, 0, wanted) == said) is (said == EARLY)


def test_wrong_position_ids_are_named_unless_the_right_text_is_queried():
    """The network puts a token into the text where a position is missing: here after (0, 1)."""
    asked, text = (0, 1, WRONG_POSITION, 2), (0, 1, 2)
    chosen = {text: 1, asked: 2}
    target = lambda tokens: np.eye(3)[chosen.get(tokens, tokens[-1])]  # noqa: E731
    queries = (("target", (0,)), ("target", (0, 1)), ("target", asked))
    trace = Trace((((0,), (1, 2, 2)),), queries, None, target)
    said = wrong_row(trace, 0, (1, 2, 1))
    assert said.startswith("a forward pass of the target has wrong position ids, or cache entries of another text: p")
    assert said.endswith("and never after (0 1 2)")
    right_too = trace._replace(queries=(*queries, ("target", text)))
    assert "position" not in wrong_row(right_too, 0, (1, 2, 1))
    without = trace._replace(queries=(*queries[:2], ("target", (0, 1, 0, 2))))
    assert "position" not in wrong_row(without, 0, (1, 2, 1))


@pytest.mark.parametrize(("q", "is_rejected"), [((0.4, 0.05, 0.55), True), ((0.55, 0.05, 0.4), False)])
def test_the_argmax_of_the_residual_is_named_where_the_draft_is_rejected(q, is_rejected):
    p = lambda tokens: np.array((0.45, 0.35, 0.2))  # noqa: E731
    trace = Trace((((0,), (1,)),), (("target", (0,)),), lambda tokens: np.array(q), p)
    said = "it is the argmax of max(p - q, 0), expected that of p: p = (0.45, 0.35, 0.2), q = (0.4, 0.05, 0.55)"
    assert (wrong_row(trace, 0, (0,)) == said) is is_rejected


def test_the_argmax_of_p_is_not_called_that_of_the_residual() -> None:
    """The call without speculation excludes token 1, such as an end token before the least length."""
    models = [lambda tokens, row=row: np.array(row) for row in ((0.4, 0.05, 0.55), (0.35, 0.45, 0.2))]
    trace = Trace((((0,), (1,)),), (("target", (0,)),), *models)
    assert "argmax" not in wrong_row(trace, 0, (0,))
