"""Engines that decode several prompts at once: rows of unlike lengths, some accepted where others are rejected."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.array_kinds import _in_numpy
from specverify.subjects.batch_call import BatchRow, arguments_of, arrays_of_rows, company_of
from specverify.subjects.engine_making import Made
from specverify.subjects.forms import BATCHED
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import AT_ONCE, BATCHES_IN_TURN, IN_TURN
from specverify.subjects.subject import UnusableSubject
from specverify.testing import check_engine

GAMMA = 2


def at(pmf, uniform):
    """Return the token at a uniform of the total."""
    return int(np.searchsorted(np.cumsum(pmf) / np.sum(pmf), uniform, side="right"))


class Engine:
    """A batch whose rows are verified together; ``plan`` names what it does otherwise."""

    def __init__(self, scenario, *plan):
        """Take the models of a scenario."""
        self.target, self.draft, self.horizon = scenario.target, scenario.draft, scenario.horizon
        self.rng, self.plan, self.slots = np.random.default_rng(), plan, {}

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        ends = [len(prompt) + self.horizon for prompt in prompts]
        texts = list(map(tuple, prompts))
        while going := [row for row, text in enumerate(texts) if len(text) < ends[row]]:
            longest = max(len(texts[row]) for row in going)
            alike = "coins of one row" in self.plan
            coins = self.rng.random((1 if alike else len(going), GAMMA))
            found = {
                row: self.round(self.held(row, texts[row]), coins[0 if alike else place], longest)
                for place, row in enumerate(going)
            }
            if "least of all" in self.plan:
                least = min(map(len, found.values()))
                found = {row: new[:least] for row, new in found.items()}
            if "as many as the first" in self.plan:
                first = len(found[going[0]])
                found = {row: (new * first)[:first] for row, new in found.items()}
            texts = [text + found.get(row, ()) for row, text in enumerate(texts)]
        self.slots = dict(enumerate(texts))
        return [text[len(prompt) : end] for text, prompt, end in zip(texts, prompts, ends, strict=True)]

    def held(self, row, text):
        """Return what is in the slot of a row; of one that is not emptied, what another text left there."""
        return (*self.slots.get(row, ()), *text) if "slots of others" in self.plan and row else text

    def round(self, text, coins, longest):
        """Return what one round commits to a row."""
        held = text if "padded" not in self.plan else (*text, *[0] * (longest - len(text)))
        if "length of the longest" in self.plan and len(text) < longest:
            held = text[1:]
        drafts = ()
        for coin in coins:
            q, p = self.draft(text + drafts), self.target(held + drafts)
            x = at(q, self.rng.random())
            if not coin < p[x] / q[x]:
                return (*drafts, at(np.maximum(p - q, 0), self.rng.random()))
            drafts = (*drafts, x)
        return (*drafts, at(self.target(held + drafts), self.rng.random()))


def made(*plan):
    return lambda scenario: Made(Engine(scenario, *plan).decode, batched=True)


def verdict_of(make, names=AT_ONCE, check="law_is_target"):
    """Return what one check says of those requests alone."""
    subject = made_subject(make, "an engine")
    wanted = {requests.name for requests in names}
    subject = subject.with_programs(tuple(item for item in subject.programs if item.name in wanted))
    return run_check(subject, check_named(check), Checklist(()))


def test_a_right_batch_holds():
    verdict = verdict_of(made())
    assert (verdict.status, verdict.figures["cases"]) == (Status.HOLDS, len(AT_ONCE))


@pytest.mark.thorough
def test_rows_that_wait_for_each_other_hold():
    """All commit as many tokens as the one that commits least: the beginning of a block has its law."""
    assert verdict_of(made("least of all"), AT_ONCE[:-2]).status is Status.HOLDS


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("plan", ["coins of one row", "as many as the first", "padded", "length of the longest"])
def test_what_rows_do_to_each_other_is_refuted(plan):
    """Each row alone is right, so one request after another is."""
    verdict = verdict_of(made(plan))
    assert verdict.status is Status.REFUTED
    assert " beside " in verdict.counterexample.let[0]
    assert verdict_of(made(plan), IN_TURN[-2:]).status is Status.HOLDS


class ByPlace:
    """Drafts one token for each row that is going; wrong if it finds a draft's q by the row's place in the batch."""

    def __init__(self, scenario, find):
        """Take the models of a scenario; ``find(row, place)`` returns where the q of a row is."""
        self.target, self.draft, self.horizon = scenario.target, scenario.draft, scenario.horizon
        self.rng, self.find = np.random.default_rng(), find

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        new = [()] * len(prompts)
        while going := [row for row, text in enumerate(new) if len(text) < self.horizon]:
            texts = [(*prompts[row], *new[row]) for row in going]
            rows = [self.draft(text) for text in texts]
            drafts = [at(q, self.rng.random()) for q in rows]
            for place, row in enumerate(going):
                p, q = self.target(texts[place]), rows[min(self.find(row, place), len(rows) - 1)]
                if self.rng.random() * q[drafts[place]] < p[drafts[place]]:
                    bonus = at(self.target((*texts[place], drafts[place])), self.rng.random())
                    new[row] = (*new[row], drafts[place], bonus)[: self.horizon]
                else:
                    rest = np.maximum(p - q, 0)
                    new[row] = (*new[row], at(rest if rest.any() else p, self.rng.random()))
        return new


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(
    ("find", "status"), [(lambda row, place: row, Status.REFUTED), (lambda row, place: place, Status.HOLDS)]
)
def test_values_of_a_row_must_be_found_after_another_row_has_ended(find, status):
    verdict = verdict_of(lambda scenario: Made(ByPlace(scenario, find).decode, batched=True), AT_ONCE[-5:-4])
    assert verdict.status is status


def test_what_a_batch_leaves_for_the_next_is_refuted():
    """The first slot is emptied, so one request after another is right."""
    assert verdict_of(made(), BATCHES_IN_TURN).status is Status.HOLDS
    verdict = verdict_of(made("slots of others"), BATCHES_IN_TURN)
    assert verdict.status is Status.REFUTED
    assert ", then " in verdict.counterexample.let[0]
    assert " beside " in verdict.counterexample.let[0]
    assert verdict_of(made("slots of others"), (*IN_TURN[-2:], *AT_ONCE)).status is Status.HOLDS


def test_coins_of_one_row_leave_each_row_its_law():
    """So only the law of the rows together shows them."""

    def second(scenario):
        return lambda: Engine(scenario, "coins of one row").decode([scenario.prompt] * 2)[1]

    subject = made_subject(second, "an engine")
    subject = subject.with_programs(subject.programs[:1])
    assert run_check(subject, check_named("law_is_target"), Checklist(())).status is Status.HOLDS


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("decode", "said"),
    [
        (lambda prompts: [0, 1], "a row of new token ids for each of 1 prompt"),
        (lambda prompts: [[0], [1]], "a row of new token ids for each of 1 prompt"),
        (lambda prompts: 3, "it returned 3, expected a row"),
    ],
    ids=["no rows", "too many", "a number"],
)
def test_what_is_no_batch_is_said_in_a_sentence(decode, said):
    with pytest.raises((UnusableSubject, AssertionError), match=said):
        check_engine(lambda scenario: Made(decode, batched=True))


def test_float32_rows_beside_float64_ones_sum_to_one_in_the_arrays_of_a_batch():
    """A verifier that hands such rows to ``Generator.choice`` is right: NumPy refuses a sum that is off by 1e-8."""
    rows = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    mine = BatchRow(rows.astype(np.float32), rows[:1].astype(np.float32), (2,))
    given = arrays_of_rows(company_of(mine, True, np.asarray), True, arguments_of(None, BATCHED))
    p, q, *_ = _in_numpy(given)
    assert p.dtype == q.dtype == np.float64
    assert np.abs(p.sum(-1) - 1).max() < 1e-15
    assert np.abs(p[2, :2].astype(np.float32) - rows).max() < 1e-7
