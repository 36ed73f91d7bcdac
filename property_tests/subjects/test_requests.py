"""Requests that a made engine serves after each other: what one leaves behind for the next is refuted."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.law import target_law
from specverify.laws.scenarios import handed_task
from specverify.laws.size_scenarios import NO_SIZES
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_factories import WithVocabulary
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import IN_TURN, MANY_BATCHES_IN_TURN, MANY_IN_TURN
from specverify.subjects.requests import ENDED, law_of_all, served
from specverify.subjects.subject import EngineProgram, UnusableSubject
from specverify.testing import Sizes, check_engine
from test_support.subjects.engine_laws import law_verdict

GAMMA = 2
BLOCK = 16
SMALL = 4


def drawn(rng, pmf):
    return int(rng.choice(len(pmf), p=pmf))


def common(old, new):
    """Return how many tokens two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


class Engine:
    """Speculative decoding whose target sees what it holds of a text; ``begin(engine, prompt)`` says what that is."""

    def __init__(self, scenario, begin):
        """Begin with nothing held."""
        self.target, self.draft, self.horizon = scenario.target, scenario.draft, scenario.horizon
        self.begin, self.rng = begin, np.random.default_rng()
        self.text, self.held, self.found, self.served = (), (), {}, 0
        self.seen, self.rejected = (), {}

    def decode(self, prompt):
        """Return the new tokens."""
        held = self.begin(self, prompt)
        text, end, self.rejected = prompt, len(prompt) + self.horizon, {}
        while len(text) < end:
            drafts, qs = [], []
            for _ in range(min(GAMMA, end - len(text))):
                qs.append(self.draft((*text, *drafts)))
                drafts.append(drawn(self.rng, qs[-1]))
            for q, x in zip(qs, drafts, strict=True):
                p = self.target((*held, *text[len(prompt) :]))
                kept = self.rng.random() < p[x] / q[x]
                more = np.maximum(p - q, 0)
                text = (*text, x if kept else drawn(self.rng, more / more.sum()))
                self.held = (*self.held[: len(text) - 1], x)
                if not kept:
                    self.rejected[len(text) - 1] = x
                    break
        self.text, self.seen, self.served = text, (*held, *text[len(prompt) :]), self.served + 1
        return list(text[len(prompt) :])


def emptied(engine, prompt):
    return prompt


def its_own_beginning(engine, prompt):
    """Go on behind what the last text and this prompt have in common: what is held there is right."""
    shared = common(engine.text, prompt)
    return engine.text[:shared] + prompt[shared:]


def never_emptied(engine, prompt):
    return engine.text + prompt


def by_length(engine, prompt):
    return engine.found.setdefault(len(prompt), prompt)


def by_last_block(engine, prompt):
    """Look a prefix of whole blocks up by its last block alone, as a hash without its parent's does."""
    whole = len(prompt) // BLOCK * BLOCK
    return engine.found.setdefault(prompt[whole - BLOCK : whole], prompt[:whole]) + prompt[whole:]


def with_rejected_drafts(engine, prompt):
    """Hold, of the last text, what was fed: drafts that were rejected too."""
    held = engine.held[: common(engine.text, prompt)]
    return held + prompt[len(held) :]


def beginning(text, end):
    return text[:end]


def place_and_block(text, end):
    """What was before the block is not in the key; all blocks before it are known when it is looked up."""
    return end, text[end - SMALL : end]


def by_blocks(engine, prompt, key=beginning, left=False):
    """Go on behind full blocks of texts before; with ``left`` a draft rejected at the end of a block is in it."""
    for end in range(SMALL, len(engine.text), SMALL):
        last = engine.rejected.get(end - 1, engine.seen[end - 1]) if left else engine.seen[end - 1]
        engine.found.setdefault(key(engine.text, end), (*engine.seen[: end - 1], last))
    held = ()
    while len(held) + SMALL < len(prompt) and (found := engine.found.get(key(prompt, len(held) + SMALL))):
        held = found
    return held + prompt[len(held) :]


by_own_block = partial(by_blocks, key=place_and_block)
with_rejected_ends = partial(by_blocks, left=True)


def found_by_rejected_drafts(engine, prompt):
    """Find a block by the draft that was rejected at its end; another token has taken its place."""
    for end in range(SMALL, len(engine.text), SMALL):
        if end - 1 in engine.rejected:
            engine.found[(*engine.text[: end - 1], engine.rejected[end - 1])] = engine.seen[:end]
    return (*engine.found.get(prompt[:-1], prompt[:-1]), prompt[-1])


def without_its_own_end(engine, prompt):
    """The token that was emitted last was never fed, and a prompt that is the whole last text finds all of it held."""
    return prompt[:-1] if prompt == engine.text else prompt


def third_one_short(engine, prompt):
    return prompt[1:] if engine.served == 2 else prompt


def in_turn(make):
    """Return what the law says of requests in turn alone."""
    return law_verdict(make, (*IN_TURN, MANY_IN_TURN))


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("begin", [emptied, its_own_beginning, by_blocks])
def test_an_engine_that_serves_each_request_for_itself_holds(begin):
    verdict = in_turn(lambda scenario: Engine(scenario, begin).decode)
    assert (verdict.status, verdict.figures["cases"]) == (Status.HOLDS, len(IN_TURN) + 1)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    "begin",
    [
        never_emptied,
        by_length,
        by_last_block,
        with_rejected_drafts,
        third_one_short,
        without_its_own_end,
        by_own_block,
        with_rejected_ends,
        found_by_rejected_drafts,
    ],
    ids=lambda begin: getattr(begin, "__name__", "by blocks"),
)
def test_what_a_request_leaves_for_the_next_is_refuted(begin):
    verdict = in_turn(lambda scenario: Engine(scenario, begin).decode)
    assert verdict.status is Status.REFUTED
    assert ", then " in verdict.counterexample.let[0]


@pytest.mark.thorough
def test_such_engines_hold_where_they_are_asked_once():
    """So it is the requests before that refute them."""
    for begin in (never_emptied, by_length, by_last_block, with_rejected_drafts, third_one_short):
        subject = made_subject(partial(lambda begin, scenario: Engine(scenario, begin).decode, begin), "an engine")
        subject = subject.with_programs(subject.programs[2:3])
        assert run_check(subject, check_named("law_is_target"), Checklist(())).status is Status.HOLDS


def test_plain_requests_are_each_alone():
    """Both calls keep what went before, and so agree with each other; each is held to plain requests alone."""

    def make(scenario):
        return Made(Engine(scenario, by_length).decode, Engine(scenario, by_length).decode)

    assert in_turn(make).status is Status.REFUTED


def seeded(engine, prompt):
    engine.rng = np.random.default_rng(7)
    return prompt


def one_prompt_twice(make, check):
    """Return what a check says of two requests of one prompt."""
    subject = made_subject(make, "an engine")
    programs = [program for program in subject.programs if program.name == "open_after_4-v3-p012-h3-s61, then 012"]
    assert len(programs) == 1
    return run_check(subject.with_programs(tuple(programs)), check_named(check), Checklist(()))


@pytest.mark.parametrize("check", ["law_is_target", "draws_are_independent"])
def test_requests_of_one_seed_have_seeds_of_their_own_if_the_caller_chooses_them(check):
    """A seed that is an argument with a default gives one prompt one text, as it is meant to."""

    def make(scenario):
        engine = Engine(scenario, seeded)
        return lambda prompt, seed=7: engine.decode(prompt)

    assert one_prompt_twice(make, check).status is Status.HOLDS


def test_a_seed_that_is_set_for_every_request_may_be_meant_or_be_the_fault():
    verdict = one_prompt_twice(lambda scenario: Engine(scenario, seeded).decode, "law_is_target")
    assert verdict.status is Status.UNKNOWN
    assert "an argument with seed in its name; otherwise seed once" in verdict.statement


def test_a_call_without_a_prompt_gets_no_requests():
    subject = made_subject(lambda scenario: partial(Engine(scenario, emptied).decode, scenario.prompt), "an engine")
    assert not any(", then " in program.name for program in subject.programs)
    assert len(subject.programs) > len(SCENARIOS)


def test_a_call_of_two_arguments_is_refused():
    with pytest.raises(UnusableSubject, match=r"takes \(prompt, length\), expected one without arguments"):
        check_engine(lambda scenario: lambda prompt, length: prompt)


def test_the_quick_plan_has_the_same_requests_at_a_larger_vocabulary_and_the_batch_of_a_chosen_size():
    def quick(make, sizes=NO_SIZES):
        made = made_subject(make, "it", sizes=sizes)
        return sum(one.in_quick and one.in_batches for one in made.situations if isinstance(one, EngineProgram))

    def batched(scenario):
        return Made(lambda prompts: [[0] * scenario.horizon for _ in prompts], batched=True, stops=True)

    assert quick(WithVocabulary(batched, 9)) == quick(batched) > 40
    assert quick(batched, Sizes(rows=6)) == quick(batched) + 1


def test_texts_laid_end_to_end_have_the_product_of_their_laws():
    whole, horizon = [{(0,): 0.25, (1,): 0.75}, {(2, 3): 0.5, (3, 2): 0.5}], IN_TURN[0].scenario.horizon
    law = law_of_all(IN_TURN[0], whole)
    assert horizon > 2
    assert law == {
        (first, *ENDED, *second, *ENDED): mass
        for first, second, mass in ((0, (2, 3), 0.125), (0, (3, 2), 0.125), (1, (2, 3), 0.375), (1, (3, 2), 0.375))
    }


@pytest.mark.parametrize("cleared", [True, False])
def test_a_draft_left_over_from_the_end_of_a_text_must_not_be_tested_in_the_next(cleared):
    """The engine drafts ahead after each rejection, also after the last token of a text."""
    rng = np.random.default_rng()

    def make(scenario):
        ahead = []

        def decode(prompt):
            if cleared:
                ahead.clear()
            text = prompt
            while len(text) < len(prompt) + scenario.horizon:
                p, q = scenario.target(text), scenario.draft(text)
                x = ahead.pop() if ahead else drawn(rng, q)
                if rng.random() * q[x] < p[x]:
                    text = (*text, x)
                else:
                    more = np.maximum(p - q, 0)
                    text = (*text, drawn(rng, more / more.sum() if more.any() else p))
                    ahead.append(drawn(rng, scenario.draft(text)))
            return text[len(prompt) :]

        return decode

    subject = made_subject(make, "an engine")
    here = [each for each in subject.programs if each.name.startswith("open_after_3_4-") and ", then " in each.name]
    subject = subject.with_programs(here)
    verdict = run_check(subject, check_named("law_is_target"), Checklist(()))
    assert (verdict.status, len(here)) == (Status.HOLDS if cleared else Status.REFUTED, 1)


@pytest.mark.parametrize("slots", [17, 24, 32])
@pytest.mark.parametrize("requests", [MANY_IN_TURN, MANY_BATCHES_IN_TURN], ids=["requests", "batches"])
def test_one_wrong_slot_of_many_shows(requests, slots):
    """A request takes the next slot of a ring; slot 16 is not emptied when it is used again."""
    target = handed_task(requests.scenario, rational=False).target

    def engine(wrong):
        held = {}

        def decode(prompts):
            texts = []
            for prompt in prompts if requests.at_once else [prompts]:
                slot = len(served_slots) % slots
                served_slots.append(slot)
                text = (held.get(slot, ()) if slot == wrong else ()) + tuple(prompt)
                begin = len(text)
                while len(text) < begin + requests.scenario.horizon:
                    text += (int(np.argmax(target(text))),)
                held[slot] = text
                texts.append(text[begin:])
            return texts if requests.at_once else texts[0]

        served_slots = []
        return decode

    right, other = (served(requests, engine(wrong), batched=requests.at_once) for wrong in (None, 16))
    laws = [target_law(handed_task(each, rational=False), each.prompt) for each in requests.each]
    assert law_of_all(requests, laws) == {right: 1}
    assert other != right
