"""A last token that nobody looks at is not run again for each of its outcomes, and all that is said stays the same.

Each sampler has a twin that looks at its last token before it returns it: of that one every outcome is a run.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.intercept.audit import Draw, Origin
from specverify.intercept.symbolic.deferred import Categorical
from specverify.laws.draws import Tape
from specverify.laws.scenarios import SCENARIOS
from specverify.run.verify import run_case
from specverify.subjects.emitted import emitted_row, ends_left_open, left_open
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains
from specverify.subjects.subject import Variant

LOOK_AT_RUNS = {
    "law_is_target": lambda scenario: scenario.vocabulary == 3 and scenario.horizon == 3,
    "merging_is_sound": lambda scenario: scenario.vocabulary == 2 and scenario.horizon == 3,
    "draws_are_independent": lambda scenario: scenario.vocabulary == 3 and scenario.horizon == 5,
    "support_at_boundary_draws": lambda scenario: scenario.vocabulary == 3 and scenario.horizon == 3,
}
"""Checks that work out the laws of calls, run whole decodes or single calls, and which scenarios they take."""
CALLS = []


def row(p, q, draft_tokens, *, look, right=True):
    """Coins by comparison, and one token more by a multinomial; the wrong one draws it from the first row of p."""
    CALLS.append(None)
    gamma = len(draft_tokens)
    places = torch.arange(gamma)
    kept = torch.rand(gamma) < p[places, draft_tokens] / q[places, draft_tokens]
    accepted = int(kept.int().cumprod(0).sum())
    weights = p[accepted if right else 0]
    if accepted < gamma:
        left = (p[accepted] - q[accepted]).clamp(min=0)
        weights = left if left.sum() > 0 else weights
    last = torch.multinomial(weights / weights.sum(), 1)
    return torch.cat([draft_tokens[:accepted], torch.tensor([int(last)]) if look else last])


def batch(p, q, draft_tokens, *, look):
    """Decide every row by itself."""
    rows = [row(*each, look=look) for each in zip(p, q, draft_tokens, strict=True)]
    return torch.stack([torch.cat([each, torch.full((p.shape[1] - len(each),), -1)]) for each in rows])


def found(check, verify, shape="generic", variant=0, **given):
    """Return what a check says of its first case, in one scenario, and after how many calls."""
    form = "batched" if verify is batch else "row"
    scenario = next(each for each in SCENARIOS if each.shape == shape and LOOK_AT_RUNS[check](each))
    subject = verifier_subject_of(partial(verify, **given), "verify", form_of_chains(form), (2,))
    checked = check_named(check)
    case = next(
        iter(
            checked.cases(
                subject._replace(scenarios=(scenario,)).with_situations(Variant, (subject.variants[variant],))
            )
        )
    )
    CALLS.clear()
    return run_case(case, checked, Conditions(paths=60))._replace(seconds=0.0), len(CALLS)


@pytest.mark.parametrize("check", LOOK_AT_RUNS)
def test_the_same_is_said_after_fewer_calls(check):
    open_end, calls = found(check, row, look=False)
    looked_at, more = found(check, row, look=True)
    assert open_end == looked_at
    assert open_end.status is Status.HOLDS
    assert calls < 0.8 * more


@pytest.mark.parametrize("check", ["merging_is_sound", "draws_are_independent"])
def test_the_rows_of_a_batch_are_looked_at(check):
    open_end, _ = found(check, batch, look=False)
    looked_at, _ = found(check, batch, look=True)
    assert open_end == looked_at
    assert open_end.status is Status.HOLDS


def test_the_end_of_a_row_is_left_open_beside_rows_that_are_certain():
    open_end, calls = found("law_is_target", batch, variant=-1, look=False)
    looked_at, more = found("law_is_target", batch, variant=-1, look=True)
    assert open_end == looked_at
    assert calls < 0.8 * more


def test_a_wrong_sampler_is_refuted_alike():
    open_end, _ = found("support_at_boundary_draws", row, "zeros", look=False, right=False)
    looked_at, _ = found("support_at_boundary_draws", row, "zeros", look=True, right=False)
    assert open_end == looked_at
    assert open_end.status is Status.REFUTED


def test_a_last_token_is_not_left_open_where_another_draw_from_its_state_was_looked_at():
    state = Origin()
    coin, token = (Draw((name,), state, name) for name in ("coin", "token"))
    last = Categorical(Tape(0), np.array([0.5, 0.5]), ("token",), draw=token)
    with ends_left_open():
        assert left_open([0, last], most=2) is not None
        coin.look()
        assert left_open([0, last], most=2) is None


def test_an_end_of_what_is_no_pmf_is_left_to_who_looks_at_it():
    last = Categorical(Tape(0), np.array([0.5, 0.6]), ("nowhere",))
    with ends_left_open(), pytest.raises(ValueError, match="sums to"):
        emitted_row([0, last], drafts=1)
