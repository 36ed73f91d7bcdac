"""Engines that are made for each scenario, and what an observer shows of them that no output does."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from reference import Claim
from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.laws.engine_scenarios import CERTAIN_SCENARIOS, SCENARIOS
from specverify.laws.size_scenarios import size_scenarios
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_making import made_in
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import Made, Observer, check_engine

GAMMA = 2


def drawn(rng, pmf):
    return int(rng.choice(len(pmf), p=pmf))


def as_it_is(prompt, text, rejected):
    """Return what the draft's cache holds: all tokens."""
    return text


def one_short(prompt, text, rejected):
    """The token before the last one was never fed to the draft."""
    return (*text[:-2], text[-1]) if len(text) > len(prompt) + 1 else text


def stale(prompt, text, rejected):
    """The rejected draft was not taken out of the draft's cache, so the token in its place is not there."""
    return (*text[:-1], rejected) if rejected is not None else text


def of_another(prompt, text, rejected):
    """The draft's cache holds another request's prompt."""
    return (*(1 - min(token, 1) for token in prompt), *text[len(prompt) :])


def speculates(scenario, held=as_it_is, observer=None, accept=lambda p, q, x: p[x] / q[x], beyond=False):
    """Decode with speculation; the draft sees what ``held`` leaves of the text."""
    rng, prompt = np.random.default_rng(), scenario.prompt
    text, rejected, cached = prompt, None, len(prompt) - 1
    if observer:
        observer.begin()
    while (left := scenario.horizon + len(prompt) - len(text)) > 0:
        drafts, qs = [], []
        for _ in range(GAMMA if beyond else min(GAMMA, left)):
            qs.append(scenario.draft((*held(prompt, text, rejected), *drafts)))
            drafts.append(drawn(rng, qs[-1]))
        if observer:
            observer.forward(cached, (*text[cached:], *drafts))
        ps = [scenario.target((*text, *drafts[:i])) for i in range(len(drafts) + 1)]
        new, rejected = [], None
        for p, q, x in zip(ps, qs, drafts, strict=False):
            if rng.random() < accept(p, q, x):
                new.append(x)
                continue
            residual = np.maximum(p - q, 0)
            new.append(drawn(rng, residual / residual.sum()))
            rejected = x
            break
        else:
            new.append(drawn(rng, ps[-1]))
        text = (*text, *new)
        cached = len(text) - 1
    new = text[len(prompt) :]
    return new if beyond else new[: scenario.horizon]


def watched(scenario, **options):
    observer = Observer(scenario.prompt, draft=scenario.draft)
    return Made(partial(speculates, scenario, observer=observer, **options), observer=observer)


def verdict_of(make, check, programs=slice(2, 6)):
    """Return what one check says of the engine in a few of its scenarios."""
    subject = made_subject(make, "an engine")
    subject = subject._replace(claims=frozenset(Claim)).with_programs(subject.programs[programs])
    return run_check(subject, check_named(check), Checklist(()))


def status_of(make, check, programs=slice(2, 6)):
    return verdict_of(make, check, programs).status


@pytest.mark.thorough
@pytest.mark.parametrize("make", [watched, lambda scenario: partial(speculates, scenario, beyond=True)])
def test_a_right_engine_holds_in_every_scenario(make):
    """It is held to the law of the tables themselves; what it decodes beyond the horizon is cut off.

    One that drafts beyond it has too many paths in one scenario, and the verdict says so.
    """
    found = check_engine(make)
    assert {verdict.status for verdict in found} == {Status.HOLDS}
    [law] = [verdict for verdict in found if verdict.check == "law_is_target"]
    assert law.figures["cases"] + law.figures.get("skipped", 0) == len(
        (*SCENARIOS, *CERTAIN_SCENARIOS, *size_scenarios())
    )
    assert law.figures.get("skipped", 0) == (0 if make is watched else 1)
    looked_into = {"acceptance_law", "draft_is_honest", "cache_equals_prefill"} & {verdict.check for verdict in found}
    assert len(looked_into) == (3 if make is watched else 0)


@pytest.mark.thorough
@pytest.mark.parametrize("beyond", [False, True])
def test_a_right_engine_has_the_law_of_the_tables(beyond):
    assert status_of(lambda scenario: partial(speculates, scenario, beyond=beyond), "law_is_target") is Status.HOLDS


def test_p_and_q_are_named_where_an_engine_is_wrong():
    def make(scenario):
        return partial(speculates, scenario, accept=lambda p, q, x: min(1.0, 1.5 * p[x] / q[x]))

    let = "; ".join(verdict_of(make, "law_is_target").counterexample.let)
    assert all(said in let for said in ("setting few_after_1_2_3-v5", "after (0,): p = (", "   q = ("))


@pytest.mark.thorough
@pytest.mark.parametrize("check", ["acceptance_law", "draft_is_honest", "cache_equals_prefill"])
def test_a_right_engine_holds_when_it_is_looked_into(check):
    assert status_of(watched, check) is Status.HOLDS


def test_rows_that_are_not_told_are_not_judged():
    said = check_named("processors_see_their_prefix").obstacle(made_subject(watched, "an engine"))
    assert said == "its rows are not reported"


def test_drafts_of_an_unknown_pmf_are_not_judged():
    def make(scenario):
        observer = Observer(scenario.prompt)
        return Made(partial(speculates, scenario, observer=observer), observer=observer)

    subject = made_subject(make, "an engine")
    assert (
        check_named("draft_is_honest").obstacle(subject) == "the pmf from which its drafts should be drawn is not given"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("held", [one_short, stale, of_another])
def test_a_draft_from_another_cache_leaves_the_law_and_is_refuted_by_its_drafts(held):
    wrong = partial(watched, held=held)
    assert status_of(wrong, "law_is_target") is Status.HOLDS
    assert status_of(wrong, "draft_is_honest") is Status.REFUTED


def test_a_rule_that_accepts_too_little_is_refuted_by_its_rates():
    wrong = partial(watched, accept=lambda p, q, x: 0.5 * p[x] / q[x])
    assert status_of(wrong, "acceptance_law", slice(1)) is Status.REFUTED
    assert status_of(wrong, "draft_is_honest", slice(1)) is Status.HOLDS


def test_a_target_fed_from_a_cache_that_was_not_cropped_is_refuted():
    def make(scenario):
        observer = Observer(scenario.prompt)
        forward, observer.forward = observer.forward, lambda held, fed: forward(held + (held > 3), fed)
        return Made(partial(speculates, scenario, observer=observer), observer=observer)

    assert status_of(make, "cache_equals_prefill") is Status.REFUTED


def test_what_raises_at_one_scenario_is_named_with_it():
    def make(scenario):
        if scenario.vocabulary > 3:
            raise RuntimeError("no room for four tokens")
        return partial(speculates, scenario)

    found = verdict_of(make, "law_is_target", slice(len(SCENARIOS) - 1, len(SCENARIOS)))
    assert found.status is Status.UNUSABLE
    assert "generic-v4" in found.statement
    assert "no room for four tokens" in found.statement


def test_an_engine_that_never_ends_its_text_is_stopped_at_a_long_text():
    def make(scenario):
        def decode(prompt):
            text = list(prompt)
            while True:
                text.append(int(np.argmax(scenario.target(tuple(text)))))

        return Made(decode)

    scenario = CERTAIN_SCENARIOS[0]
    with pytest.raises(
        UnusableSubject, match=r"after a text of \d+ tokens, expected an end after \d+ at certain-.*: it do"
    ):
        made_in(make, scenario).speculative(scenario.prompt)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((lambda: [0],), "what makes the engine takes"),
        ((lambda scenario: 3,), r"it made 3, expected a call that decodes"),
        ((lambda scenario: None,), r"it made None, expected a call that decodes"),
        ((lambda scenario: (print, print, print),), r"it made \(<built-in function print>, .*, expected a call that"),
    ],
    ids=["no scenario", "no engine", "nothing", "three calls"],
)
def test_what_makes_no_engine_is_said_in_a_sentence(arguments, said):
    with pytest.raises(Exception, match=said):
        check_engine(*arguments)


def test_an_error_of_an_engine_is_told_with_its_case():
    def make(scenario):
        def decode(prompts):
            if len(prompts) > 1:
                raise IndexError("no second row")
            text = tuple(prompts[0])
            while len(text) < len(prompts[0]) + scenario.horizon:
                row = scenario.target(text)
                text = (*text, int(np.random.default_rng().choice(len(row), p=row)))
            return [text[len(prompts[0]) :]]

        return Made(decode, batched=True)

    said = r"IndexError: no second row \(test_made_engine.py:\d+\), in setting \S+ beside "
    with pytest.raises(UnusableSubject, match=said):
        check_engine(make, quick=True, checks=["law_is_target"])


def test_an_observer_is_told_token_ids_and_whole_numbers():
    observer = Observer((0,))
    with pytest.raises(Exception, match="got -1 as the number of cache entries"):
        observer.forward(-1, [0])
    with pytest.raises(Exception, match="expected whole token ids"):
        observer.forward(0, [0.5])
    with pytest.raises(Exception, match="before any forward pass"):
        observer.processed([0])
    with pytest.raises(ValueError, match="expected a torch module"):
        Observer((0,), target=3)


def clamped(scenario, least=1e-27, more=0.0):
    """Decode from rows in which nothing is impossible, as after a clamped logarithm; a ratio is a little more."""

    def target(tokens):
        row = np.maximum(scenario.target(tokens), least)
        return row / row.sum()

    def plain():
        text, rng = scenario.prompt, np.random.default_rng()
        while len(text) < len(scenario.prompt) + scenario.horizon:
            text = (*text, drawn(rng, target(text)))
        return text[len(scenario.prompt) :]

    here = scenario._replace(target=target)
    return Made(lambda: speculates(here, accept=lambda p, q, x: p[x] / q[x] + more), plain)


@pytest.mark.parametrize(
    ("make", "status"),
    [(clamped, Status.HOLDS), (partial(clamped, least=0.0, more=1e-300), Status.REFUTED)],
    ids=["what plain decoding can draw too", "what it cannot"],
)
def test_what_comes_out_at_the_ends_may_be_rare_without_speculation(make, status):
    subject = made_subject(make, "an engine")
    programs = [program for program in subject.programs if program.name.startswith("zeros")]
    check = check_named("support_at_boundary_draws")
    every_edge = Checklist((check,), Conditions(edge=0.0))
    assert run_check(subject.with_programs(tuple(programs)), check, every_edge).status is status
