"""Engines that stop at a token: texts that end inside a block, in a batch, and before another request."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.certain_tables import is_certain, planned
from specverify.laws.ending_scenarios import ENDING_SCENARIOS, QUICK_ENDINGS
from specverify.laws.law import target_law
from specverify.laws.scenarios import handed_task
from specverify.run.quick import quick_plans
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import ENDING_AT_ONCE, ENDING_IN_TURN, PLANNED_ENDING
from specverify.subjects.requests import each_text, joined, law_of_all, served
from specverify.subjects.subject import UnusableSubject
from test_support.subjects.engine_laws import law_verdict

GAMMA = 3
MOSTLY_CERTAIN = tuple(scenario for scenario in ENDING_SCENARIOS if is_certain(scenario.shape))
"""Scenarios in which all rows, or all but one, are one-hot. They have few paths."""


def at(pmf, uniform):
    """Return the token at a uniform of the total."""
    return int(np.searchsorted(np.cumsum(pmf) / np.sum(pmf), uniform, side="right"))


class Engine:
    """Speculative decoding that stops; ``plan`` says what it does otherwise."""

    def __init__(self, scenario, plan=""):
        """Take the models of a scenario."""
        self.target, self.draft, self.horizon, self.eos = (
            scenario.target,
            scenario.draft,
            scenario.horizon,
            scenario.eos,
        )
        self.rng, self.plan, self.ended = np.random.default_rng(), plan, False

    def round(self, text):
        """Return what one round commits."""
        drafts = ()
        for _ in range(GAMMA):
            q, p = self.draft(text + drafts), self.target(text + drafts)
            x = at(q, self.rng.random())
            if not self.rng.random() < p[x] / q[x]:
                if self.plan == "a rejected end ends" and x == self.eos:
                    return (*drafts, x)
                return (*drafts, at(np.maximum(p - q, 0), self.rng.random()))
            drafts = (*drafts, x)
            if x == self.eos and self.plan not in {"the last of a block", "a bonus behind it"}:
                return drafts
        return (*drafts, at(self.target(text + drafts), self.rng.random()))

    def ends(self, prompt, text):
        """Return whether a text has ended."""
        looked_at = {"the last of a block": text[-1:], "an end in the prompt": text, "its text": text[:-1]}
        new = looked_at.get(self.plan, text[len(prompt) :])
        return len(text) >= len(prompt) + self.horizon or (len(text) > len(prompt) and self.eos in new)

    def decode(self, prompt):
        """Return the new tokens of one prompt."""
        text = tuple(prompt)
        while not self.ends(prompt, text) and not self.ended:
            text += self.round(text)
        self.ended = self.plan == "ended once" and self.eos in text[len(prompt) :]
        return text[len(prompt) : len(prompt) + self.horizon] or (0,)

    def batch(self, prompts):
        """Return the new tokens of each prompt, all of them in one loop."""
        texts = [tuple(prompt) for prompt in prompts]
        going = set(range(len(texts)))
        while going:
            for row in sorted(going):
                texts[row] += self.round(texts[row])
            gone = {row for row in going if self.ends(prompts[row], texts[row])}
            if self.plan == "ends by its place among the open rows":
                full = {row for row in gone if len(texts[row]) >= len(prompts[row]) + self.horizon}
                gone = full | {place for place, row in enumerate(sorted(going)) if row in gone}
            going = set() if gone and self.plan == "all end with the first" else going - gone
        return [text[len(prompt) :][: self.horizon] for prompt, text in zip(prompts, texts, strict=True)]


def single(plan=""):
    return lambda scenario: Made(Engine(scenario, plan).decode, stops=True)


def batched(plan=""):
    return lambda scenario: Made(Engine(scenario, plan).batch, batched=True, stops=True)


def verdict_of(make, names, check="law_is_target"):
    """Return what one check says in these scenarios or of these requests alone."""
    subject, wanted = made_subject(make, "an engine"), {item.name for item in names}
    subject = subject.with_programs(tuple(item for item in subject.programs if item.name in wanted))
    assert len(subject.programs) == len(wanted)
    return run_check(subject, check_named(check), Checklist(()))


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (single(), ENDING_SCENARIOS),
        (single(), ENDING_IN_TURN),
        (batched(), ENDING_SCENARIOS[::4]),
        (batched(), ENDING_AT_ONCE),
    ],
    ids=["alone", "in turn", "alone in a batch", "at once"],
)
def test_a_right_engine_holds(make, names):
    assert verdict_of(make, names).status is Status.HOLDS


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(
    ("make", "names"),
    [
        *((single(plan), MOSTLY_CERTAIN) for plan in ("the last of a block", "a bonus behind it", "its text")),
        *((single(plan), ENDING_SCENARIOS) for plan in ("a rejected end ends", "an end in the prompt")),
        (single("ended once"), ENDING_IN_TURN),
        (batched("all end with the first"), ENDING_AT_ONCE),
        (batched("ends by its place among the open rows"), PLANNED_ENDING),
    ],
    ids=["last of a block", "bonus", "late", "rejected", "in the prompt", "ended once", "all at once", "by place"],
)
def test_a_wrong_engine_is_refuted(make, names):
    assert verdict_of(make, names).status is Status.REFUTED


def test_who_does_not_say_that_it_stops_is_asked_for_no_text_that_ends():
    asked = {item.name for item in made_subject(lambda scenario: Engine(scenario).decode, "an engine").programs}
    assert not asked & {item.name for item in (*ENDING_SCENARIOS, *ENDING_IN_TURN)}


def test_padding_is_told_from_text():
    """Rows of one length are an array's: what is behind an end may be no token at all."""

    def padded(scenario):
        def decode(prompts):
            rows = Engine(scenario).batch(prompts)
            longest = max(map(len, rows))
            return np.array([[*row, *[0] * (longest - len(row))] for row in rows])

        return Made(decode, batched=True, stops=True)

    verdict = verdict_of(padded, ENDING_AT_ONCE)
    assert verdict.status is Status.UNUSABLE
    assert "repeats the token 0 " in verdict.statement
    assert " after its end, like padding" in verdict.statement
    assert "cut it after scenario.eos" in verdict.statement


def test_rows_that_are_no_tokens_are_said_to_be_none():
    with pytest.raises(UnusableSubject, match=r"it returned \[None, None\], expected a row of new token ids"):
        served(ENDING_AT_ONCE[0], lambda prompts: [None for _ in prompts], batched=True)


def test_certain_texts_end_at_every_place_of_a_block():
    certain = [item for item in ENDING_SCENARIOS if item.shape == "certain"]
    lengths = [len(next(iter(target_law(handed_task(item, rational=False), item.prompt)))) for item in certain]
    assert lengths == [*range(1, 9), 12, 4, *range(6, 10)]


def test_quick_runs_have_texts_that_end():
    assert set(QUICK_ENDINGS) <= set(ENDING_SCENARIOS)


def test_one_row_decides_whether_a_text_ends():
    planned = [item for item in ENDING_SCENARIOS if item.shape.startswith("planned") and "x" in item.shape]
    laws = [target_law(handed_task(item, rational=False), item.prompt) for item in planned]
    short = [(place, 8) for place in (*range(2, 6), *range(2, 6), *range(3, 7))]
    behind_accepted_drafts = [*((place, place + 3) for place in range(6, 12)), (6, 7, 8, 12)]
    assert [tuple(sorted({*map(len, law)})) for law in laws] == [*short, *behind_accepted_drafts]


def test_ends_come_late_or_after_a_long_prompt_and_before_the_last_token_of_a_block():
    late = [item for item in ENDING_SCENARIOS if item.shape.endswith("eaaa")]
    ends = {
        len(item.prompt): len(next(iter(target_law(handed_task(item, rational=False), item.prompt)))) for item in late
    }
    assert ends == {1: 73, 67: 1}
    assert all((end - 1) % (gamma + 1) < gamma for end in ends.values() for gamma in range(1, 9))


def test_a_text_ends_at_every_place_of_rounds_that_are_accepted_whole():
    ends = set()
    for scenario in (item for item in ENDING_SCENARIOS if item.shape == "certain"):
        task = handed_task(scenario, rational=False)
        (new,) = target_law(task, scenario.prompt)
        texts = [scenario.prompt + new[:place] for place in range(len(new))]
        if len(new) < scenario.horizon and all((task.target(text) == task.draft(text)).all() for text in texts):
            ends.add(len(new))
    assert ends == set(range(1, 10))


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("gamma", "place"), [(gamma, place) for gamma in (3, 5, 8) for place in (gamma - 1, gamma)])
def test_an_end_at_one_place_of_a_block_that_is_overlooked_is_refuted(gamma, place):
    def make(scenario):
        def decode(prompt):
            text = tuple(prompt)
            while len(text) < len(prompt) + scenario.horizon:
                new = ()
                while len(new) <= gamma and len(text + new) < len(prompt) + scenario.horizon:
                    p, q = scenario.target(text + new), scenario.draft(text + new)
                    new = (*new, int(np.argmax(p)))
                    if new[-1] != int(np.argmax(q)):
                        break
                end = next((at for at, token in enumerate(new) if token == scenario.eos and at != place), None)
                if end is not None:
                    return text[len(prompt) :] + new[: end + 1]
                text += new
            return text[len(prompt) :]

        return Made(decode, stops=True)

    names = [item for item in ENDING_SCENARIOS if item.shape == "certain"]
    assert verdict_of(make, names).status is Status.REFUTED


def unsure_engine(scenario, stops, *, wrong):
    """An engine that drafts until it is unsure; a wrong one overlooks an end in the rounds with the fewest drafts."""
    rng, least = np.random.default_rng(), int(stops != "at once")

    def round_after(text):
        drafts = ()
        while len(drafts) < GAMMA:
            q, p = scenario.draft(text + drafts), scenario.target(text + drafts)
            unsure = max(q) < 0.6
            if unsure and (stops == "at once" or (drafts and stops == "before")):
                break
            x = at(q, rng.random())
            if not rng.random() < p[x] / q[x]:
                return len(drafts) + 1, (*drafts, at(np.maximum(p - q, 0), rng.random()))
            drafts = (*drafts, x)
            if unsure:
                break
        return len(drafts), (*drafts, at(scenario.target(text + drafts), rng.random()))

    def decode(prompt):
        text = tuple(prompt)
        while len(text) < len(prompt) + scenario.horizon:
            drafted, new = round_after(text)
            first = len(text) == len(prompt)
            if scenario.eos in new and not (wrong and drafted == least and not (first and not drafted)):
                return (text + new[: new.index(scenario.eos) + 1])[len(prompt) :][: scenario.horizon]
            text += new
        return text[len(prompt) : len(prompt) + scenario.horizon]

    return Made(decode, stops=True)


@pytest.mark.parametrize("stops", ["before", "after", "at once"])
def test_an_end_where_an_unsure_drafter_drafts_little_is_not_overlooked(stops):
    unsure = [item for item in QUICK_ENDINGS if item.shape == "generic"]
    assert verdict_of(partial(unsure_engine, stops=stops, wrong=False), unsure).status is Status.HOLDS
    assert verdict_of(partial(unsure_engine, stops=stops, wrong=True), unsure).status is Status.REFUTED


def test_texts_laid_end_to_end_are_told_apart():
    requests = ENDING_AT_ONCE[0]
    laws = [target_law(handed_task(each, rational=False), each.prompt) for each in requests.each]
    (whole,) = law_of_all(requests, laws)
    assert list(each_text(requests, whole)) == [next(iter(law)) for law in laws]
    assert len({len(next(iter(law))) for requests in ENDING_AT_ONCE[:4] for law in laws}) > 1


def empty_after_an_end(scenario):
    """Return a call that decodes nothing if the prompt holds the end token."""
    engine = Engine(scenario)
    return lambda prompt: () if scenario.eos in prompt else engine.decode(prompt)


def token_by_token(scenario):
    """Return the same without speculation."""
    rng = np.random.default_rng()

    def decode(prompt):
        new = ()
        while scenario.eos not in prompt + new and len(new) < scenario.horizon:
            new += (at(scenario.target(prompt + new), rng.random()),)
        return new

    return decode


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (ENDING_SCENARIOS[2:3], "the text ends after 0 of 3 new tokens"),
        (ENDING_SCENARIOS[4:5], "the text is empty: the prompt holds the end token 0, which ends no text"),
        (ENDING_IN_TURN[1:2], "request 1, the text is empty: the prompt holds the end token 0, which ends no text"),
    ],
    ids=["drawn", "greedy", "in turn"],
)
def test_an_empty_text_is_a_text_where_the_prompt_holds_the_end(names, said):
    found = verdict_of(lambda scenario: Made(empty_after_an_end(scenario), stops=True), names)
    assert found.status is Status.REFUTED
    assert found.counterexample.fault.startswith(said)
    alike = verdict_of(lambda scenario: Made(empty_after_an_end(scenario), token_by_token(scenario), stops=True), names)
    assert alike.status is Status.HOLDS


def test_another_empty_text_is_unusable_and_its_prompt_is_named():
    verdict = verdict_of(lambda scenario: Made(lambda _: (), stops=True), ENDING_SCENARIOS[1:2])
    assert verdict.status is Status.UNUSABLE
    assert "it returned no token" in verdict.statement
    with pytest.raises(UnusableSubject, match=r"it returned no token for the prompt \(3,\), expected at least one"):
        served(ENDING_IN_TURN[1], lambda prompt: () if prompt == (3,) else (0,), batched=False)


def test_concatenated_texts_are_told_apart_if_one_is_empty():
    requests = ENDING_IN_TURN[1]
    texts = ((), (1, 0), (2, 3, 1, 2, 3, 1))
    assert tuple(each_text(requests, joined(requests, texts))) == texts
    assert law_of_all(requests, [{(): 1}, {(1, 0): 1}, {texts[2]: 1}]) == {joined(requests, texts): 1}


def test_texts_that_end_early_without_an_end_token_are_told_apart():
    requests = ENDING_IN_TURN[1]
    texts, shifted = ((1, 2), (3,), (2, 0)), ((1,), (2, 3), (2, 0))
    assert tuple(each_text(requests, joined(requests, texts))) == texts
    assert joined(requests, texts) != joined(requests, shifted)


class LeastTokens:
    """Speculative decoding of two tokens, of which 1 ends the text, but not before ``LEAST`` new tokens.

    ``counted`` is how the new tokens are counted: right, at the start of the round instead of at each position, or one
    too few in a round after a rejection.
    """

    LEAST = 4

    def __init__(self, scenario, counted):
        """Take the models of ``scenario``."""
        self.scenario, self.counted, self.rng = scenario, counted, np.random.default_rng()

    def permitted(self, row, number):
        """Return ``row`` without its end token if ``number`` new tokens are too few to end and others are possible."""
        row = np.array(row, float)
        if number < self.LEAST and self.scenario.eos is not None and row[self.scenario.eos] < 1:
            row[self.scenario.eos] = 0
        return row / row.sum()

    def plain(self, prompt):
        """Return the new tokens without speculation."""
        new = []
        while len(new) < self.scenario.horizon and self.scenario.eos not in new:
            new.append(at(self.permitted(self.scenario.target((*prompt, *new)), len(new)), self.rng.random()))
        return new

    def fast(self, prompt):
        """Return the new tokens with speculation."""
        new, rejected = [], False
        while len(new) < self.scenario.horizon and self.scenario.eos not in new:
            start, fewer, rejected = len(new), rejected and self.counted == "after a rejection", False
            for _ in range(GAMMA + 1):
                number = start if self.counted == "by round" else len(new) - fewer
                p = self.permitted(self.scenario.target((*prompt, *new)), number)
                q = self.scenario.draft((*prompt, *new))
                draft = at(q, self.rng.random())
                if self.rng.random() < p[draft] / q[draft]:
                    new.append(draft)
                else:
                    new.append(at(np.maximum(p - q, 0), self.rng.random()))
                    rejected = True
                    break
                if draft == self.scenario.eos:
                    break
        return new[: self.scenario.horizon]


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("counted", ["right", "by round", "after a rejection"])
def test_a_wrong_count_of_the_least_number_of_tokens_is_refuted_in_quick(counted):
    def make(scenario):
        engine = LeastTokens(scenario, counted)
        return Made(engine.fast, engine.plain, stops=True)

    assert ("", ENDING_SCENARIOS[0].name) in quick_plans()["engine"]["law_is_target"]
    status = law_verdict(make, [ENDING_SCENARIOS[0], *QUICK_ENDINGS]).status
    assert status is (Status.HOLDS if counted == "right" else Status.REFUTED)


def least_length(counted, gamma=2, least=3):
    """Return a factory of engines that forbid the end before ``least`` tokens, in the rows of both models.

    With ``counted`` "by round" every row of a round has the mask of its first row.
    """

    def make(s):
        rng = np.random.default_rng()

        def allowed(new):
            return [token != s.eos or len(new) >= least for token in range(s.vocabulary)]

        def masked(model, text, new):
            return model(text) * np.array(allowed(new), dtype=float)

        def drawn(weights):
            return int(
                rng.choice(len(weights), p=weights / weights.sum())
            )  # raises ValueError if no weight is positive

        def decode(prompt):
            new = ()
            while len(new) < s.horizon and s.eos not in new:
                start = new
                for _ in range(min(gamma, s.horizon - len(new) - 1)):
                    read = start if counted == "by round" else new
                    p, q = (masked(model, (*prompt, *new), read) for model in (s.target, s.draft))
                    draft = drawn(q)
                    if rng.random() * q[draft] / q.sum() >= p[draft] / p.sum():
                        new += (drawn(np.maximum(p / p.sum() - q / q.sum(), 0)),)
                        break
                    new += (draft,)
                    if draft == s.eos:
                        return new
                else:
                    new += (drawn(masked(s.target, (*prompt, *new), start if counted == "by round" else new)),)
            return new

        return Made(decode, stops=True, allowed=allowed)

    return make


@pytest.mark.usefixtures("unexplained")
def test_an_engine_is_not_unusable_where_its_constraint_forbids_every_possible_draft():
    engine = least_length("right")
    (rejected_end,) = (item for item in ENDING_SCENARIOS if item.shape == planned(("dx",)) and item.seed == 55)
    verdict = law_verdict(engine, [ENDING_SCENARIOS[1], rejected_end])
    assert verdict.status is Status.HOLDS
    assert any("forbids every token that a row makes possible" in note for note in verdict.figures["notes"])
    assert law_verdict(engine, [rejected_end]).status is Status.UNKNOWN


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("counted", ["right", "by round"])
def test_a_mask_of_the_first_row_of_a_round_is_refuted_in_quick(counted):
    status = law_verdict(least_length(counted), [ENDING_SCENARIOS[1], *QUICK_ENDINGS]).status
    assert status is (Status.HOLDS if counted == "right" else Status.REFUTED)


@pytest.mark.usefixtures("unexplained")
def test_an_error_elsewhere_is_held_against_an_engine_with_a_constraint():
    def make(s):
        def decode(prompt):
            s.target(prompt)
            raise ValueError("no cache")

        return Made(decode, stops=True, allowed=lambda new: np.ones(s.vocabulary))

    verdict = law_verdict(make, [ENDING_SCENARIOS[1]])
    assert verdict.status is Status.UNUSABLE
    assert "no cache" in verdict.statement


def growing(first_wrong):
    """Return a factory of engines that draft one token more after each round that is accepted whole.

    An accepted end is drawn again if it is draft ``first_wrong`` of its round or a later one.
    """

    def make(s):
        rng = np.random.default_rng()

        def decode(prompt):
            new, gamma = (), 2
            while len(new) < s.horizon and s.eos not in new:
                drafts = ()
                for _ in range(min(gamma, s.horizon - len(new) - 1)):
                    q = s.draft((*prompt, *new, *drafts))
                    drafts += (at(q, rng.random()),)
                    if drafts[-1] == s.eos:
                        break
                p = [s.target((*prompt, *new, *drafts[:i])) for i in range(len(drafts) + 1)]
                q = [s.draft((*prompt, *new, *drafts[:i])) for i in range(len(drafts))]
                kept = [rng.random() * q[i][x] < p[i][x] for i, x in enumerate(drafts)]
                count = [*kept, False].index(False)
                if count < len(drafts):
                    last = (at(np.maximum(p[count] - q[count], 0), rng.random()),)
                elif drafts[-1:] == (s.eos,):
                    last = () if count < first_wrong else (at(p[count - 1], rng.random()),)
                    count -= bool(last)
                else:
                    last = (at(p[count], rng.random()),)
                gamma += count == len(drafts)
                new += (*drafts[:count], *last)
            return new

        return Made(decode, stops=True)

    return make


@pytest.mark.parametrize(("first_wrong", "expected"), [(99, Status.HOLDS), (3, Status.REFUTED)])
def test_an_end_at_a_late_draft_is_examined_in_quick(first_wrong, expected):
    verdict = law_verdict(growing(first_wrong), list(QUICK_ENDINGS))
    assert verdict.status is expected
    if expected is Status.REFUTED:
        assert verdict.counterexample.fault.startswith("draft 3 is left out after it is drawn")


def looking_up(first_uncut):
    """Return a factory of greedy engines that look their three drafts up in the text.

    An accepted end is cut off if it is an earlier draft of its round than ``first_uncut``.
    """

    def make(s):
        def drafts_of(text):
            key = text[-2:]
            place = next((i for i in range(len(text) - 2, 1, -1) if text[i - 2 : i] == key), len(text))
            return text[place : place + 3]

        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + s.horizon
            while len(text) < end:
                drafts = drafts_of(text)
                for number, token in enumerate([*drafts, None], 1):
                    best = int(np.random.choice(s.vocabulary, p=s.target(text)))
                    text += (best,)
                    if best == s.eos and (number < first_uncut or best != token):
                        return text[len(prompt) : end]
                    if best != token or len(text) == end:
                        break
                if s.eos in text[len(prompt) :]:
                    break
            return text[len(prompt) : end]

        return Made(decode, stops=True)

    return make


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("first_uncut", "expected"), [(9, Status.HOLDS), (2, Status.REFUTED), (3, Status.REFUTED)])
def test_an_end_at_each_draft_that_is_looked_up_is_examined(first_uncut, expected):
    looked_up = [item for item in ENDING_SCENARIOS if item.shape.startswith("periodic")]
    assert law_verdict(looking_up(first_uncut), looked_up).status is expected
