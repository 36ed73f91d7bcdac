"""Batches whose rows are planned: engines that are wrong in one constellation of rows only are refuted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.certain_tables import END, certain_pair, planned
from specverify.laws.law import target_law
from specverify.laws.scenarios import handed_task
from specverify.subjects.batch_plans import (
    AT_AN_END,
    AT_THE_HORIZON,
    HORIZON,
    OPEN_AFTER_AN_END,
    OPEN_AFTER_THE_HORIZON,
)
from specverify.subjects.engine_making import Made
from specverify.subjects.request_lists import PLANNED_AT_ONCE, PLANNED_ENDING, QUICK_PLANNED
from specverify.subjects.requests import law_of_all, served
from specverify.trust.batch_designs import GAMMAS, OVER, constellations, design, rounds
from test_support.subjects.engine_laws import law_verdict

ALL = frozenset({*OVER, "all", "first", "later"})
"""All events of a row in a round."""


def covered(batches):
    """Return the constellations of these batches at all numbers of drafts."""
    return set().union(*(constellations(batch, gamma) for batch in batches for gamma in GAMMAS))


def possible(gamma, *events):
    """Return whether a round of ``gamma`` drafts can have these events; with one draft, the first one is the last."""
    return gamma > 1 or not {"draft", "later"} & {*events}


def test_letters_of_a_plan_state_its_rows():
    target, draft = certain_pair(planned(["ader", ".o"]), 5, seed=0)
    alike, differ, end, replaced = ((target(text), draft(text)) for text in ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)))
    assert (alike[0] == alike[1]).all()
    assert not alike[0][END]
    assert (differ[0] * differ[1] == 0).all()
    assert not differ[0][END]
    assert end[0][END] == end[1][END] == replaced[0][END] == 1
    assert not replaced[1][END]
    assert (target((2,)) == draft((2,))).all()
    p, q = target((2, 4)), draft((2, 4))
    assert ((p > 0) == (q > 0)).all()
    assert (sum(p > 0), p[END]) == (2, 0)
    assert (p != q).any()


def test_rounds_of_a_batch_follow_from_its_plans():
    events = [{row: event for row, (event, _) in each.items()} for each in rounds(("ade", "dr", "aaaae"), 2)]
    assert events[:2] == [{0: "later", 1: "first", 2: "all"}, {0: "draft", 1: "replacement", 2: "last draft"}]
    assert [*rounds(("a" * HORIZON,), 3)][-1] == {0: ("horizon", False)}


def test_a_random_token_is_open_only_as_a_draft():
    """With two drafts the token at index 2 is a bonus, unless a draft before it is rejected."""
    for plan, expected in (("aao", [False, False]), ("ao", [True, False]), ("do", [False, True])):
        events = [events[0][1] for events in rounds((plan,), 2)]
        assert events[:2] == expected


def test_every_row_ends_alone_at_every_place_by_every_kind_of_token():
    ends = {
        (g, "ends", number, row, end) for g in GAMMAS for number in (2, 3, 4) for row in range(number) for end in OVER
    }
    ends = {item for item in ends if possible(item[0], item[-1])}
    assert ends <= covered(AT_AN_END + AT_THE_HORIZON)
    assert {item for item in ends if item[-1] == "horizon"} <= covered(AT_THE_HORIZON)


def test_every_pair_of_events_meets_in_one_round():
    pairs = {(g, "beside", *pair) for g in GAMMAS for pair in product(ALL, ALL) if possible(g, *pair)}
    assert pairs <= covered(AT_AN_END + AT_THE_HORIZON)


def test_every_row_is_left_over_with_every_event():
    places = ("at the top", "between", "at the bottom")
    left = {
        (g, "is left over", place, event) for g in GAMMAS for place in places for event in ALL if possible(g, event)
    }
    assert left <= covered(AT_AN_END + AT_THE_HORIZON)


def test_rows_are_open_after_another_row_has_ended():
    pairs = {(g, "open after", rows, rows, gone, row) for g in GAMMAS for rows, gone, row in ((2, 0, 1), (2, 1, 0))}
    pairs |= {
        (g, "open after", 3, 3, gone, row) for g in GAMMAS for gone, row in product(range(3), range(3)) if gone != row
    }
    assert pairs <= covered(OPEN_AFTER_AN_END)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_row_is_open_after_the_other_of_two_rows_is_complete(gamma):
    """The random token is a draft: the last token of a text is none."""
    assert {(gamma, "open after", 2, 2, 0, 1), (gamma, "open after", 2, 2, 1, 0)} <= covered(OPEN_AFTER_THE_HORIZON)


@pytest.mark.thorough
def test_the_batches_are_those_of_the_design():
    assert tuple(design("OPEN_AFTER_THE_HORIZON")[0]) == OPEN_AFTER_THE_HORIZON


def choice(model, text):
    """Return the token of a one-hot pmf."""
    return int(np.argmax(model(text)))


class Engine:
    """Decodes batches at temperature 0, with a ``fault`` in the rounds for which ``wrong(live, events, over)``.

    * "another row": from then on the first remaining row reads the text of a row that has ended.
    * "overlooked": the last remaining row does not see its end.
    * "last draft": the bonus of the last remaining row is that of the text without its last draft.
    """

    def __init__(self, models, gamma, wrong=lambda *_: False, fault=""):
        """Take a task, or a scenario of an engine, and the number of drafts."""
        self.models, self.gamma, self.wrong, self.fault = models, gamma, wrong, fault
        self.ends = models.eos if isinstance(models.eos, tuple) else (models.eos,)

    def round(self, text, read):
        """Return the new tokens of one row after ``text``, and its event; p is that after ``read``."""
        new = ()
        while len(new) < self.gamma:
            p, q = choice(self.models.target, read + new), choice(self.models.draft, text + new)
            new = (*new, p)
            if p in self.ends or p != q:
                return new, "end" if p in self.ends else "rejected"
        new = (*new, choice(self.models.target, read + new))
        return new, "bonus end" if new[-1] in self.ends else "all"

    def decode(self, prompts):
        """Return the new tokens of each prompt."""
        texts, read, live = [tuple(prompt) for prompt in prompts], [*range(len(prompts))], [*range(len(prompts))]
        wanted = [len(prompt) + self.models.horizon for prompt in prompts]
        while live:
            done = {row: self.round(texts[row], texts[read[row]]) for row in live}
            new, events = ({row: part[at] for row, part in done.items()} for at in (0, 1))
            complete = {row for row in live if len(texts[row] + new[row]) >= wanted[row]}
            events |= dict.fromkeys(complete, "horizon")
            over = [row for row in live if row in complete or events[row].endswith("end")]
            if self.wrong(live, events, over):
                last = live[-1]
                if self.fault == "overlooked":
                    over = [row for row in over if row != last]
                if self.fault == "another row" and live != over:
                    read[next(row for row in live if row not in over)] = over[0]
                if self.fault == "last draft":
                    new[last] = (*new[last][:-1], choice(self.models.target, texts[last] + new[last][:-2]))
            for row in live:
                texts[row] += new[row]
            live = [row for row in live if row not in over]
        return [text[len(prompt) : end] for text, prompt, end in zip(texts, prompts, wanted, strict=True)]


def text_of(requests):
    """Return the right concatenated texts."""
    laws = [target_law(handed_task(each, rational=False), each.prompt) for each in requests.each]
    (text,) = law_of_all(requests, laws)
    return text


CERTAIN_BATCHES = PLANNED_AT_ONCE[: len(AT_THE_HORIZON)] + PLANNED_ENDING[: len(AT_AN_END)]
WRONG = {
    "middle ended first": ("another row", lambda live, events, over: len(live) == 3 and over == [live[1]]),
    "last ended first": ("another row", lambda live, events, over: len(live) == 3 and over == [live[2]]),
    "two ended at once": ("another row", lambda live, events, over: len(live) == 4 and len(over) == 2),
    "bonus end of the last": (
        "overlooked",
        lambda live, events, over: len(live) == 1 and events[live[0]] == "bonus end",
    ),
    "end beside a rejection": (
        "overlooked",
        lambda live, events, over: len(live) > 1 and events[live[-1]] == "end" and events[live[-2]] == "rejected",
    ),
    "all accept all": (
        "last draft",
        lambda live, events, over: len(live) > 1 and {*events.values()} == {"all"},
    ),
    "one left that accepts all": (
        "last draft",
        lambda live, events, over: len(live) == 1 and events[live[0]] == "all",
    ),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("gamma", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", WRONG)
def test_an_engine_that_is_wrong_in_one_constellation_has_another_text(name, gamma):
    fault, wrong = WRONG[name]
    other = False
    for requests in CERTAIN_BATCHES:
        right, models = text_of(requests), handed_task(requests.scenario, rational=False)
        assert served(requests, Engine(models, gamma).decode, batched=True) == right
        other |= served(requests, Engine(models, gamma, wrong, fault).decode, batched=True) != right
    assert other


@pytest.mark.parametrize("name", ["", "middle ended first", "bonus end of the last"])
def test_such_an_engine_is_refuted_and_the_right_one_holds(name):
    fault, wrong = WRONG.get(name, ("", lambda *_: False))
    verdict = law_verdict(
        lambda scenario: Made(Engine(scenario, 4, wrong, fault).decode, batched=True, stops=True), PLANNED_ENDING[:20]
    )
    assert verdict.status is (Status.REFUTED if name else Status.HOLDS)
    assert name or verdict.figures["cases"] == len(PLANNED_ENDING[:20])


class Slots:
    """Samples batches in slots: if a row is complete, the rows behind it move up.

    ``q_of(slot, row)`` is the index of the rows of q that a test uses, and ``residual_of`` that of a replacement.
    """

    def __init__(self, scenario, gamma, q_of=lambda slot, row: slot, residual_of=lambda slot, row: slot):
        """Take the scenario of an engine, and the number of drafts of a round."""
        self.scenario, self.gamma, self.q_of, self.residual_of = scenario, gamma, q_of, residual_of
        self.rng, self.q = np.random.default_rng(), np.zeros((8, gamma, scenario.vocabulary))

    def drawn(self, weights):
        return int(self.rng.choice(len(weights), p=weights / weights.sum()))

    def round(self, slot, row, text, drafts):
        """Return the new tokens of a row after ``text``."""
        for i, token in enumerate(drafts):
            p = np.asarray(self.scenario.target((*text, *drafts[:i])))
            if self.rng.random() * self.q[self.q_of(slot, row), i, token] >= p[token]:
                rest = np.maximum(p - self.q[self.residual_of(slot, row), i], 0)
                return (*drafts[:i], self.drawn(rest if rest.any() else p))
        return (*drafts, self.drawn(np.asarray(self.scenario.target((*text, *drafts)))))

    def drafted(self, slot, text, count):
        new = ()
        for i in range(count):
            self.q[slot, i] = self.scenario.draft((*text, *new))
            new = (*new, self.drawn(self.q[slot, i]))
        return new

    def decode(self, prompts):
        """Return the new tokens of each prompt."""
        texts, live = [tuple(prompt) for prompt in prompts], [*range(len(prompts))]
        wanted = [len(prompt) + self.scenario.horizon for prompt in prompts]
        while live:
            counts = [min(self.gamma, wanted[row] - len(texts[row]) - 1) for row in live]
            drafts = [self.drafted(slot, texts[row], counts[slot]) for slot, row in enumerate(live)]
            for slot, row in enumerate(live):
                texts[row] += self.round(slot, row, texts[row], drafts[slot])
            live = [row for row in live if len(texts[row]) < wanted[row]]
        return [text[len(prompt) :] for text, prompt in zip(texts, prompts, strict=True)]


WRONG_SLOTS = {
    "": {},
    "q of the row's first slot": {"q_of": lambda slot, row: row},
    "residual with q of the row's first slot": {"residual_of": lambda slot, row: row},
    "q of the slot below": {"q_of": lambda slot, row: slot + 1},
    "q of the first slot": {"q_of": lambda slot, row: 0},
}


@pytest.mark.thorough(keep=2)
@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("gamma", [1, 2])
@pytest.mark.parametrize("name", WRONG_SLOTS)
def test_the_quick_plan_refutes_rows_that_move_up_without_their_q(name, gamma):
    open_batches = [requests for requests in PLANNED_AT_ONCE[len(AT_THE_HORIZON) :] if requests in QUICK_PLANNED]
    verdict = law_verdict(
        lambda scenario: Made(Slots(scenario, gamma, **WRONG_SLOTS[name]).decode, batched=True), open_batches
    )
    assert verdict.status is (Status.REFUTED if name else Status.HOLDS)
