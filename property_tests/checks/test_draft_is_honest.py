"""What a round drafts has the law of what is proposed, state by state: a drafter may be shown that is not used."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import ALGORITHMS, Round
from reference.models import draft_model
from specverify.base.verdict import Status
from specverify.checks import CHECKS, Conditions, check_named
from specverify.checks.round_laws import first_rounds
from specverify.laws.scenarios import scenario_named
from specverify.mutants.mutant import correct
from specverify.run.verify import Checklist, run_check
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.subject import InScenario

CHECK = check_named("draft_is_honest")
OPTIMAL = check_named("acceptance_is_optimal")


def verdict_of(build, original="speculative-sampling", check=CHECK, **options):
    row = correct(original)._replace(build=build, examples=(options or {"gamma": 2},))
    subject = algorithm_subject(row)
    return run_check(subject._replace(scenarios=subject.scenarios[::3]), check, Checklist((check,)))


def stepping(change, original="speculative-sampling"):
    """Return the build of a registry row whose rounds are those of the task that ``change`` makes of the state."""

    def build(task, **options):
        right = correct(original).build(task, **options)

        def step(draws, state):
            return correct(original).build(change(task, state), **options).step(draws, state)

        return right._replace(step=step)

    return build


def behind_by_one(task, state):
    draft = draft_model(task)
    return task._replace(draft=lambda tokens: draft(tokens[:-1] or tokens))


def behind_by_a_round(task, state):
    """The cache has what the prompt held, and knows nothing of the rounds since."""
    draft, committed = draft_model(task), task.horizon - state.remaining
    return task._replace(draft=lambda tokens: draft(tokens[committed:] or tokens))


@pytest.mark.parametrize("change", [behind_by_one, behind_by_a_round], ids=lambda change: change.__name__)
@pytest.mark.parametrize("original", ["speculative-sampling", "sample-and-match", "block-verification"])
def test_rounds_that_draft_from_a_stale_cache_are_refuted_with_both_probabilities(change, original):
    verdict = verdict_of(stepping(change, original), original)
    assert verdict.status is Status.REFUTED
    assert "is made by a round with" in verdict.statement
    assert verdict.counterexample.then.startswith("propose drafts (")


def test_a_stale_cache_breaks_no_claim_of_a_rule_that_makes_none():
    names = {"law_is_target", "tokens_are_supported", "merging_is_sound"}
    for check in CHECKS:
        if check.name in names:
            found = verdict_of(stepping(behind_by_one, "sample-and-match"), "sample-and-match", check)
            assert found.status is Status.HOLDS


def test_the_same_decoder_drafting_as_it_shows_holds():
    assert verdict_of(stepping(lambda task, state: task)).status is Status.HOLDS


def fewer(task, **options):
    """Proposes two drafts and makes one."""
    right = correct("speculative-sampling").build(task, gamma=2)
    return right._replace(step=correct("speculative-sampling").build(task, gamma=1).step)


def test_another_number_of_drafts_is_refuted():
    assert verdict_of(fewer).status is Status.REFUTED


def silent(task, **options):
    """Its rounds do not tell their drafts."""
    right = correct("speculative-sampling").build(task, **options)

    def step(draws, state):
        after, done = right.step(draws, state)
        return after, Round(done.tokens, (), 0, 0)

    return right._replace(step=step)


def test_rounds_that_do_not_tell_their_drafts_are_unknown():
    verdict = verdict_of(silent)
    assert verdict.status is Status.UNKNOWN
    assert verdict.statement == "its rounds do not say what they draft"


def tree_of_the_text_before(task, **options):
    draft = draft_model(task)
    right = correct("rsd").build(task, **options)
    stale = task._replace(draft=lambda tokens: draft(tokens[:-1] or tokens))
    return right._replace(step=correct("rsd").build(stale, **options).step)


def test_the_nodes_of_a_tree_are_compared_whatever_path_was_accepted():
    assert verdict_of(correct("rsd").build, "rsd", branching=(2, 1)).status is Status.HOLDS
    assert verdict_of(tree_of_the_text_before, "rsd", branching=(1, 1)).status is Status.REFUTED


def test_first_rounds_are_the_start_and_states_that_follow():
    subject = algorithm_subject(correct("speculative-sampling"))
    here = InScenario(subject.variants[0], scenario_named("generic-v2-p0-h3-s0"), subject.rational)
    start, *others = first_rounds(here, 100)
    assert start.state.tokens == (0,)
    assert 1 <= len(others) <= 4
    assert all(len(found.state.tokens) > 1 for found in others)
    assert [sum(found.masses.values()) for found in (start, *others)] == [Fraction(1)] * (1 + len(others))
    assert first_rounds(here, 100) is first_rounds(here, 100)


def test_acceptance_is_read_off_the_same_rounds():
    row = correct("speculative-sampling")
    found = [run_check(algorithm_subject(row), check, Checklist((check,))) for check in (CHECK, OPTIMAL)]
    assert found[0].figures["runs"] == found[1].figures["runs"]
    assert {verdict.status for verdict in found} == {Status.HOLDS}


@pytest.mark.thorough
def test_every_row_that_shows_its_drafting_drafts_what_it_shows():
    shown = [row for row in ALGORITHMS if CHECK.obstacle(algorithm_subject(row)) is None]
    assert len(shown) > 50
    for number, row in enumerate(shown):
        subject = algorithm_subject(row)
        few = subject._replace(scenarios=subject.scenarios[number % 9 :: 9])
        assert run_check(few, CHECK, Checklist((CHECK,), Conditions())).status is Status.HOLDS, row.name
