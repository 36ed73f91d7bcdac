"""The quick plan: the same cases on every machine, no clock in it, and what it refutes."""

from __future__ import annotations

import random
import time
from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import EXACT_CHECKS, Conditions, check_named
from specverify.laws.certain_tables import CERTAIN
from specverify.laws.deep_scenarios import AFTER_MANY_REJECTIONS, QUICK_SCENARIOS, has_last_rows_open
from specverify.mutants.made_engines import one_by_one, serving
from specverify.mutants.numpy_verifiers import one_row
from specverify.run import quick, verify
from specverify.run.catalogue import find_subject
from specverify.run.quick import RunLimits, RunsTaken, in_quick, most_runs, name_of_case, quick_cases, quick_plans
from specverify.run.verify import Checklist, run_check
from specverify.subjects import remembered_calls
from specverify.subjects.forms import BATCHED
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import AT_ONCE, IN_TURN
from specverify.subjects.verifier import verifier_subject
from specverify.testing import (
    KernelConvention,
    Made,
    SpeculationRefuted,
    SpeculationUndecided,
    check_engine,
    check_kernel,
    check_verifier,
)
from specverify.trust.quick_power import RIGHT

LAW = check_named("law_is_target")


def planned(verdicts):
    """Return check -> the cases that its verdict says were planned and examined."""
    return {verdict.check: verdict.figures["planned"] for verdict in verdicts}


@pytest.mark.thorough
def test_two_runs_examine_the_same_cases_and_say_which(monkeypatch):
    first = check_verifier(one_row, quick=True)
    later = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(later)))  # a second passes at every look at the clock
    again = check_verifier(one_row, quick=True, timeout=1e7)
    assert planned(first) == planned(again)
    assert {verdict.status for verdict in (*first, *again)} == {Status.HOLDS}
    law = next(verdict for verdict in first if verdict.check == LAW.name)
    cases = [name_of_case(case) for case in quick_cases("row", LAW, LAW.cases(RIGHT["row"]())).cases]
    assert law.figures["planned"] == [", ".join(name) for name in cases]
    assert law.figures["cases"] == len(cases)


@pytest.mark.parametrize("kind", sorted(quick_plans()))
def test_every_case_of_a_plan_is_one_of_its_kind(kind):
    """Rows of the registry end texts, and a round that is given does not; a declared law is asked where others are."""
    subjects, plan = [RIGHT[kind]()], quick_plans()[kind]
    subjects += [find_subject("reference:speculative-sampling")] * (kind == "decoder")
    for check in EXACT_CHECKS:
        here = subjects if check.name in plan else []
        like = LAW if check.name == "law_is_declared" else check
        names = {name_of_case(case) for subject in here for case in like.cases(subject)}
        ends = {("as given", where) for _, where in names if kind == "decoder"}
        assert set(plan.get(check.name, ())) <= names | ends
    assert len(plan[LAW.name]) >= 8


def test_the_plan_of_engines_has_an_open_batch_of_like_prompts_and_a_conversation():
    names = {name for _, name in quick_plans()["engine"][LAW.name]}
    batches = [item for item in AT_ONCE if not item.scenario.shape.startswith(CERTAIN)]
    assert names & {item.name for item in batches if len({each.prompt for each in item.each}) < len(item.each)}
    assert names & {item.name for item in IN_TURN}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "fault"),
    [(serving, "copies share a round"), (serving, "slots of others"), (one_by_one, "never emptied")],
)
def test_quick_refutes_engines_whose_requests_meet(make, fault):
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_engine(partial(make, fault), quick=True, checks=[LAW.name])


@pytest.mark.thorough
def test_quick_holds_the_engine_without_a_fault():
    [law] = check_engine(lambda scenario: serving("", scenario), quick=True, checks=[LAW.name])
    assert law.status is Status.HOLDS
    assert any(" beside " in name for name in law.figures["planned"])
    assert any(", then " in name for name in law.figures["planned"])


def test_a_case_beyond_its_runs_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr(quick, "OTHER_LIMITS", quick.OTHER_LIMITS._replace(of_case=10))
    subject = verifier_subject(one_row, "one row")
    verdict = run_check(subject, LAW, Checklist((LAW,), quick=True))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["notes"][-1].startswith("left out, with more runs each than 10: gamma=")
    assert len(verdict.figures["planned"]) == verdict.figures["cases"] < len(quick_plans()["row"][LAW.name])
    monkeypatch.setattr(quick, "OTHER_LIMITS", quick.OTHER_LIMITS._replace(of_case=1))
    held = run_check(subject._replace(scenarios=subject.scenarios[:1]), LAW, Checklist((LAW,), quick=True))
    assert held.status is Status.UNKNOWN
    assert "none of its cases was followed within 1 runs" in held.statement


def test_an_engine_of_many_runs_is_examined_in_its_small_cases(monkeypatch):
    """The limits count runs of engines, of one case and of all cases; after them only small cases are examined."""
    monkeypatch.setattr(quick, "ENGINE_LIMITS", RunLimits(30, 100, 5, "all cases"))
    subject = RIGHT["engine"]()
    cases = [case for case in quick_cases("engine", LAW, LAW.cases(subject)).cases if hasattr(case.situation, "split")]
    programs = [case for case in cases if case.situation.split is None]
    chosen = quick.ChosenCases(programs[:10], 0)
    monkeypatch.setattr(verify, "quick_cases", lambda *_: chosen)
    verdict = run_check(subject, LAW, Checklist((LAW,), quick=True))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["notes"][-1].startswith("left out, with more runs each than 30 (5 after 100 of all cases): ")
    assert 0 < len(verdict.figures["planned"]) < len(programs[:10])
    assert [most_runs(programs[0], Conditions(), RunsTaken(used)) for used in (0, 80, 98, 160)] == [30, 20, 5, 5]


def test_cases_with_certain_tokens_alone_hold_nothing(monkeypatch):
    """An engine that draws in a loop is followed where its tokens are certain, and nowhere else."""
    subject = made_subject(partial(one_by_one, "residual of the target"), "wrong")
    by_name = {name_of_case(case)[1]: case for case in LAW.cases(subject)}
    certain = next(case for name, case in by_name.items() if name.startswith(CERTAIN))
    monkeypatch.setattr(quick, "ENGINE_LIMITS", quick.ENGINE_LIMITS._replace(of_case=5))
    chosen = quick.ChosenCases([certain, by_name["generic-v2-p010-h2-s0"]], 0)
    monkeypatch.setattr(verify, "quick_cases", lambda *_: chosen)
    verdict = run_check(subject, LAW, Checklist((LAW,), quick=True))
    assert verdict.status is Status.UNKNOWN
    assert "none of its cases with drafts and random tokens was followed within 5 runs: generic-v2" in verdict.statement


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("wrong", [True, False])
def test_a_verifier_that_draws_in_a_loop_takes_few_runs_and_does_not_hold(wrong, monkeypatch):
    """It draws until a token is accepted: all but its laws without drafts have more paths than any limit."""
    rng, calls = np.random.default_rng(), []

    def drawn(row):
        while True:
            token = int(rng.integers(len(row)))
            if rng.random() < row[token]:
                return token

    def verify(p, q, draft_tokens):
        calls.append(1)
        for i, token in enumerate(draft_tokens):
            if rng.random() * q[i][token] >= p[i][token]:
                residual = p[i] if wrong else np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], drawn(residual / residual.sum())]
        return [*draft_tokens, drawn(p[-1])]

    monkeypatch.setattr(quick, "OTHER_LIMITS", RunLimits(500, 500, 50, "skipped cases"))
    monkeypatch.setattr(remembered_calls, "MOST_LOST_PATHS", 500)
    monkeypatch.setattr(remembered_calls, "MOST_PATHS", 100)
    verdict = run_check(verifier_subject(verify, "loop"), LAW, Checklist((LAW,), quick=True))
    assert verdict.status is Status.UNKNOWN
    assert verdict.statement.startswith("none of its cases with drafts and random tokens was followed within 500 runs")
    assert len(calls) < 2_000


@pytest.mark.usefixtures("unexplained")
def test_a_wrong_engine_of_many_paths_is_refuted_by_its_small_cases(monkeypatch):
    """A case with many runs comes after the others; if none refutes, it is examined with the usual limit."""
    subject = made_subject(partial(one_by_one, "residual of the target"), "wrong")
    by_name = {name_of_case(case)[1]: case for case in LAW.cases(subject)}
    large, small = by_name["generic-v2-p010-h4-s1"], by_name["generic-v2-p010-h2-s0"]  # 468 and 38 runs
    monkeypatch.setattr(quick, "ENGINE_LIMITS", quick.ENGINE_LIMITS._replace(of_small_case=50))
    for chosen, refuted in (([large, small], small), ([large], large)):
        monkeypatch.setattr(verify, "quick_cases", lambda *_, chosen=chosen: quick.ChosenCases(chosen, 0))
        verdict = run_check(subject, LAW, Checklist((LAW,), quick=True))
        assert verdict.status is Status.REFUTED
        assert verdict.figures["planned"][-1] == name_of_case(refuted)[1]
        assert verdict.figures.get("left_out", 0) == 0


def test_a_call_of_far_too_many_paths_ends_early_and_says_the_way_out():
    calls = []

    def plain(new=20):
        return [random.choice([0, 1, 2]) for _ in range(new)]

    def fast(new=20):
        calls.append(new)
        return plain(new)

    with pytest.raises(SpeculationUndecided, match=r"fewer tokens, drafts or rows have fewer paths"):
        check_engine(fast, plain, quick=True, checks=[LAW.name])
    assert len(calls) < 1200
    with pytest.raises(SpeculationUndecided, match=r"the call without speculation has more than 200000 paths; fewer"):
        check_engine(fast, plain, checks=[LAW.name])


def test_other_cases_stand_in_where_none_of_the_plan_can_be_followed(monkeypatch):
    subject = verifier_subject(one_row, "one row")
    always = [
        case
        for case in LAW.cases(subject)
        if case.situation.scenario in QUICK_SCENARIOS or has_last_rows_open(case.situation.scenario)
    ]
    named = {*quick_plans()["row"][LAW.name], *map(name_of_case, always)}
    monkeypatch.setattr(verify, "beyond_reach", lambda case: name_of_case(case) in named)
    verdict = run_check(subject, LAW, Checklist((LAW,), quick=True))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["cases"] == 1
    assert verdict.figures["skipped"] == len(named)
    assert verdict.figures["left_out"] == len(list(LAW.cases(subject))) - len(named) - 1
    assert not {tuple(case.split(", ")) for case in verdict.figures["planned"]} & named


@pytest.mark.parametrize(
    "keeps",
    [lambda coin, ratio: coin <= ratio, lambda coin, ratio: 1 - coin < ratio],
    ids=["u <= p/q", "1 - u < p/q, and u may be 0"],
)
def test_quick_refutes_a_coin_that_is_wrong_at_its_end(keeps):
    """Tokens that one of p and q has not, and rows that are equal, are among the cases of the plan."""
    rng = np.random.default_rng()

    def judged(p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if not keeps(rng.random(dtype=np.float32), p[place, token] / q[place, token]):
                left = np.maximum(p[place] - q[place], 0)
                return [*draft_tokens[:place], rng.choice(len(left), p=left / left.sum())]
        return [*draft_tokens, rng.choice(p.shape[1], p=p[-1])]

    with pytest.raises(SpeculationRefuted, match="support at boundary draws - refuted"):
        check_verifier(judged, quick=True, checks=["support_at_boundary_draws"])


def test_the_plan_of_engines_has_texts_that_end():
    names = [name for _, name in quick_plans()["engine"][LAW.name]]
    assert sum("-e" in name for name in names) >= 2


def test_a_kind_without_a_plan_has_the_scenarios_of_rows_and_cases_at_even_distances():
    cases = list(LAW.cases(verifier_subject(one_row, "one row")))
    chosen, left_out, _ = quick_cases("no kind", LAW, iter(cases))
    assert quick.MOST_CASES - 2 <= len(chosen) <= quick.MOST_CASES + len(QUICK_SCENARIOS)
    assert left_out == len(cases) - len(chosen)
    generic = [case for case in cases if quick.name_of_case(case)[1] == quick.GENERIC]
    assert chosen[: len(generic)] == generic
    assert {scenario for _, scenario in quick_plans()["row"][LAW.name]} <= {
        scenario for _, scenario in map(quick.name_of_case, chosen)
    }
    assert cases[0] in chosen
    assert len(set(map(quick.name_of_case, chosen))) == len(chosen)


@pytest.mark.thorough(keep=2)
@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("shared", [True, False])
def test_quick_refutes_rows_that_race_with_the_same_noise(shared):
    """The noise decides only if both rows reject drafts and both residuals have several tokens."""
    rng = np.random.default_rng()

    def verify(p, q, draft_tokens, lengths):
        noise = rng.exponential(size=(len(lengths), p.shape[-1]))
        texts = []
        for row, number in enumerate(lengths):
            tokens, weights = draft_tokens[row, :number].tolist(), p[row, number]
            for place, token in enumerate(tokens):
                if rng.random() * q[row, place, token] >= p[row, place, token]:
                    residual = np.maximum(p[row, place] - q[row, place], 0)
                    winner = int((residual / noise[0 if shared else row]).argmax())
                    texts.append([*tokens[:place], winner])
                    break
            else:
                texts.append([*tokens, rng.choice(len(weights), p=weights)])
        return texts

    rows = check_named("rows_are_independent")
    verdict = run_check(verifier_subject(verify, "rows", form=BATCHED), rows, Checklist((rows,), quick=True))
    assert verdict.status is (Status.REFUTED if shared else Status.HOLDS)


@pytest.mark.parametrize("shared", [False, True])
def test_quick_sees_that_the_number_of_a_test_chooses_the_replacement_of_an_engine(shared):
    rng = np.random.default_rng()

    def chosen(weights, number):
        return int(np.searchsorted(np.cumsum(weights / weights.sum()), number, side="right"))

    def make(scenario):
        def decode(prompt):
            text = tuple(prompt)
            while len(text) < len(prompt) + scenario.horizon:
                p, q = scenario.target(text), scenario.draft(text)
                draft, coin = chosen(q, rng.random()), rng.random()
                kept = coin < p[draft] / q[draft]
                text += (draft if kept else chosen(np.maximum(p - q, 0), coin if shared else rng.random()),)
            return text[len(prompt) :]

        return decode

    drawn = check_named("draws_are_independent")
    verdict = run_check(made_subject(make, "an engine"), drawn, Checklist((drawn,), quick=True))
    assert verdict.status is (Status.REFUTED if shared else Status.HOLDS)


def test_quick_only_ever_asks_for_less():
    conditions = in_quick(Conditions(runs=7, paths=5, apart=9, replays=2))
    assert conditions == Conditions(runs=7, paths=5, apart=9, replays=2)


def truncated(logits, temperature, least):
    """Return softmax(logits / temperature) with only the entries that are at least ``least``, and the largest."""
    if not temperature:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    pmf = np.exp(logits / temperature - (logits / temperature).max(-1, keepdims=True))
    pmf /= pmf.sum(-1, keepdims=True)
    kept = np.where(pmf >= np.minimum(least(pmf), pmf.max(-1, keepdims=True)), pmf, 0)
    return kept / kept.sum(-1, keepdims=True)


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("own", [True, False])
def test_quick_refutes_a_target_that_is_truncated_by_the_peak_of_the_draft(own):
    def verify(target_logits, draft_logits, draft_tokens, temperature, min_p):
        q = truncated(np.asarray(draft_logits), temperature, lambda pmf: min_p * pmf.max(-1, keepdims=True))
        highest = np.concatenate([q.max(-1, keepdims=True), np.ones((1, 1))])
        p = truncated(
            np.asarray(target_logits), temperature, lambda pmf: min_p * (pmf.max(-1, keepdims=True) if own else highest)
        )
        return one_row(p, q, draft_tokens)

    verdict = check_verifier(verify, quick=True, checks=[LAW.name], on_fail=None)[0]
    assert verdict.status is (Status.HOLDS if own else Status.REFUTED)


def one_uniform_for_all_drafts(p, q, drafts, accept_uniforms, final_uniforms):
    batch, gamma = drafts.shape
    rows, places = np.arange(batch)[:, None], np.arange(gamma)
    kept = accept_uniforms[:, :1] * q[rows, places, drafts] < p[rows, places, drafts]
    ends = np.where(kept.all(1), gamma, kept.argmin(1))
    left = np.maximum(p - np.pad(q, ((0, 0), (0, 1), (0, 0))), 0)[np.arange(batch), ends]
    cdf = np.cumsum(np.where(left.any(1, keepdims=True), left, p[:, 0]), 1)
    tokens = np.where(places < ends[:, None], drafts, -1)
    tokens = np.pad(tokens, ((0, 0), (0, 1)), constant_values=-1)
    tokens[np.arange(batch), ends] = (cdf <= final_uniforms[:, None] * cdf[:, -1:]).sum(1)
    return tokens


def test_quick_refutes_a_kernel_that_is_wrong_with_two_drafts_only():
    examine = partial(
        check_kernel, one_uniform_for_all_drafts, KernelConvention(dtype="float64"), quick=True, checks=[LAW.name]
    )
    with pytest.raises(SpeculationRefuted, match="by one random number for all drafts"):
        examine()
    [held] = examine(gammas=(1,))
    assert held.status is Status.HOLDS


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("least", "status"), [(0.0, Status.HOLDS), (0.01, Status.REFUTED)])
def test_quick_refutes_tests_that_divide_by_at_least_a_hundredth(least, status):
    rng = np.random.default_rng()

    def verify(target_logits, draft_logits, draft_tokens, temperature):
        p, q = (truncated(np.asarray(each), temperature, lambda _: 0.0) for each in (target_logits, draft_logits))
        for place, token in enumerate(draft_tokens):
            if rng.random() >= p[place, token] / max(q[place, token], least):
                rest = np.maximum(p[place] - q[place], 0)
                return [*draft_tokens[:place], rng.choice(len(rest), p=rest / rest.sum())]
        return [*draft_tokens, rng.choice(p.shape[-1], p=p[-1])]

    verdict = check_verifier(verify, quick=True, checks=[LAW.name], on_fail=None)[0]
    assert verdict.status is status


def test_a_case_whose_call_without_speculation_has_too_many_paths_is_left_out():
    """It draws a coin for each of 29 tokens; the fast call draws none."""
    calls, rng = [], np.random.default_rng()

    def make(scenario):
        def decoded(prompt, probability):
            text = tuple(prompt)
            for _ in range(scenario.horizon):
                row = scenario.target(text)
                if probability is not None and rng.random() < probability:
                    calls.append(len(text))
                text = (*text, int(rng.choice(len(row), p=row)))
            return list(text[len(prompt) :])

        return Made(lambda prompt: decoded(prompt, None), lambda prompt: decoded(prompt, 0.5))

    subject = made_subject(make, "an engine")
    names = (AFTER_MANY_REJECTIONS.name, "generic-v2-p010-h2-s0")
    programs = [program for program in subject.programs if program.name in names]
    verdict = run_check(subject.with_programs(programs), check_named("law_is_target"), Checklist((), quick=True))
    assert verdict.status is Status.HOLDS
    assert any(note.startswith("left out") and note.endswith(names[0]) for note in verdict.figures["notes"])
    assert len(calls) < 5000
