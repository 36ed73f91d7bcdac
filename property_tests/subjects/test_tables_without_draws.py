"""Engines that draw nothing have one path in each table, so they are examined in many more."""

from __future__ import annotations

import random

import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.subjects.made_engine import RANDOM_TABLES, made_subject
from specverify.subjects.subject import Drawless, EngineProgram
from specverify.testing import Made, check_engine

LAW = check_named("law_is_target")
GAMMA = 3
RARE = (1, 0, 2)


def most_probable(row):
    return max(range(len(row)), key=row.__getitem__)


def greedy(wrong=None):
    """Return the factory of a greedy engine that accepts any possible draft after the three tokens ``wrong``."""

    def make(scenario):
        def plain(prompt):
            text = tuple(prompt)
            for _ in range(scenario.horizon):
                text += (most_probable(scenario.target(text)),)
            return text[len(prompt) :]

        def speculative(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                drafts = text
                for _ in range(min(GAMMA, end - len(text) - 1)):
                    drafts += (most_probable(scenario.draft(drafts)),)
                for token in drafts[len(text) :]:
                    p = scenario.target(text)
                    if token != most_probable(p) and (p[token] == 0 or text[-3:] != wrong):
                        break
                    text += (token,)
                text += (most_probable(scenario.target(text)),)
            return text[len(prompt) :]

        return Made(speculative, plain)

    return make


def sampling(scenario):
    """Return an engine that draws each token from p."""

    def decode(prompt):
        text = tuple(prompt)
        for _ in range(scenario.horizon):
            p = scenario.target(text)
            text += tuple(random.choices(range(len(p)), p))
        return text[len(prompt) :]

    return Made(decode, decode)


def failed(make, kind):
    """Return whether the law is wrong in the situations of ``kind``, for each of them that is not too large."""
    cases = (case for case in LAW.cases(made_subject(make, "it")) if isinstance(case.situation, kind))
    return [case.examine(Conditions(explained=False)).failed for case in cases]


def test_a_fault_that_few_tables_show_is_refuted_and_the_right_engine_holds():
    assert not any(failed(greedy(RARE), EngineProgram))
    assert any(failed(greedy(RARE), Drawless))
    assert failed(greedy(), Drawless) == [False] * len(RANDOM_TABLES)


@pytest.mark.parametrize(("wrong", "status"), [(None, Status.HOLDS), (RARE, Status.REFUTED)])
def test_the_quick_plan_has_these_tables(wrong, status):
    (verdict,) = check_engine(greedy(wrong), quick=True, on_fail=None, checks=["law_is_target"])
    assert verdict.status is status


def test_the_tables_do_not_count_for_an_engine_that_draws():
    verdicts = [
        check_engine(make, quick=True, on_fail=None, checks=["law_is_target"])[-1] for make in (sampling, greedy())
    ]
    assert [verdict.status for verdict in verdicts] == [Status.HOLDS] * 2
    drawing, not_drawing = (verdict.figures["cases"] for verdict in verdicts)
    assert not_drawing - drawing >= len(RANDOM_TABLES) - 1
