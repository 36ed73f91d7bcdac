"""Engines whose draft vocabulary is smaller than the target's: the token of a draft is known from the queries."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.queried_tokens import QueriedTokens, _queried
from specverify.laws.draws import Decision
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.paths import Path
from specverify.subjects.subject import Trace
from test_support.checks.recorded_rounds import coin, model
from test_support.subjects.engine_laws import law_verdict, probe_verdict

RNG = np.random.default_rng()
FACTOR, RESIDUAL, BONUS, CUT, ALWAYS = "a factor", "the residual", "the bonus", "p is cut", "always accepted"


def drawn(weights):
    """Return the index of a draw in proportion to ``weights``, by a lookup in cumulative sums."""
    sums = np.cumsum(weights)
    return int(min(np.searchsorted(sums, RNG.random() * sums[-1], side="right"), len(sums) - 1))


def chosen(weights):
    """Return the index of a draw in proportion to ``weights``, by a call that draws an index."""
    return int(RNG.choice(len(weights), p=weights))


def decoder(scenario, fault, drawn_draft=drawn):
    """Return an engine that never drafts the middle token: an index of the draft vocabulary has an offset.

    ``fault`` is "" or one of the faults above. ``drawn_draft(q)`` draws an index.
    """
    size = scenario.vocabulary
    kept = np.array([token for token in range(size) if token != size // 2])
    offsets = kept - np.arange(len(kept))

    def draft(text):
        q = scenario.draft(text)[kept]
        q = q / q.sum() if q.sum() > 0 else np.full(len(kept), 1 / len(kept))
        index, row = drawn_draft(q), np.zeros(size)
        row[kept] = q
        return index + int(offsets[index]), row

    def decode(prompt):
        text, end = tuple(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            drafts, rows = (), []
            while len(drafts) < min(2, end - len(text) - 1):
                token, row = draft(text + drafts)
                drafts, rows = (*drafts, token), [*rows, row]
            text += verified(text, drafts, rows)
        return text[len(prompt) :]

    def verified(text, drafts, rows):
        p = [scenario.target(text + drafts[:k]) for k in range(len(drafts) + 1)]
        for k, token in enumerate(drafts):
            row, q = p[k], rows[k] * (0.9 if fault == FACTOR else 1)
            if fault == CUT:
                row = np.where(q > 0, row, 0) if row[q > 0].sum() else row
                row = row / row.sum()
            if fault != ALWAYS and RNG.random() * q[token] >= row[token]:
                left = np.maximum(row - rows[k], 0)
                left = np.where(q > 0, left, 0) if fault == RESIDUAL else left
                return (*drafts[:k], drawn(left if left.sum() > 0 else row))
        bonus = np.where(np.arange(size) == size // 2, 0, p[-1]) if fault == BONUS else p[-1]
        return (*drafts, drawn(bonus if bonus.sum() > 0 else p[-1]))

    return decode


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (FACTOR, "drafts are accepted with probability min(1, 1.11 p/q), expected min(1, p/q): draft "),
        (RESIDUAL, "a rejected draft is replaced by a draw from max(p - q, 0) on the tokens with q > 0 alone, "),
        (CUT, "p is cut to the tokens with q > 0 and divided by their sum: draft "),
        (ALWAYS, "draft 1 (3) is accepted with probability 1; expected u < 0.304 = min(1, p/q)"),
        (BONUS, "the bonus token is drawn from p without token 2, divided by its sum again, or p cut to its 4 largest"),
    ],
)
def test_the_fault_of_an_engine_with_a_smaller_draft_vocabulary_is_named(fault, said):
    verdict = probe_verdict(lambda scenario: decoder(scenario, fault))
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.fault.startswith(said)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (FACTOR, "drafts are accepted with probability min(1, 1.11 p/q), expected min(1, p/q): draft "),
        (ALWAYS, "draft 1 (3) is accepted with probability 1; expected u < 0.304 = min(1, p/q)"),
    ],
)
def test_the_index_that_a_call_draws_is_not_taken_for_the_token(fault, said):
    verdict = probe_verdict(lambda scenario: decoder(scenario, fault, chosen))
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.fault.startswith(said)


def direct(tokens, pmf=(0.25, 0.75)):
    """Return the draw of an index after (0,), read with the token of each index in ``tokens``: its outcome, its pmf."""
    draw = coin(0.0, pmf[0])._replace(outcome=0, pmf=pmf, before=())
    paths = [Path((0,), mass, (index,), (Decision(("choice",), pmf, index),)) for index, mass in enumerate(pmf)]

    def trace_of(path):
        queries = (("draft", (0,)), ("draft", (0, tokens[path.choices[0]])))
        return Trace((((0,), (2,)),), queries, model({}), model({}), (0, 1))

    known = QueriedTokens(KeptPaths(None, paths), trace_of, 3, {})
    (read,) = known.added([draw], trace_of(paths[0]))
    return read.outcome, read.pmf


def test_an_index_is_read_as_the_token_that_is_queried_after_it():
    assert direct({0: 2, 1: 1}) == (2, (0, 0.75, 0.25))


@pytest.mark.parametrize("tokens", [{0: 0, 1: 1}, {0: 2, 1: 2}, {0: 2, 1: 5}])
def test_an_index_is_left_if_it_is_the_token_or_no_map_of_tokens_shows(tokens):
    assert direct(tokens) == (0, (0.25, 0.75))


def queried(*, replaced=False, row=(0.5, 0.3, 0.2)):
    """Return what the queries show of a draft after (0,); ``row`` is p after it."""
    queries = (
        [("draft", (0,)), ("target", (0,)), ("target", (0, 2))]
        if replaced
        else [
            ("draft", (0,)),
            ("draft", (0, 2)),
            ("target", (0,)),
        ]
    )
    trace = Trace((((0,), (2,)),), tuple(queries), model({}), model({(0,): row}), (0, 1, 1))
    items = [coin(0.0, 0.4)._replace(widths=(0.4, 0.6), before=())]
    return [(token.token, token.is_doubtful) for _, token in _queried(items, trace)]


def test_a_token_that_may_replace_the_draft_is_doubtful():
    assert queried() == [(2, False)]
    assert queried(replaced=True) == [(2, False)]
    assert queried(replaced=True, row=(0.5, 0.0, 0.5)) == [(2, True)]


def test_a_draw_after_a_query_to_the_target_is_no_draft():
    """With p known, the draw may be the test of a draft that is chosen without a draw."""
    queries = (("target", (0,)), ("draft", (0,)), ("draft", (0, 2)))
    trace = Trace((((0,), (2,)),), queries, model({}), model({}), (0, 0, 1))
    assert not list(_queried([coin(0.0, 0.4)._replace(widths=(0.4, 0.6))], trace))


def test_a_chosen_draft_that_is_tested_with_a_whole_row_is_not_called_a_cut_of_p():
    """The draft is always token 0, so q should be 1; the engine tests it with a smaller q, and mostly keeps it."""

    def engine(scenario):
        table = np.arange(scenario.vocabulary) + 1.0
        token, q = 0, table / table.sum()

        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                p = scenario.target(text)
                if len(text) + 1 < end and RNG.random() * q[token] < p[token]:
                    text += (token, drawn(scenario.target((*text, token))))
                elif len(text) + 1 < end:
                    left = np.maximum(p - q, 0)
                    text += (drawn(left if left.any() else p),)
                else:
                    text += (drawn(p),)
            return text[len(prompt) :]

        return decode

    verdict = law_verdict(engine, SCENARIOS[2:3])
    assert verdict.status is Status.REFUTED
    assert "is cut to the tokens" not in verdict.counterexample.fault
