"""Rounds of an engine: rows of the round before."""

from __future__ import annotations

import functools
import itertools
import random
import re

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.engine_rounds import drawn_again, engine_rounds, without_other_cause
from specverify.checks.explaining.readings import Models
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.report.prose import failure
from specverify.testing import SpeculationRefuted, check_engine
from test_support.checks.recorded_rounds import P, Q, coin, model, token
from test_support.subjects.engine_laws import law_verdict


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


def penalised(text):
    odds = [share * 0.6 ** text.count(token) for token, share in enumerate((0.4, 0.3, 0.2, 0.1))]
    return [share / sum(odds) for share in odds]


def choose(row):
    return random.choices(range(4), row)[0]


def plain():
    text = []
    for _ in range(3):
        text.append(choose(penalised(text)))
    return text


def with_bonus_from(bonus):
    """Return an engine that decodes two drafts and a bonus, which it draws from ``bonus(drafts)``."""

    def engine():
        drafts = []
        for _ in range(2):
            p, q = penalised(drafts), (0.25, 0.25, 0.25, 0.25)
            drafted = choose(q)
            if random.random() >= p[drafted] / q[drafted]:
                text = [*drafts, choose([max(a - b, 0) for a, b in zip(p, q, strict=True)])]
                while len(text) < 3:
                    text.append(choose(penalised(text)))
                return text
            drafts.append(drafted)
        return [*drafts, choose(bonus(drafts))]

    return engine


def test_a_penalty_that_does_not_count_an_earlier_draft_is_told_by_its_factor():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(with_bonus_from(lambda drafts: penalised(drafts[1:])), plain, checks=["law_is_target"])
    first = str(raised.value).splitlines()[0]
    assert "is drawn from p with 1.67 times the odds of token " in first
    assert ", as if a penalty did not count it, = (" in first


def test_a_row_without_its_mask_is_told_by_the_excluded_token():
    def masked(drafts, *, mask=True):
        shares = (0.15, 0.2, 0.25, 0.4) if drafts else (0.4, 0.3, 0.2, 0.1)
        row = [0.0 if mask and token in drafts else share for token, share in enumerate(shares)]
        return [share / sum(row) for share in row]

    def engine(mask):
        first = choose((0.25, 0.25, 0.25, 0.25))
        p = masked([])
        if random.random() >= 4 * p[first]:
            first = choose([max(mass - 0.25, 0) for mass in p])
            return [first, choose(masked([first]))]
        return [first, choose(masked([first], mask=mask))]

    def plain():
        first = choose(masked([]))
        return [first, choose(masked([first]))]

    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: engine(mask=False), plain, checks=["law_is_target"])
    assert re.search(r": p with token \d, which no mask excludes$", str(raised.value).splitlines()[0])
    assert re.search(r"drawn from p with token \d, which no mask excludes, = \(", str(raised.value))
    check_engine(lambda: engine(mask=True), plain, checks=["law_is_target"])


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


def lookup_engine(scenario, *, draws_again):
    """Return an engine that drafts what followed the last token before, and verifies by samples of p."""

    def decode(prompt):
        text = list(prompt)
        while (left := len(prompt) + scenario.horizon - len(text)) > 0:
            earlier = [at + 1 for at, one in enumerate(text[:-1]) if one == text[-1]]
            drafts = text[earlier[-1] :][: min(2, left - 1)] if earlier else []
            rows = [scenario.target((*text, *drafts[:i])) for i in range(len(drafts) + 1)]
            for row, draft in itertools.zip_longest(rows, drafts):
                drawn = random.choices(range(len(row)), weights=list(map(float, row)))[0]
                wrong = drawn != draft
                if wrong and draft is not None and draws_again:
                    drawn = random.choices(range(len(row)), weights=list(map(float, row)))[0]
                text.append(drawn)
                if wrong:
                    break
        return text[len(prompt) :]

    return decode


def test_a_sample_that_does_not_match_the_draft_and_is_drawn_again_is_named():
    """No draw chooses these drafts, and in a path that emits the draft after all they look as if surely accepted."""
    said = r"new token \d+ is drawn from p twice: the first draw, \d+ \(.*\), is discarded, and \d+ \(.*\) is emitted"
    wrong, right = (
        law_verdict(functools.partial(lookup_engine, draws_again=again), SCENARIOS[10:11]) for again in (True, False)
    )
    assert re.search(said, wrong.counterexample.fault)
    assert "accepted" not in failure(wrong)
    assert right.status is Status.HOLDS


def test_draws_of_an_engine_without_recorded_queries_are_at_no_known_position():
    again = [path_of_two_draws(0, 1, 1), path_of_two_draws(1, 0, 0)]
    unknown = [(draws, new, models._replace(prompt=(), queries=())) for draws, new, models in again]
    assert drawn_again(unknown) == ""


def test_rows_of_other_texts_beside_a_named_rule_are_not_told_unless_the_rule_has_them():
    by = "as by p after (0, 1) (without the last token)"
    words = f"drafted 0, accepted (with probability 1, {by}; expected u < 0.7 = p/q)"
    plain = "drafted 0, accepted (with probability 1; expected u < 0.7 = p/q)"
    assert without_other_cause(words, "drafts are accepted by one random number for all drafts") == plain
    assert without_other_cause(words, "draft 2 is tested with p after (0, 1) (without the last token)") == words
    after = (
        "bonus 2 (drawn from p after (0, 2) (which keeps the rejected draft token 2), expected p after (0, 4) = (0, 1))"
    )
    row = "bonus 2 (drawn from another row, expected p after (0, 4) = (0, 1))"
    assert without_other_cause(after, "the bonus token is drawn from the row of p before the last draft") == row
    assert without_other_cause(after, "p after (0, 2) (which keeps the rejected draft token 2)") == after
    coin = "rejected (u >= 0.2; expected 0.5 = min(1, p/q); this is p and q after (0, 1) (another text))"
    assert without_other_cause(coin, "x") == "rejected (u >= 0.2; expected 0.5 = min(1, p/q))"
    cut = (
        "replaced by 3 (drawn from p cut to its 4 largest entries (as by top-k) = (0.5, 0.5), expected p = (0.2, 0.8))"
    )
    row = "replaced by 3 (drawn from (0.5, 0.5), expected p = (0.2, 0.8))"
    assert without_other_cause(cut, "a rejected draft is replaced by a draw from the last row of p") == row
    assert without_other_cause(cut, "the row is p cut to its 4 largest entries (as by top-k), expected p") == cut
    plain = "replaced by 1 (drawn from p = (0.2, 0.8), expected q)"
    assert without_other_cause(plain, "x") == plain


def paths_with_certain_first_test(early):
    """Return paths of two drafts, of which the first surely passes, and the second is tested with the row of the first.

    ``early``: whether both drafts are queried before the target, so that they are of one round.
    """
    p = {(0,): (0.1, 0.3, 0.6), (0, 2): (0.5, 0.2, 0.3), (0, 2, 1): (0.4, 0.3, 0.3), (0, 2, 0): (0.2, 0.2, 0.6)}
    q = {(0,): (0.2, 0.3, 0.5), (0, 2): (0.3, 0.6, 0.1)}
    target, draft = (lambda text, rows=rows: np.array(rows.get(text, (0.2, 0.3, 0.5))) for rows in (p, q))
    names = ("draft", "draft", "target", "target") if early else ("draft", "target", "draft", "target")
    texts = ((0,), (0, 2), (0,), (0, 2)) if early else ((0,), (0,), (0, 2), (0, 2))
    moments = (0, 1, 2, 2) if early else (0, 1, 1, 2)
    models = Models(target, draft, (0,), 3, queries=tuple(zip(moments, names, texts, strict=True)))
    result = []
    for second in (1, 0):
        after = (0, 2, second)
        draws = [token(2, *q[0,]), token(second, *q[0, 2])]
        seen = min(1.0, p[0, 2][second] / q[0,][second])
        draws += [coin(0.0, seen)] if seen < 1 else []
        draws.append(token(0, *p[after]))
        draws = [item._replace(before=(0,) * at) for at, item in enumerate(draws)]
        result.append((draws, (2, second, 0), models))
    return result


def test_two_drafts_before_a_query_to_the_target_are_of_one_round():
    for early, rounds in ((True, 1), (False, 2)):
        readings = engine_rounds(paths_with_certain_first_test(early)).readings
        assert [len(reading.rounds) for reading in readings] == [rounds] * 2


def test_the_row_that_a_token_is_drawn_from_is_not_replaced_by_the_expected_one():
    words = "replaced by 2 (drawn from (0.3, 0.7), expected norm(max(p - q, 0)) = (1, 0))"
    assert without_other_cause(words, "a rejected draft is replaced by a draw from norm(|p - q|)") == words


@pytest.mark.parametrize("ahead", [False, True])
def test_a_program_without_a_query_ahead_of_its_draws_drafts_nothing(ahead):
    """It ends one token early. With ``ahead`` the target is queried with a token that no draw produced before."""
    queries = ((0, "target", (0,)), (0, "target", (0, 1))) if ahead else ((0, "target", (0,)), (1, "target", (0, 1)))
    models = Models(model(P), None, (0,), 3, queries=queries)
    paths = [([token(first, 0.5, 0.5)], (first,), models) for first in (0, 1)]
    assert any(engine_rounds(paths).readings) == ahead
