"""``check_drafter``: a right drafter holds, and each planted bug is refuted by the check that names it."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import drafter_checks
from specverify.testing import SpeculationRefuted, UnusableSubject, check_drafter

pytestmark = pytest.mark.usefixtures("named_checks_alone")

SIZE = 3


def model(tokens):
    """The draft model: a pmf that depends on all tokens."""
    weights = np.array([1.0, 2.0, 3.0]) + np.array([sum(tokens), len(tokens), tokens[-1]]) % 4
    return weights / weights.sum()


def drafted(gamma, tokens, q=model, draw=lambda row: int(np.random.choice(SIZE, p=row)), stop=lambda row, token: False):  # noqa: NPY002
    """Draw up to gamma tokens from q, and report it."""
    found, rows = [], []
    while len(found) < gamma:
        rows.append(q((*tokens, *found)))
        found.append(draw(rows[-1]))
        if stop(rows[-1], found[-1]):
            break
    return found, np.array(rows)


def right(tokens, gamma):
    """Draw each draft from the model."""
    return drafted(gamma, tokens)


def confident(tokens, gamma):
    """Stop behind a token that the model is sure of: the token itself is kept."""
    return drafted(gamma, tokens, stop=lambda row, token: row.max() > 0.5)


def greedy(tokens, gamma):
    """Draft the likeliest, and say that nothing was drawn."""
    return drafted(gamma, tokens, draw=lambda row: int(row.argmax()))[0], None


def cold(tokens, gamma):
    """Wrong: drafts at temperature 1/2 are reported with q at temperature 1."""
    return drafted(gamma, tokens, draw=lambda row: int(np.random.choice(SIZE, p=row**2 / (row**2).sum())))  # noqa: NPY002


def argmax_with_q(tokens, gamma):
    """Wrong: the likeliest token, reported as if it had been drawn."""
    return drafted(gamma, tokens, draw=lambda row: int(row.argmax()))


def unlikely_dropped(tokens, gamma):
    """Wrong: a token that was drawn and is unlikely is taken back."""
    found, rows = drafted(gamma, tokens, stop=lambda row, token: row[token] < 0.3)
    keep = len(found) - (rows[-1][found[-1]] < 0.3)
    return found[:keep], rows[:keep]


def shifted(tokens, gamma):
    """Wrong: the rows of the next positions are reported."""
    found, rows = drafted(gamma, tokens)
    return found, np.array([*rows[1:], model((*tokens, *found))])


def stale(tokens, gamma):
    """Wrong in speed alone: the model never sees the last token."""
    return drafted(gamma, tokens, q=lambda text: model(text[:-1] or text))


def unnormalised(tokens, gamma):
    """Wrong: q is weights."""
    found, rows = drafted(gamma, tokens)
    return found, 2 * rows


def one_too_many(tokens, gamma):
    """Wrong: one more than asked for."""
    return drafted(gamma + 1, tokens)


def statuses(propose, **options):
    return {verdict.check: verdict.status for verdict in check_drafter(propose, on_fail=None, **options)}


@pytest.mark.thorough
@pytest.mark.parametrize("propose", [right, confident, greedy])
def test_a_right_drafter_holds(propose):
    assert set(statuses(propose, gammas=(1, 2)).values()) == {Status.HOLDS}


def test_a_right_drafter_reports_its_model():
    assert statuses(right, draft=model, gammas=(2,))["q_is_the_models"] is Status.HOLDS


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(
    ("propose", "check"),
    [
        (cold, "drafts_follow_q"),
        (argmax_with_q, "drafts_follow_q"),
        (unlikely_dropped, "drafts_follow_q"),
        (shifted, "drafts_follow_q"),
        (unnormalised, "drafts_are_supported"),
        (one_too_many, "gamma_is_respected"),
    ],
)
def test_a_planted_bug_is_refuted_by_the_check_that_names_it(propose, check):
    assert statuses(propose, gammas=(1, 2))[check] is Status.REFUTED


@pytest.mark.thorough
def test_a_stale_q_is_lossless_and_not_the_models():
    found = statuses(stale, gammas=(2,), draft=model)
    assert found["drafts_follow_q"] is Status.HOLDS
    assert found["q_is_the_models"] is Status.REFUTED


SHORT = [0.16666666666666666, 0.8333333333333333, 0.0]
"""A row whose cumulative sums end below 1: twice at 1 - 2^-53."""


def by_choices(draws):
    return draws.choices(range(3), SHORT)[0]


def by_sums(draws):
    u, total = draws.random(), 0.0
    for token, mass in enumerate(SHORT):
        total += mass
        if u < total:
            return token
    return len(SHORT) - 1


@pytest.mark.parametrize(("one", "edges"), [(by_choices, False), (by_sums, True)])
def test_a_token_that_only_rounding_of_a_sum_could_draw_is_a_note(one, edges):
    verdicts = check_drafter(lambda tokens, gamma: ([one(random) for _ in range(gamma)], [SHORT] * gamma))
    (verdict,) = (verdict for verdict in verdicts if verdict.check == "drafts_are_supported")
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    assert bool(verdict.figures.get("edges")) is edges


def test_a_token_of_no_probability_that_an_edge_draws_often_is_refuted():
    def propose(tokens, gamma):
        return [int(random.random() >= 1 - 1e-6) for _ in range(gamma)], [[1.0, 0.0]] * gamma

    verdicts = check_drafter(propose, on_fail=None)
    (verdict,) = (verdict for verdict in verdicts if verdict.check == "drafts_are_supported")
    assert verdict.status is Status.REFUTED
    assert verdict.figures["edge"] == pytest.approx(1e-6)


class Caching:
    """Drafts from the model after the tokens that it holds; ``common`` returns how many of them are kept for a text."""

    def __init__(self, common):
        """Hold nothing."""
        self.held, self.common = (), common

    def propose(self, tokens, gamma):
        """Return the drafts after the tokens, and the rows that they were drawn from."""
        kept = self.common(self.held, tokens)
        found, rows = drafted(gamma, self.held[:kept] + tokens[kept:])
        self.held = self.held[:kept] + tokens[kept:] + tuple(found)
        return found, rows


def as_far_as_equal(held, tokens):
    return next((at for at, pair in enumerate(zip(held, tokens, strict=False)) if pair[0] != pair[1]), 0)


@pytest.mark.parametrize(
    ("common", "status"),
    [(as_far_as_equal, Status.HOLDS), (lambda held, tokens: min(len(held), len(tokens)), Status.REFUTED)],
)
def test_quick_asks_for_texts_that_do_not_continue_the_last_one(common, status):
    """A cache that is only cut at the length of the text has the row of another text."""
    propose = Caching(common).propose
    (verdict,) = check_drafter(propose, draft=model, quick=True, checks=["q_is_the_models"], on_fail=None)
    assert verdict.status is status


def test_the_counterexample_can_be_checked_by_hand():
    with pytest.raises(SpeculationRefuted) as raised:
        check_drafter(cold, gammas=(1,), prompts=[(0,)], checks=["drafts_follow_q"])
    told = str(raised.value)
    assert "q of draft 1 = (0.142857, 0.428571, 0.428571)" in told
    assert "the drafts should begin (1,) with probability 0.428571, but do with 0.473684" in told


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([[0]], "it returned [[0]], expected (draft_tokens, q)"),
        (([0], [[0.5, 0.5], [0.5, 0.5]]), "it returned 1 drafts and 2 rows of q, expected"),
        (([2], [[0.5, 0.5]]), "it drafted token 2 of a vocabulary of 2"),
        (([-1], None), "it drafted token -1, expected token ids of at least 0"),
        (([0], [[float("nan"), 0.9]]), "row 0 of q is (nan, 0.9), expected finite probabilities"),
        (([0], [0.5]), "for q, expected"),
        ((["a"], None), "it returned ['a'], expected a sequence of new token ids"),
    ],
)
def test_an_answer_that_is_no_draft(answer, sentence):
    with pytest.raises(UnusableSubject) as raised:
        check_drafter(lambda tokens, gamma: answer, gammas=(1,))
    assert sentence in str(raised.value)


def test_a_drafter_that_ends_the_process_is_unusable():
    with pytest.raises(UnusableSubject, match=r"it ends the process: SystemExit: 1 \(test_drafter_checks.py"):
        check_drafter(lambda tokens, gamma: sys.exit(1), gammas=(1,))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_drafter(5), "the drafter is 5, expected something to call with 2 arguments"),
        (lambda: check_drafter(right, prompts=5), "prompts is 5, expected a sequence of prompts"),
        (lambda: check_drafter(right, prompts=[()]), "a prompt is (), expected a non-empty sequence of token ids"),
        (lambda: check_drafter(right, draft=5), "draft is 5, expected something to call with 1 argument"),
        (lambda: check_drafter(right, gamma=2), "check_drafter has no option 'gamma', did you mean gammas?"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as raised:
        call()
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "row"), [(cold, r"\(0\.\d+, 0\.\d+, 0\.\d+\)"), (argmax_with_q, r"\((0, )*1(, 0)*\)")]
)
def test_the_row_that_drafts_come_from_is_in_the_first_line(wrong, row):
    with pytest.raises(SpeculationRefuted, match=rf"draft 1 is drawn from {row}, expected q = \(0\.\d+, "):
        check_drafter(wrong, checks=["drafts_follow_q"])


SQUARED = (0.04 / 0.38, 0.09 / 0.38, 0.25 / 0.38)


@pytest.mark.parametrize(
    ("drawn", "rows", "said"),
    [
        ((0.2, 0.3, 0.5), [SQUARED], " = norm(row^2) of the row that is drawn from (a temperature of 0.5"),
        ((0.2, 0.3, 0.5), [(0.2, 0.3, 0.5), (0.6, 0.3, 0.1)], ", which is the q of draft 1"),
        ((0.2, 0.3, 0.5), [(0.3, 0.3, 0.4)], ""),
        ((0.5, 0.25, 0.25), [(0.4, 0.3, 0.3)], ""),
        ((1.0, 0.0, 0.0), [(0.0, 0.5, 0.5)], ""),
    ],
)
def test_the_refutation_names_how_q_and_the_draw_are_related(drawn, rows, said):
    clause = drafter_checks._cause(drawn, rows)
    assert clause.startswith(said)
    assert bool(clause) == bool(said)
