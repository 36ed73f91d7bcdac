"""A round that drafts many tokens whatever is wanted is looked at where it has few paths, and that is said."""

from __future__ import annotations

from functools import partial

import pytest

from reference import accept_probability, flip, residual
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.checks.check import Case, beyond_reach
from specverify.laws.certain_tables import is_certain
from specverify.laws.scenarios import scenario_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import decode_subject
from specverify.subjects.subject import InScenario, Variant

pytestmark = pytest.mark.usefixtures("unexplained")

LAW = check_named("law_is_target")


def one_round(draws, target, draft, tokens, row=lambda i: i, accepts=lambda i: False):
    """Eight drafts, and speculative sampling; a residual may be of another row, a draft accepted whatever it is."""
    drafts, q = (), []
    for i in range(8):
        q.append(draft(tokens + drafts))
        drafts += (draws.categorical(q[i], ("draft", i)),)
    for i, token in enumerate(drafts):
        p = target(tokens + drafts[:i])
        if not (accepts(i) or flip(draws, accept_probability(p, q[i], token), ("accept", i))):
            p = target(tokens + drafts[: row(i)])
            return *drafts[:i], draws.categorical(residual(p, q[row(i)]), ("residual", i))
    return *drafts, draws.categorical(target(tokens + drafts), ("bonus",))


def subject_of(**wrong):
    def round_of_eight(draws, target, draft, tokens):
        return one_round(draws, target, draft, tokens, **wrong)

    return decode_subject(round_of_eight, "a round")


def status_of(subject):
    return run_check(subject.with_situations(Variant, ()), LAW, Checklist(())).status


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({}, Status.HOLDS),
        ({"row": lambda i: min(i, 4)}, Status.REFUTED),
        ({"accepts": lambda i: i == 6}, Status.REFUTED),
    ],
    ids=["right", "residual of the fifth row", "the seventh draft"],
)
def test_eight_drafts_are_in_reach_where_rows_are_certain(wrong, expected):
    assert status_of(subject_of(**wrong)) is expected


@pytest.mark.parametrize(("name", "left_out"), [("generic-v3-p010-h5-s2", True), ("point_draft-v2-p0-h1-s0", False)])
def test_what_has_too_many_runs_is_left_out(name, left_out):
    subject = subject_of()
    here = InScenario(subject.variants[0], scenario_named(name), rational=True)
    assert beyond_reach(Case(subject, here, partial(pytest.fail, "is not examined"))) is left_out


def test_what_is_certain_is_never_left_out():
    subject = subject_of()
    [variant, scenario] = subject.deep()[0]
    assert is_certain(scenario.shape)
    assert not beyond_reach(Case(subject, InScenario(variant, scenario, rational=True), partial(pytest.fail, "")))
