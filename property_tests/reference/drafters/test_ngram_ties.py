"""Where ties of the two n-gram methods go: their released storages, stated again as plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference import ngram_table

texts = st.lists(st.integers(0, 3), min_size=1, max_size=14).map(tuple)


def nasd_release(text, length):
    """A best token for each context, replaced when another token has more."""
    counts, best = {}, {}
    for position in range(length, len(text)):
        gram, token = text[position - length : position], text[position]
        row = counts.setdefault(gram, {})
        best.setdefault(gram, token)
        row[token] = row.get(token, 0) + 1
        if row[token] > row[best[gram]]:
            best[gram] = token
    return best


def napd_release(text, length):
    """The last entry of an argsort of the counts, candidates in the order in which they were first seen."""
    counts = {}
    for position in range(length, len(text)):
        row = counts.setdefault(text[position - length : position], {})
        row[text[position]] = row.get(text[position], 0) + 1
    return {gram: list(row)[np.argsort(list(row.values()), kind="stable")[-1]] for gram, row in counts.items()}


def lowest_id(text, length):
    """What neither does."""
    best = napd_release(text, length)
    for gram in best:
        after = [text[i] for i in range(length, len(text)) if text[i - length : i] == gram]
        best[gram] = min(token for token in after if after.count(token) == max(map(after.count, after)))
    return best


def test_the_two_releases_draft_different_tokens_after_a_tie():
    text = (0, 2, 0, 1, 0)
    assert (nasd_release(text, 1)[0,], napd_release(text, 1)[0,], lowest_id(text, 1)[0,]) == (2, 1, 1)
    assert ngram_table(2).observe(text).predict(text) == 2
    assert ngram_table(2, newest=True).observe(text).predict(text) == 1
    other = (0, 1, 0, 2, 0)
    assert (lowest_id(other, 1)[0,], napd_release(other, 1)[0,]) == (1, 2)


@given(texts, st.integers(1, 3))
def test_every_prediction_is_that_of_the_release(text, length):
    for newest, release in ((False, nasd_release), (True, napd_release)):
        table = ngram_table(length + 1, backoff=False, newest=newest).observe(text)
        assert {gram: table.predict(gram) for gram in table.counts} == release(text, length)


def test_tables_that_decide_a_tie_differently_are_different():
    """States of equal counts are not merged where the next draft differs."""
    one, other = ngram_table(2).observe((0, 2, 0, 1)), ngram_table(2).observe((0, 1, 0, 2))
    assert dict(one.counts[0,]) == dict(other.counts[0,])
    assert one.counts[0,] != other.counts[0,]
    assert one.predict((0,)) != other.predict((0,))
