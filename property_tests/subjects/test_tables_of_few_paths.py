"""Engines that draw little, or nothing, have few paths in each table, so they are examined in many more."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from specverify.base.verdict import DoesNotApply, Status
from specverify.checks import Conditions, check_named
from specverify.laws.engine_scenarios import TABLES_OF_FEW_PATHS, TABLES_OF_ONE_PATH
from specverify.subjects.engine_factories import WithVocabulary
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import TREES_IN_TURN
from specverify.subjects.subject import EngineProgram, FewPaths
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


def without_the_least(scenario, floor):
    """Return an engine that tests the most probable of two tokens with p; it never emits one with q below ``floor``."""

    def decode(prompt):
        text, end = tuple(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            q, p = scenario.draft(text), scenario.target(text)
            first, second = sorted(range(2), key=lambda token: -q[token])
            excluded = q[second] < floor
            text += (first if excluded or random.random() < p[first] else second,)
        return text[len(prompt) :]

    return decode


def drafting_trees(wrong=None, **fields):
    """Return the factory of an engine of batches that drafts the three most probable tokens at each of three levels.

    ``wrong(row)`` states whether p of the children of a third sibling is that of the first sibling's children.
    """

    def make(scenario):
        def best(text):
            q = scenario.draft(text)
            return sorted((token for token in range(len(q)) if q[token]), key=lambda token: -q[token])[:3]

        def decode(row, prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                begin = len(text)
                while len(text) < min(end, begin + 4):
                    seen = text
                    if wrong is not None and wrong(row) and len(text) == begin + 2:
                        first, *others = best(text[:-1])
                        seen = (*text[:-1], first) if text[-1:] == tuple(others[1:]) else text
                    p = scenario.target(seen)
                    text += tuple(random.choices(range(len(p)), p))
                    if text[-1] == scenario.eos or text[-1] not in best(text[:-1]):
                        break
                if text[-1] == scenario.eos:
                    break
            return text[len(prompt) :]

        return Made(lambda prompts: [decode(*each) for each in enumerate(prompts)], batched=True, **fields)

    return make


def of_requests(situation):
    """Return whether it is an engine that serves several requests."""
    return getattr(situation, "program", situation).alone is not None


def failed(make, kind, several=True):
    """Return whether the law is wrong in the situations of ``kind`` that apply; with ``several``, also of requests."""
    cases = [case for case in LAW.cases(made_subject(make, "it")) if isinstance(case.situation, kind)]
    cases = [case for case in cases if several or not of_requests(case.situation)]
    found = []
    for case in cases:
        with suppress(DoesNotApply):
            found.append(case.examine(Conditions(explained=False)).failed)
    return found


def test_a_fault_that_few_tables_show_is_refuted_and_the_right_engine_holds():
    assert not any(failed(greedy(RARE), EngineProgram))
    assert any(failed(greedy(RARE), FewPaths))
    assert failed(greedy(), FewPaths) == [False] * len(TABLES_OF_ONE_PATH + TABLES_OF_FEW_PATHS + TREES_IN_TURN)


@pytest.mark.parametrize(("floor", "wrong"), [(0, False), (0.1, True)])
def test_a_token_that_the_draft_all_but_excludes_is_emitted(floor, wrong):
    found = failed(lambda scenario: without_the_least(scenario, floor), FewPaths, several=False)
    assert len(found) == len(TABLES_OF_FEW_PATHS)
    assert any(found) is wrong


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("wrong", "status", "stops"),
    [(None, Status.HOLDS, True), (bool, Status.REFUTED, False), (bool, Status.REFUTED, True)],
)
@pytest.mark.usefixtures("unexplained", "named_checks_alone")
def test_a_fault_in_whole_trees_of_later_rows_is_refuted(wrong, status, stops):
    (verdict,) = check_engine(drafting_trees(wrong, stops=stops), quick=True, on_fail=None, checks=["law_is_target"])
    assert verdict.status is status


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
    assert not_drawing - drawing >= len(TABLES_OF_ONE_PATH) - 1


def sometimes_sampling(scenario):
    """Return an engine that draws in all tables but the first, which has the shortest prompt and two tokens."""
    greedy_one, sampling_one = greedy()(scenario), sampling(scenario)
    return greedy_one if (scenario.vocabulary, len(scenario.prompt)) == (2, 1) else sampling_one


def test_a_table_with_many_paths_is_left_out_though_the_first_has_one():
    found = failed(sometimes_sampling, FewPaths, several=False)
    assert 0 < len(found) < len(TABLES_OF_ONE_PATH)
    assert not any(found)


def test_neither_a_constraint_nor_a_large_vocabulary_makes_these_tables_expensive():
    def constrained(scenario):
        made = greedy()(scenario)
        return made._replace(allowed=lambda new: [True] * scenario.vocabulary)

    def tables(make):
        situations = made_subject(make, "it").situations
        return [item for item in situations if isinstance(item, FewPaths) and not of_requests(item)]

    assert len(tables(constrained)) == len(TABLES_OF_FEW_PATHS)
    assert len(tables(WithVocabulary(greedy(), 1000))) == 0
    large = made_subject(WithVocabulary(drafting_trees(stops=True), 1000), "it").situations
    assert not any(isinstance(item, FewPaths) for item in large)
    assert len(tables(WithVocabulary(greedy(), 6))) == len(TABLES_OF_ONE_PATH + TABLES_OF_FEW_PATHS)
