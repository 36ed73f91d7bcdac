"""Faults that let one row of a batch decide about another, recognised from the law of the batch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.checks.explaining.batch_rules import HYPOTHESES, RequestBatch, _decode, rule_of_batch
from specverify.checks.explaining.queried_rounds import (
    drafts_of_first_round,
    exchanged_answers,
)
from specverify.laws.enumeration import program_law
from specverify.subjects.subject import Trace

OPEN = {(0,): (0.5, 0.5), (1,): (0.2, 0.8), (0, 1): (0.7, 0.3), (1, 0): (0.1, 0.9)}


def p(text):
    return np.array(OPEN.get(text, (0.6, 0.4) if len(text) == 2 else (float(text[-1]), 1.0 - text[-1])))


def q(text):
    return np.array((0.8, 0.2) if len(text) < 3 else (1.0, 0.0))


BATCH = RequestBatch(p, q, ((0,), (1,)), 2, (2,), gammas=(1,))
ONE_DRAFT = [one for one in HYPOTHESES if one.least_gamma == 1 and one.in_test is one.in_residual]
ROWS = [one for one in HYPOTHESES if one.words.startswith("p is averaged over the rows of the batch in the test")]


def law_of(hypothesis, batch=BATCH):
    return program_law(partial(_decode, hypothesis, batch, batch.gammas[0], False, False, True)).probabilities


@pytest.mark.parametrize("hypothesis", ONE_DRAFT[:4] + ONE_DRAFT[-3:] + ROWS, ids=range(7 + len(ROWS)))
def test_a_planted_fault_gives_its_own_name(hypothesis):
    said = rule_of_batch(BATCH, law_of(hypothesis))
    assert said in {hypothesis.words, hypothesis.instead}
    assert said


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:2], ids=["of the residual", "of p"])
def test_a_fault_is_named_where_a_row_has_no_draft_left(hypothesis):
    longer = BATCH._replace(horizon=3)
    law = program_law(partial(_decode, hypothesis, longer, 1, True, False, True)).probabilities
    assert rule_of_batch(longer, law) == hypothesis.words


def test_the_law_of_a_row_alone_has_no_name():
    law = law_of(HYPOTHESES[0]._replace(ending=lambda rows, b: (rows[b].accepted, rows[b].p[rows[b].accepted])))
    assert rule_of_batch(BATCH, law) == ""


def test_right_rows_in_another_order_are_named():
    right = law_of(HYPOTHESES[0]._replace(ending=lambda rows, b: (rows[b].accepted, rows[b].last(rows[b].accepted))))
    exchanged = {text[2:] + text[:2]: mass for text, mass in right.items()}
    said = "the answers are returned in another order: row 1 gets that of row 2, row 2 gets that of row 1"
    assert rule_of_batch(BATCH, exchanged) == said


def test_answers_change_places_inside_their_batch_only():
    wanted, got = [(1,), (2,), (2,), (1,)], [(1,), (2,), (1,), (2,)]
    said = exchanged_answers(wanted, got, "request", (2, 2))
    assert said.endswith("request 3 gets that of request 4, request 4 gets that of request 3")
    assert exchanged_answers(wanted, [(2,), (1,), (2,), (2,)], "request", (2, 2)) == ""
    assert exchanged_answers([(1,), (2,)], [(2,), (1,)], "row").endswith("row 2 gets that of row 1")


def test_the_drafts_of_the_first_round_are_counted_over_all_rows():
    queries = (
        ("target", (0,)),
        ("draft", (0,)),
        ("draft", (1,)),
        ("draft", (0, 1)),
        ("draft", (1, 1)),
        ("target", (0,)),
    )
    trace = Trace((((0,), (1, 1)), ((1,), (1, 1))), queries)
    assert drafts_of_first_round(trace) == 2
    assert drafts_of_first_round(trace._replace(queries=queries[:1])) == 0
