"""Engines with faults that ended texts and later requests show; without the fault each of them holds there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from specverify.checks import Conditions, check_named
from specverify.laws.ending_scenarios import QUICK_ENDINGS
from specverify.subjects.engine_factories import WithParameters
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import (
    ENDED_BATCHES_IN_TURN,
    ENDED_CONVERSATIONS,
    LONG_PROMPT_TWICE,
    OPEN_BEHIND_OTHERS,
    PROMPTS_OF_OTHER_ROWS,
)
from specverify.testing import Made

LAW = check_named("law_is_target")
AFTER_MANY, AFTER_A_LONG_PROMPT = QUICK_ENDINGS[:2]
GAMMA = 3


def drawn(weights):
    return random.choices(range(len(weights)), weights)[0]


def heated(row, temperature):
    weights = [float(mass) ** (1 / temperature) for mass in row]
    return [weight / sum(weights) for weight in weights]


class Faults(NamedTuple):
    """What a server does wrong; by default nothing."""

    overlooks: Callable[[int, int], bool] = lambda new, prompt: False
    """Whether an end before the last token of a block is overlooked, given the numbers of new tokens and of the prompt.
    """
    counts_the_end: bool = False
    """Whether an end that was not read counts as read when the next turn looks for its beginning in the cache."""
    served: float = float("inf")
    """The number of requests after which a rejected draft is replaced by a draw from p."""
    key: Callable[[Any, float], Any] = lambda prompt, temperature: (prompt, temperature)
    """By what the row after a prompt is found again."""
    keeps_parameters: bool = False
    """Whether rows keep the parameters of the first batch."""


class Slot:
    """The cache of one request after the other: the tokens that were read, and those that are said to be."""

    def __init__(self):
        self.read, self.said, self.served = [], [], 0


class Server:
    """An engine that keeps slots and first rows from one request to the next."""

    def __init__(self, faults, scenario):
        self.faults, self.scenario, self.rows = faults, scenario, {}
        self.slots = [Slot() for _ in range(16)]

    def first(self, prompt, temperature):
        """Return the row of p after ``prompt``, computed once."""
        key = self.faults.key(tuple(prompt), temperature)
        return self.rows.setdefault(key, heated(self.scenario.target(tuple(prompt)), temperature))

    def rows_after(self, slot, text, count):
        """Read what ``slot`` has not read of ``text``; return the rows after its last ``count`` tokens."""
        slot.read += text[len(slot.said) :]
        slot.said = list(text)
        return [tuple(slot.read[: len(slot.read) - back]) for back in reversed(range(count))]

    def one(self, slot, prompt, temperature=1.0):
        """Return the new tokens after ``prompt``."""
        scenario, text, new = self.scenario, list(prompt), []
        slot.served += 1
        common = 0
        while common < min(len(slot.said), len(text) - 1) and slot.said[common] == text[common]:
            common += 1
        slot.read, slot.said = slot.read[:common], slot.said[:common]
        while len(new) < scenario.horizon:
            drafts, q = [], []
            for _ in range(min(GAMMA, scenario.horizon - len(new) - 1)):
                q.append(heated(scenario.draft((*text, *drafts)), temperature))
                drafts.append(drawn(q[-1]))
            texts = self.rows_after(slot, text + drafts, len(drafts) + 1)
            p = [heated(scenario.target(read), temperature) for read in texts]
            if not new:
                p[0] = self.first(prompt, temperature)
            kept = 0
            while kept < len(drafts) and random.random() * q[kept][drafts[kept]] < p[kept][drafts[kept]]:
                kept += 1
            row = p[kept]
            if kept < len(drafts) and slot.served <= self.faults.served:
                row = [max(wanted - given, 0) for wanted, given in zip(row, q[kept], strict=True)]
            block = [*drafts[:kept], drawn(row)]
            ends = [place for place, token in enumerate(block) if token == scenario.eos]
            if ends and (ends[0] == len(block) - 1 or not self.faults.overlooks(len(new), len(prompt))):
                block = block[: ends[0] + 1]
            text, new = text + block, new + block
            slot.read, slot.said = slot.read[: len(text) - 1], slot.said[: len(text) - 1]
            if block[-1] == scenario.eos:
                if self.faults.counts_the_end and len(block) == kept + 1:
                    slot.said = list(text)
                break
        return new


def alone(faults):
    """Return the factory of a server of one slot."""

    def make(scenario):
        server = Server(faults, scenario)
        return Made(lambda prompt: server.one(server.slots[0], list(prompt)), stops=True)

    return make


def in_batches(faults):
    """Return the factory of a server of a slot for each row."""

    def make(scenario):
        server = Server(faults, scenario)

        def decode(prompts):
            return [server.one(slot, list(prompt)) for slot, prompt in zip(server.slots, prompts, strict=False)]

        return Made(decode, batched=True, stops=True)

    return make


def with_temperatures(faults):
    """Return the factory of a server whose rows have a temperature each."""

    def make(scenario):
        server, first = Server(faults, scenario), []

        def speculative(prompts, each):
            first[:] = (first if faults.keeps_parameters else None) or each
            return [server.one(Slot(), list(one), t) for one, t in zip(prompts, first, strict=True)]

        def plain(prompt, temperature):
            text = list(prompt)
            for _ in range(scenario.horizon):
                text.append(drawn(heated(scenario.target(tuple(text)), temperature)))
            return text[len(prompt) :]

        return Made(
            speculative,
            lambda prompts, each: [plain(one, t) for one, t in zip(prompts, each, strict=True)],
            batched=True,
            parameters=(0.5, 1.0),
        )

    return WithParameters(make)


TWINS = {
    "an end in a block is overlooked after many tokens": (alone, Faults(lambda new, _: new > 64), AFTER_MANY),
    "an end in a block is overlooked after a long prompt": (
        alone, Faults(lambda _, prompt: prompt > 64), AFTER_A_LONG_PROMPT,
    ),
    "an end that was not read counts as read": (alone, Faults(counts_the_end=True), ENDED_CONVERSATIONS),
    "an end that was not read counts as read in a slot": (
        in_batches, Faults(counts_the_end=True), ENDED_BATCHES_IN_TURN,
    ),
    "late requests get a replacement from p": (alone, Faults(served=3), OPEN_BEHIND_OTHERS),
    "a long prompt is found without its temperature": (
        with_temperatures, Faults(key=lambda prompt, t: prompt if len(prompt) > 32 else (prompt, t)), LONG_PROMPT_TWICE,
    ),
    "a prompt of the batch before is found without its temperature": (
        with_temperatures, Faults(key=lambda prompt, _: prompt), PROMPTS_OF_OTHER_ROWS,
    ),
    "a batch gets the parameters of the batch before": (
        with_temperatures, Faults(keeps_parameters=True), PROMPTS_OF_OTHER_ROWS,
    ),
}  # fmt: skip
"""Fault -> (the kind of server, the faults, the scenario or requests in which it is refuted)."""


def law_of(make, name):
    """Return the result of the check of laws in the case ``name``."""
    (case,) = (case for case in LAW.cases(made_subject(make, "it")) if case.situation.name == name)
    return case.examine(Conditions(explained=False))


@pytest.mark.parametrize("fault", TWINS)
def test_a_wrong_server_is_refuted_and_its_right_twin_holds(fault):
    kind, faults, where = TWINS[fault]
    assert law_of(kind(faults), where.name).failed
    held = law_of(kind(Faults()), where.name)
    assert not held.failed
    assert not held.unknown


def penalised(row, counts):
    weights = [float(mass) / 2 ** (count > 0) for mass, count in zip(row, counts, strict=True)]
    return [weight / sum(weights) for weight in weights]


def with_counts(slots, cleared):
    """Return the factory of an engine that halves the weight of tokens that are new in the text, counted by slot."""

    def make(scenario):
        counts, served = [[0] * scenario.vocabulary for _ in range(slots)], iter(range(1000))

        def decode(prompt):
            seen = counts[next(served) % slots]
            if cleared:
                seen[:] = [0] * scenario.vocabulary
            return spoken(prompt, seen, drafts=1)

        def spoken(prompt, seen, drafts=0):
            new = ()
            while len(new) < scenario.horizon:
                p = penalised(scenario.target((*prompt, *new)), seen)
                q = penalised(scenario.draft((*prompt, *new)), seen) if drafts else p
                token = drawn(q)
                if random.random() * q[token] >= p[token]:
                    token = drawn([max(wanted - given, 0) for wanted, given in zip(p, q, strict=True)])
                new += (token,)
                seen[token] += 1
            return new

        return Made(decode, lambda prompt: spoken(prompt, [0] * scenario.vocabulary))

    return make


@pytest.mark.parametrize("slots", range(2, 8))
def test_counts_of_an_earlier_request_in_a_slot_are_refuted(slots):
    """The last request alone is random, so the requests before it must leave another slot than a fresh one."""
    assert law_of(with_counts(slots, cleared=False), OPEN_BEHIND_OTHERS.name).failed


def test_slots_whose_counts_are_cleared_hold():
    held = law_of(with_counts(4, cleared=True), OPEN_BEHIND_OTHERS.name)
    assert not held.failed
    assert not held.unknown
