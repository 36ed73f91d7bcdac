"""Drafts that are guesses verified by the draft model: its test is not taken for the target's."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.scenarios import Scenario
from specverify.report.prose import first_sentence
from specverify.testing import check_engine
from test_support.subjects.engine_laws import law_verdict

OF_THREE = Scenario("generic", 3, (0, 1, 0), 3, seed=2)


def rest_of(q, guess):
    left = q.copy()
    left[guess] = 0.0
    return left / left.sum()


def engine(rest=rest_of, kept_row=lambda q, guess: q):
    """Return the factory of an engine whose drafts are verified guesses: the last token of the text, repeated.

    ``rest(q, guess)`` is the pmf of the draft that replaces a rejected guess, and ``kept_row(q, guess)`` the row that
    the target's test uses for an accepted one.
    """

    def make(scenario):
        rng = np.random.default_rng()

        def drawn(pmf):
            return int(rng.choice(len(pmf), p=pmf))

        def drafted(text):
            q, guess = np.array(scenario.draft(text), float), text[-1]
            if rng.random() < q[guess]:
                return guess, kept_row(q, guess)
            return drawn(rest(q, guess)), q

        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                drafts, rows = (), []
                for _ in range(min(2, end - len(text) - 1)):
                    token, q = drafted(text + drafts)
                    drafts, rows = (*drafts, token), [*rows, q]
                for draft, q in zip(drafts, rows, strict=True):
                    p = np.array(scenario.target(text), float)
                    if rng.random() * q[draft] >= p[draft]:
                        left = np.maximum(p - q, 0)
                        text += (drawn(left / left.sum()),)
                        break
                    text += (draft,)
                else:
                    text += (drawn(np.array(scenario.target(text), float)),)
            return text[len(prompt) :]

        return decode

    return make


def test_the_right_cascade_holds():
    check_engine(engine(), quick=True, checks=["law_is_target"])


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"rest": lambda q, guess: q}, "is drawn from q = "),
        ({"rest": lambda q, guess: np.eye(len(q))[0] / 2 + q / 2}, "is drawn from "),
        ({"kept_row": lambda q, guess: np.eye(len(q))[guess]}, "draft 2, token 2 (p = 0.444, q = 0.2) is accepted"),
    ],
)
def test_the_fault_of_a_cascade_is_named_and_not_its_inner_test(faults, said):
    sentence = first_sentence(law_verdict(engine(**faults), [OF_THREE]))
    assert said in sentence
    if "rest" in faults:
        assert "after the guess 0 is rejected (u >= q = " in sentence
        assert "expected the rest of q = (0, " in sentence
