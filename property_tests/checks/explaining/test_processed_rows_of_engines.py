"""Counterexamples of engines whose plain call processes the rows of the target."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.checks.explaining.engine_counterexamples import has_law_of_target
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import Trace

SETTING = "generic-v2-p010-h2-s0"


class Penalised:
    """Halves the weight of each token that is among the new ones."""

    def __init__(self, scenario, forgets):
        """Decode with the models of ``scenario``. ``forgets``: a rejected draft is not counted as a new token."""
        self.scenario, self.forgets, self.rng = scenario, forgets, np.random.default_rng()

    def row(self, model, text, new):
        """Return the row of ``model`` after ``text``, with the weights of the tokens ``new`` halved."""
        weights = np.array([float(mass) / (1 + (token in new)) for token, mass in enumerate(model(text))])
        return weights / weights.sum()

    def drawn(self, weights):
        """Return a token drawn in proportion to ``weights``."""
        return int(self.rng.choice(len(weights), p=weights / weights.sum()))

    def plain(self, prompt):
        """Return new tokens that are drawn one by one."""
        text = tuple(prompt)
        while len(text) < len(prompt) + self.scenario.horizon:
            text = (*text, self.drawn(self.row(self.scenario.target, text, text[len(prompt) :])))
        return list(text[len(prompt) :])

    def fast(self, prompt):
        """Return new tokens, each drafted unless it is the last one."""
        text, counted = tuple(prompt), []
        while (left := len(prompt) + self.scenario.horizon - len(text)) > 0:
            p = self.row(self.scenario.target, text, counted)
            if left == 1:
                text = (*text, self.drawn(p))
                break
            q = self.row(self.scenario.draft, text, counted)
            draft = self.drawn(q)
            kept = self.rng.random() * q[draft] < p[draft]
            text = (*text, draft if kept else self.drawn(np.maximum(p - q, 0)))
            counted += [text[-1]] if kept or self.forgets else [text[-1], draft]
        return list(text[len(prompt) :])


@cache
def verdict_of(*, forgets):
    """Return the verdict about the law of one setting."""

    def make(scenario):
        engine = Penalised(scenario, forgets)
        return Made(engine.fast, engine.plain)

    subject = made_subject(make, "an engine")
    one = tuple(program for program in subject.programs if program.name == SETTING)
    return run_check(subject.with_programs(one), check_named("law_is_target"), Checklist(()))


def test_rejected_drafts_that_are_forgotten_hold():
    assert verdict_of(forgets=True).status is Status.HOLDS


def test_a_row_that_is_right_after_a_penalty_is_not_named_as_a_fault():
    """After an accepted draft the row is the penalised one, which is right; the row of the model is another."""
    verdict = verdict_of(forgets=False)
    assert verdict.status is Status.REFUTED
    said = (
        "after a rejection, p has other odds of the rejected draft alone (token 2), as if a penalty still counted it: "
    )
    assert verdict.counterexample.fault.startswith(said)


def test_the_rows_of_p_in_a_message_are_those_of_the_call_without_speculation():
    example = verdict_of(forgets=False).counterexample
    case, *rows = example.let
    assert case.endswith("; p as in the call without speculation")
    penalised = "p = (0.21, 0.0247, 0.173, 0.272, 0.321)"
    assert f"after (0, 0): {penalised}" in rows
    assert f", expected {penalised} (in the first round, the rows are right)" in example.fault


@pytest.mark.parametrize(("penalised", "expected"), [(False, True), (True, False)])
def test_the_law_of_a_plain_call_is_compared_with_the_rows_of_the_target(penalised, expected):

    row = np.array([0.25, 0.75])
    second = np.array([[0.4, 0.6], [0.5, 0.5]]) if penalised else np.array([row, row])
    law = {(one, other): row[one] * second[one][other] for one in range(2) for other in range(2)}
    trace = Trace((((0,), (1, 1)),), (), None, lambda text: row)
    assert has_law_of_target(trace, law, 2) is expected


def windowed(length):
    """Return a function that creates engines: decoding reads the last three tokens alone, the fast call ``length``."""

    def make(scenario):
        def decoded(prompt, window):
            text = tuple(prompt)
            for _ in range(scenario.horizon):
                row = scenario.target(text[-window:])
                text = (*text, int(np.random.default_rng().choice(len(row), p=row)))
            return list(text[len(prompt) :])

        return Made(lambda prompt: decoded(prompt, length), lambda prompt: decoded(prompt, 3))

    return make


@pytest.mark.parametrize(("length", "said"), [(2, "1 token too few"), (4, "1 token too many"), (3, "")])
def test_a_sliding_window_of_another_length_is_compared_with_that_of_decoding(length, said):
    subject = made_subject(windowed(length), "an engine")
    certain = tuple(one for one in subject.programs if one.name == "certain-v4-p0-h16-s31")
    verdict = run_check(subject.with_programs(certain), check_named("law_is_target"), Checklist(()))
    example = verdict.counterexample
    assert verdict.status is (Status.REFUTED if said else Status.HOLDS)
    assert example is None if not said else example.fault.startswith(f"the target's context has {said}: new token ")
