"""A race that nobody has looked at when a run ends: its law is told without a run for each that may win it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law
from specverify.subjects.batch_call import BatchRow, _read
from specverify.subjects.emitted import emitted_row, ends_left_open
from specverify.subjects.forms import BATCHED

WEIGHTS = torch.tensor([0.125, 0.0, 0.5, 0.375], dtype=torch.float64)


def law_of_row(verify, *, left_open, drafts=3, read=emitted_row):
    """Return the law of the row that ``verify()`` emits, its end left open or looked at."""

    def program(draws):
        with answered_everywhere(draws), ends_left_open(int(left_open)):
            return read(verify(), drafts)

    return program_law(program)


def noise(like):
    return torch.empty_like(like).exponential_()


def clamped(weights):
    return weights.log() - noise(weights).clamp(min=0.25).log()


def behind_a_coin(race):
    """Return a draft behind a coin, else the winner of a race."""
    kept = torch.rand((), dtype=torch.float64) < 0.25
    return torch.stack([torch.tensor(7), torch.where(kept, torch.tensor(1), race())])


def after_a_placeholder(race):
    kept = torch.rand((), dtype=torch.float64) < 0.25
    row = torch.stack([race(), torch.tensor(2)])
    return torch.where(torch.stack([~kept, kept]) | torch.tensor([True, False]), row, -1)


RACES = {
    "ratio": lambda: (WEIGHTS / noise(WEIGHTS)).argmax(-1),
    "in place": lambda: WEIGHTS.clone().div_(noise(WEIGHTS)).argmax(-1),
    "smallest": lambda: (noise(WEIGHTS) / WEIGHTS).argmin(-1),
    "gumbel": lambda: (WEIGHTS.log() - noise(WEIGHTS).log()).argmax(-1),
    "with the value": lambda: (WEIGHTS / noise(WEIGHTS)).max(-1)[1],
    "softmax": lambda: (WEIGHTS.log() - noise(WEIGHTS).log()).softmax(-1).argmax(-1),
    "clamped noise": lambda: clamped(WEIGHTS[[0, 2, 3]]).argmax(-1),
    "one of 32 bits": lambda: (WEIGHTS / noise(WEIGHTS)).argmax(-1).to(torch.int32),
    "the best of two blocks": lambda: (WEIGHTS / noise(WEIGHTS)).reshape(2, 2).max(0)[0].argmax(-1),
}


@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_a_race_at_the_end_is_one_run_and_has_the_law_that_it_has_when_it_is_looked_at(race):
    looked_at = law_of_row(lambda: race().reshape(1), left_open=False)
    left_open = law_of_row(lambda: race().reshape(1), left_open=True)
    assert left_open.runs == 1 < looked_at.runs
    assert left_open.probabilities == pytest.approx(looked_at.probabilities, abs=1e-15)
    assert left_open.rounding.support == looked_at.rounding.support
    assert left_open.rounding.decisions == looked_at.rounding.decisions


@pytest.mark.parametrize("row", [behind_a_coin, after_a_placeholder])
def test_conditions_before_it_are_looked_at_and_the_race_is_not(row):
    looked_at = law_of_row(lambda: row(RACES["ratio"]), left_open=False)
    left_open = law_of_row(lambda: row(RACES["ratio"]), left_open=True)
    assert left_open.runs < looked_at.runs
    assert left_open.probabilities == pytest.approx(looked_at.probabilities, abs=1e-15)


def with_its_noise_compared():
    clocks = noise(WEIGHTS)
    late = int(clocks[2] > 1)
    return torch.stack([torch.tensor(late), (WEIGHTS / clocks).argmax()])


def with_a_race_of_the_same_weights_before():
    scores = WEIGHTS / noise(WEIGHTS)
    first = int(scores[2:].argmax())
    return torch.stack([torch.tensor(first), scores.argmax()])


def both_open():
    scores = WEIGHTS / noise(WEIGHTS)
    return torch.stack([scores[2:].argmax(), scores.argmax()])


@pytest.mark.parametrize("row", [with_its_noise_compared, with_a_race_of_the_same_weights_before, both_open])
def test_where_something_was_asked_of_its_noise_it_is_looked_at(row):
    laws = [law_of_row(row, left_open=left_open) for left_open in (False, True)]
    assert laws[0].runs == laws[1].runs > 2
    assert laws[0].probabilities == pytest.approx(laws[1].probabilities, abs=1e-15)


def test_what_is_no_race_is_refused_as_it_is_when_it_is_looked_at():
    def multiplied():
        return (noise(WEIGHTS) * noise(WEIGHTS)).argmax().reshape(1)

    for left_open in (False, True):
        with pytest.raises(
            NeedsValue, match=r"torch.argmax at test_open_races.py:106: .*not a race of clocks: one is made of several"
        ):
            law_of_row(multiplied, left_open=left_open)


ROWS = tuple(BatchRow(np.ones((2, 4)) / 4, np.ones((1, 4)) / 4, (0,)) for _ in range(2))


def apart():
    scores = WEIGHTS / noise(WEIGHTS.expand(2, 4))
    return scores.argmax(-1, keepdim=True)


def with_one_noise():
    scores = WEIGHTS / noise(WEIGHTS)
    return torch.stack([scores.argmax(), scores.argmax()]).unsqueeze(-1)


@pytest.mark.parametrize(("rows", "of_all"), [(apart, 9), (with_one_noise, 3)])
def test_of_the_rows_of_a_batch_one_is_left_open_and_no_more_is_lost_of_how_they_hang_together(rows, of_all):
    def read(answer, _):
        return _read(ROWS, BATCHED, answer)

    looked_at, left_open = (law_of_row(rows, left_open=which, read=read) for which in (False, True))
    assert len(looked_at.probabilities) == of_all
    assert left_open.runs == 3
    assert left_open.probabilities == pytest.approx(looked_at.probabilities, abs=1e-15)
