"""Rounds read from draws: the wrong rule of a bonus, a replacement, an acceptance."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from specverify.checks import check_named
from specverify.checks.explaining import round_readings
from specverify.checks.explaining.readings import Models
from specverify.checks.explaining.round_readings import _PathReader, reading_of
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject
from test_support.checks.recorded_rounds import P, Q, coin, model, read, token


def test_a_test_with_the_row_of_a_rejected_text_is_named():
    stale = [token(1, 0.2, 0.8), coin(0.625, 1.0), token(1, 0.5, 0.5), coin(0.0, 0.5)]
    reading = read(stale, (0, 1), asked=((0,), (0, 1), (0, 1, 0)))
    assert reading.fault == (
        "draft 1 (1) is tested with p after (0, 1) (which keeps the rejected draft token 1); expected the rows after "
        "(0, 0): u < 0.5 instead of 1 (e.py:2)"
    )


def test_a_bonus_from_q_and_a_replacement_from_p_are_named():
    bonus = read([token(0, 0.2, 0.8), token(1, 0.5, 0.5)], (0, 1)).fault
    assert bonus == ""  # a second draft, accepted since p is above q there
    late = read([token(1, 0.2, 0.8), coin(0.0, 0.625), token(0, 0.6, 0.4), token(1, 0.5, 0.5)], (1, 0), 2)
    assert late.fault == ""
    instead = read([token(1, 0.2, 0.8), coin(0.625, 1.0), token(1, 0.5, 0.5)], (1,), 1).fault
    assert instead.startswith(
        "a rejected draft is replaced by a token drawn from p = (0.5, 0.5), expected norm(max(p - q"
    )


def test_a_rejected_draft_that_is_kept_for_the_next_position_is_named():
    p, q = {**P, (0, 0): (0.75, 0.25)}, Q
    texts = (("draft", (0,)), ("target", (0,)), ("draft", (0, 0)), ("target", (0, 0)))
    queries = tuple((at, *text) for at, text in zip((0, 1, 2, 2), texts, strict=True))
    models = Models(model(p), model(q), (0,), 2, queries=queries)
    drafted, rejected = token(1, *Q[0,]), coin(0.625, 1.0)._replace(before=(0,))
    kept = [drafted, rejected, coin(0.0, 0.5)._replace(before=(0, 0))]
    said = "the draft at new token 2 is 1, which was rejected at new token 1 and kept: it is not drawn from q again"
    assert reading_of(kept, models, (0, 1)).fault == said
    drawn = token(1, *Q[0, 0])._replace(before=(0, 0))
    again = [drafted, rejected, drawn, coin(0.0, 0.5)._replace(before=(0, 0, 0))]
    assert reading_of(again, models, (0, 1)).fault == ""
    ahead = models._replace(q=model({**q, (0, 1): (0.0, 1.0)}), queries=((0, "draft", (0, 1)), *queries))
    said = "draft 1 is drawn from q after (0, 1) (which keeps the rejected draft token 1) = (0, 1), expected q = "
    assert reading_of(kept, ahead, (0, 1)).fault == f"{said}(0.5, 0.5)"


@pytest.mark.parametrize(("new", "is_fault"), [((1, 0), False), ((1, 0, 1), True)])
def test_only_the_last_token_may_have_a_draw_that_nothing_reads(new, is_fault):
    reading = reading_of([coin(0.0, 0.5)], Models(model(P), None, (0,), len(new)), new)
    assert bool(reading.fault) == is_fault


@pytest.mark.parametrize("late", [False, True])
def test_a_coin_before_the_queries_of_its_round_is_no_test(late):
    """Without draws before it, the draft of such a round is certain in q; the coin may choose a drafter."""
    one_hot = model({(0,): (0.0, 1.0)})
    queries = tuple((1 - late, name, (0,)) for name in ("target", "draft"))
    reading = reading_of([coin(0.0, 0.3)], Models(model(P), one_hot, (0,), 1, queries=queries), (1,))
    assert bool(reading and "is tested with u < 0.3" in reading.fault) == late


def test_the_bound_of_the_search_changes_no_reading(monkeypatch):
    """The paths deviate from the rule in none, one or several steps."""
    paths = [
        ([token(0, 0.2, 0.8), token(1, 0.25, 0.75)], (0, 1)),
        ([token(1, 0.2, 0.8), coin(0.625, 1.0), token(1, 0.5, 0.5)], (1,)),
        ([token(1, 0.2, 0.8), coin(0.7, 1.0), token(1, 0.3, 0.7), coin(0.0, 0.9), token(0, 0.1, 0.9)], (1, 0)),
        ([token(0, 0.5, 0.5), token(0, 0.7, 0.3), coin(0.2, 1.0)], (0, 1)),
    ]
    bounded = [read(items, new) for items, new in paths]
    monkeypatch.setattr(round_readings, "FIRST_BOUND", math.inf)
    assert bounded == [read(items, new) for items, new in paths]
    assert [reading.cost > round_readings.OTHER_NUMBER for reading in bounded] == [False, True, True, True]


@pytest.mark.parametrize(
    ("low", "high", "emitted", "fault"),
    [
        (0.375, 1.0, 1, ""),
        (0.0, 0.375, 0, ""),
        (0.2, 1.0, 1, "draft 1 (1) is tested with u >= 0.2, expected u >= 0.375 = 1 - min(1, p/q) (e.py:2)"),
    ],
)
def test_a_test_that_accepts_above_its_bound_is_read(low, high, emitted, fault):
    models = Models(model(P), model(Q), (0,), 1, upside_down=True)
    reading = reading_of([token(1, 0.2, 0.8), coin(low, high)], models, (emitted,))
    assert reading.fault == fault
    assert f"(u {'>=' if high == 1 else '<'} {low or high}, e.py:2" in reading.words[0]


def test_a_last_accepted_draft_that_is_missing_is_named():
    reading = read([token(1, 0.2, 0.8), coin(0.625, 1.0), token(1, 0.5, 0.5)], (0,))
    assert reading.fault == "all drafts of a round are accepted and the last accepted draft, 1, is missing"


@pytest.mark.parametrize(
    ("other", "row"),
    [((0.5, 0.5), "p after (0, 1) (without the last token), expected p after (0, 1, 0)"), ((1, 0), "another row, exp")],
)
def test_the_row_of_a_certain_token_is_named_if_no_other_row_has_it(other, row):
    rows = {(0, 1): (1, 0), (0, 1, 0): (0, 1), (0, 0): other}
    models = Models(model(rows), model(rows), (0,), 3, asked=((0,), (0, 0), (0, 1), (0, 1, 0)))
    reading = reading_of([token(1, 0.5, 0.5)], models, (1, 0, 0))
    assert f"drawn from {row}" in reading.fault


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ((0, 1, 1), "p after (0, 1, 1) (with token 1, the argmax of p, in place of 0), expected p after (0, 1, 0)"),
        ((0, 1), "another row, expected p = "),
    ],
)
def test_the_row_of_a_certain_token_is_that_which_the_target_was_queried_for(asked, row):
    rows = {(0, 1): (0.4, 0.6), (0, 1, 0): (0, 1), (0, 0): (1, 0), (0, 1, 1): (1, 0)}
    queries = ((1, "target", asked),)
    models = Models(model(rows), model(rows), (0,), 3, asked=((0, 0), (0, 1), (0, 1, 1)), queries=queries)
    reading = reading_of([token(1, 0.5, 0.5), token(0, 0.4, 0.6)], models, (1, 0, 0))
    assert f"drawn from {row}" in reading.fault


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        (((1, "draft", (0, 1, 1)),), "q after (0, 1, 1) (with token 1 in place of 0), expected p after (0, 1, 0)"),
        ((), "another row, expected p = "),
    ],
)
def test_a_token_that_a_draft_row_of_another_text_makes_certain_has_that_row(asked, row):
    """Two rows of p fit, and one row of q: that of a text which the draft model was queried for."""
    p = {(0, 1): (0.7, 0.3), (0, 1, 0): (0, 1), (0, 0): (1, 0), (0, 0, 0): (1, 0), (0, 1, 1): (0.5, 0.5)}
    q = p | {(0, 0): (0.5, 0.5), (0, 0, 0): (0.5, 0.5), (0, 1, 1): (1, 0)}
    models = Models(model(p), model(q), (0,), 3, asked=tuple(p), queries=asked)
    reading = reading_of([token(1, 0.5, 0.5), token(0, 0.7, 0.3)], models, (1, 0, 0))
    assert f"drawn from {row}" in reading.fault


def test_candidates_that_are_drawn_without_replacement_are_no_chain():
    """The second candidate is drawn from q without the first, at the same line, and is no replacement."""
    first, test = token(1, 0.2, 0.5, 0.3), coin(0.9, 1.0)
    for second, is_chain in ((token(2, 0.4, 0.0, 0.6), False), (token(2, 0.3, 0.1, 0.6), True)):
        rows = dict.fromkeys(((0,), (0, 1), (0, 2)), (0.3, 0.4, 0.3))
        models = Models(model(rows), model(dict.fromkeys(rows, (0.2, 0.5, 0.3))), (0,), 1)
        assert (reading_of([first, test, second], models, (2,)) is not None) == is_chain


@pytest.mark.parametrize(("later", "is_chain"), [(((2, "draft", (0,)),), False), (((2, "draft", (0, 1)),), True)])
def test_two_drafts_after_two_queries_with_one_text_are_no_chain(later, is_chain):
    items = [token(1, *Q[0,]), coin(0.0, 0.625), token(0, *Q[0,]), coin(0.0, 1 - 1e-3)]
    items = [item._replace(before=(0,) * at) for at, item in enumerate(items)]
    for q in (model(Q), None):
        models = Models(model(P), q, (0,), 2, queries=((0, "draft", (0,)), *later))
        assert (reading_of(items, models, (1, 0)) is not None) == is_chain


def test_a_certain_replacement_behind_the_end_is_no_sign_that_the_rejected_draft_is_emitted():
    """The residual with q of the first draft is certain of the rejected draft 2: it looks as if it were kept."""
    rng = np.random.default_rng()

    def drawn(row):
        return int(rng.choice(len(row), p=row / row.sum()))

    def make(scenario):
        def row(model, text):
            return np.asarray(model(text), float)

        def decode(prompt):
            text, end = prompt, len(prompt) + scenario.horizon
            while len(text) < end:
                drafts, qs = (), []
                for _ in range(2):
                    qs.append(row(scenario.draft, text + drafts))
                    drafts += (drawn(qs[-1]),)
                kept = ()
                for q, x in zip(qs, drafts, strict=True):
                    p = row(scenario.target, text + kept)
                    if rng.random() < p[x] / q[x]:
                        kept += (x,)
                        continue
                    left = np.maximum(p - qs[0], 0)
                    kept += (drawn(left if left.any() else p),)
                    break
                else:
                    kept += (drawn(row(scenario.target, text + drafts)),)
                text += kept
            return text[len(prompt) : end]

        return decode

    subject = made_subject(make, "an engine")
    subject = subject.with_programs(subject.programs[:1])
    fault = run_check(subject, check_named("law_is_target"), Checklist(())).counterexample.fault
    assert "is emitted, and its replacement after it" not in fault
    assert "replaced by a draw from" in fault


def test_a_last_token_without_a_test_is_no_draft():
    """The draft model is not known, so any token that is drawn before a test may be a draft."""
    models = Models(model({(0,): (0.25, 0.75), (0, 1): (0.2, 0.8)}), None, (0,), 2, guesses=False)
    reading = reading_of([token(0, 0.5, 0.5), coin(0.5, 1.0), token(0, 0.9, 0.1)], models, (1, 0))
    assert reading.rounds[-1].drafts == ()
    said = "new token 2, after a rejected draft, is drawn from (0.9, 0.1), expected p = (0.2, 0.8) (e.py:1)"
    assert reading.fault == said


@pytest.mark.parametrize(
    ("rejected", "said"),
    [
        ((), "new token 3"),
        (((0, 1, 1),), "new token 3, after a rejected draft,"),
        (((0, 0),), "new token 3, after a rejected draft at new token 1,"),
        (((0, 0), (0, 1, 1)), "new token 3, after 2 rejected drafts,"),
        (((0, 0), (0, 0)), "new token 3, after 2 rejected drafts, the last at new token 1,"),
    ],
)
def test_a_token_without_a_draft_is_told_with_the_rejected_drafts_before_it(rejected, said):
    """A text in ``rejected`` ends in the rejected draft; the token follows two new tokens."""
    reader, now = (
        SimpleNamespace(models=SimpleNamespace(prompt=(0,))),
        SimpleNamespace(text=(0, 1, 0), rejected=rejected),
    )
    assert _PathReader._plain_token(reader, now) == said
