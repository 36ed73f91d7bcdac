"""A token that comes from a row of p which was computed after another text."""

from __future__ import annotations

import numpy as np

from specverify.checks.explaining.reused_rows import reused_row
from specverify.subjects.subject import Trace

FIRST, SECOND = (0, 1, 2), (3, 1, 2)


def model(tokens):
    return np.eye(4)[(len(tokens) + tokens[0]) % 4]


def stored(new, asked):
    queries = tuple(("target", FIRST + new[:i]) for i in range(asked))
    return Trace(((FIRST, new), (SECOND, new)), queries, model, model)


def test_rows_of_an_earlier_request_are_named_if_they_give_every_token():
    new = (3, 0, 1, 2)
    said = reused_row(stored(new, 4), 1, 0)
    assert said == (
        "a row of p is used that was computed after another text: p is not computed after (3 1 2); its choice after "
        "(0 1 2) of request 1, which has the same last 2 tokens and length, is this token"
    )


def test_without_evidence_only_the_missing_query_is_stated():
    assert reused_row(stored((3, 0), 2), 1, 0) == "p is not computed after (3 1 2)"
    other = stored((3, 0, 1, 2), 4)
    other = other._replace(texts=(other.texts[0], (SECOND, (3, 0, 0, 2))))
    assert reused_row(other, 1, 0) == "p is not computed after (3 1 2)"


def test_nothing_is_stated_if_p_is_computed_there_or_after_texts_of_no_request():
    trace = stored((3, 0, 1, 2), 4)
    assert reused_row(trace._replace(queries=(*trace.queries, ("target", SECOND))), 1, 0) == ""
    assert reused_row(trace._replace(queries=(*trace.queries, ("target", (2, 2)))), 1, 0) == ""
