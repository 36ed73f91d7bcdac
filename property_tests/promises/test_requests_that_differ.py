"""Batches whose rows have parameters of their own: a temperature, a mask, a model."""

from functools import partial

import numpy as np
import pytest

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine_factories import WithParameters
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import AT_ONCE, ENDS_AFTER_A_ROW_HAS_LEFT
from specverify.testing import Made, Sizes, UnusableSubject, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

HOW = {"quick": True, "on_fail": None, "checks": ["law_is_target"], "sizes": Sizes(least_vocabulary=4)}


def processed(row, parameters):
    weights = np.array(row) ** (1 / parameters["temperature"])
    if parameters.get("shift"):
        weights = np.roll(weights, 1)
    return weights / weights.sum()


PARAMETERS = ({"temperature": 1.0}, {"temperature": 0.5, "shift": True})


def engine(of_row, draft_of_row=None):
    """``of_row(rows, row)`` is the parameters that a row is verified with."""

    def make(s):
        def decode(prompts, parameters):
            return [text(prompt, of_row(parameters, row), parameters[row]) for row, prompt in enumerate(prompts)]

        def text(prompt, mine, drafted):
            new = ()
            while len(new) < s.horizon:
                q = processed(s.draft(tuple(prompt) + new), drafted)
                p = processed(s.target(tuple(prompt) + new), mine)
                token = int(np.random.choice(s.vocabulary, p=q))
                if not np.random.random() < p[token] / q[token]:
                    left = np.maximum(p - q, 0)
                    left = left if left.sum() > 0 else p
                    token = int(np.random.choice(s.vocabulary, p=left / left.sum()))
                new += (token,)
            return new

        def plain(prompts, parameters):
            return [alone(tuple(prompt), parameters[row]) for row, prompt in enumerate(prompts)]

        def alone(prompt, mine):
            new = ()
            while len(new) < s.horizon:
                new += (int(np.random.choice(s.vocabulary, p=processed(s.target(prompt + new), mine))),)
            return new

        return Made(decode, plain, batched=True, parameters=PARAMETERS)

    return make


def status(make):
    return {v.check: v.status for v in check_engine(make, **HOW)}["law_is_target"]


RIGHT = {
    "own": lambda rows, row: rows[row],
    "a copy": lambda rows, row: dict(rows[row]),
    "found in a table": lambda rows, row: dict(enumerate(rows))[row],
    "merged with defaults": lambda rows, row: {"temperature": 1.0, "shift": False, **rows[row]},
}
WRONG = {
    "the first row's": lambda rows, row: rows[0],
    "the last row's": lambda rows, row: rows[-1],
    "the row's before": lambda rows, row: rows[row - 1],
    "merged": lambda rows, row: {key: value for each in rows for key, value in each.items()},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT)
def test_rows_with_parameters_of_their_own_hold(name):
    assert status(engine(RIGHT[name])) == "holds"


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", WRONG)
def test_rows_with_parameters_of_others_are_refuted(name):
    assert status(engine(WRONG[name])) == "refuted"


SAME_PROMPT = AT_ONCE[-4]
"""A batch of two random rows with the same prompt, which are too often equal if they share a seed."""
LEAST = (0, 2)
"""The least number of new tokens of a text, for two kinds of requests."""


class PersistentBatch:
    """An engine whose last row moves into the place of one that has ended.

    ``once_per_round`` decides at the beginning of a round whether the text may end, and without ``moved`` the moved row
    gets the least number of tokens of the row that was there.
    """

    def __init__(self, s, *, once_per_round=False, moved=True):
        """Take the models of the scenario ``s``."""
        self.s, self.once_per_round, self.moved = s, once_per_round, moved

    def drawn(self, row):
        return int(np.random.choice(len(row), p=row))

    def without_end(self, row, length, least):
        row = np.array(row)
        if self.s.eos is not None and length < least and row[self.s.eos] < 1:
            row[self.s.eos] = 0
        return row / row.sum()

    def one_round(self, text, begin, least):
        """Return ``text``, whose new tokens begin at ``begin``, with at most three more."""
        new, told = (), len(text) - begin
        while len(new) < 3 and len(text + new) < begin + self.s.horizon:
            length = told if self.once_per_round else len(text + new) - begin
            q, p = (self.without_end(row(text + new), length, least) for row in (self.s.draft, self.s.target))
            token = self.drawn(q)
            kept = np.random.random() < p[token] / q[token]
            left = np.maximum(p - q, 0)
            new += (token if kept else self.drawn(left / left.sum()),)
            if not kept or new[-1] == self.s.eos:
                break
        return text + new

    def decode(self, prompts, parameters):
        rows, least = [[n, tuple(prompt)] for n, prompt in enumerate(prompts)], list(parameters)
        begins, done = [len(prompt) for prompt in prompts], {}
        while rows:
            for place, row in enumerate(rows):
                row[1] = self.one_round(row[1], begins[row[0]], least[place])
            for place in reversed(range(len(rows))):
                number, text = rows[place]
                if text[-1] == self.s.eos or len(text) == begins[number] + self.s.horizon:
                    done[number] = text[begins[number] :]
                    rows[place] = rows[-1]
                    if self.moved:
                        least[place] = least[len(rows) - 1]
                    rows.pop()
        return [done[number] for number in range(len(prompts))]

    def plain(self, prompts, parameters):
        return [self.alone(tuple(prompt), least) for prompt, least in zip(prompts, parameters, strict=True)]

    def alone(self, prompt, least):
        new = ()
        while len(new) < self.s.horizon and (not new or new[-1] != self.s.eos):
            new += (self.drawn(self.without_end(self.s.target(prompt + new), len(new), least)),)
        return new


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [({}, "holds"), ({"once_per_round": True}, "refuted"), ({"moved": False}, "refuted")],
    ids=["right", "decided once a round", "kept at its place"],
)
def test_a_least_number_of_tokens_belongs_to_the_request(wrong, expected):
    def make(s):
        engine = PersistentBatch(s, **wrong)
        return Made(engine.decode, engine.plain, batched=True, stops=True, parameters=LEAST)

    def is_examined(program):
        alone, together = program.name.endswith(", parameters 2"), program.name == ENDS_AFTER_A_ROW_HAS_LEFT.name
        return program.in_quick and (alone or together)

    subject = made_subject(WithParameters(make), "an engine")
    subject = subject.with_programs(tuple(filter(is_examined, subject.programs)))
    assert run_check(subject, check_named("law_is_target"), Checklist(())).status == expected


def test_parameters_need_a_plain_call():
    with pytest.raises(UnusableSubject, match="a call without speculation"):
        check_engine(lambda s: Made(lambda prompts, parameters: [], batched=True, parameters=PARAMETERS))


def with_seeds_too(scenario, wrong):
    """Return an engine of rows with a temperature and a seed each; ``wrong``: the seed of the first row in all."""

    def one(prompt, temperature, seed, drafts):
        rng, text = np.random.default_rng(seed), tuple(prompt)
        while len(text) < len(prompt) + scenario.horizon:
            p, q = (np.array(model(text)) ** (1 / temperature) for model in (scenario.target, scenario.draft))
            p, q = p / p.sum(), q / q.sum()
            draft = int(rng.choice(len(q), p=q)) if drafts else None
            if draft is None or rng.random() >= p[draft] / q[draft]:
                left = np.maximum(p - q, 0) if drafts else p
                draft = int(rng.choice(len(p), p=left / left.sum()))
            text += (draft,)
        return text[len(prompt) :]

    def rows(drafts):
        def decode(prompts, *, temperatures, seeds, max_new_tokens):
            assert max_new_tokens == scenario.horizon
            given = [seeds[0]] * len(seeds) if wrong and drafts else seeds
            return [one(*each, drafts) for each in zip(prompts, temperatures, given, strict=True)]

        return decode

    return Made(rows(drafts=True), rows(drafts=False), batched=True, parameters=(0.5, 2.0))


@pytest.mark.parametrize(("wrong", "expected"), [(False, "holds"), (True, "refuted")])
def test_rows_may_have_seeds_beside_their_parameters(wrong, expected):
    """In a pair of the promise "batch" all rows have one parameter: the place of a row differs."""
    make = partial(with_seeds_too, wrong=wrong)
    (found,) = check_engine(make, promises=("batch",), checks=["batch_is_alone"], quick=True, on_fail=None)
    assert found.status == expected, found


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("wrong", "expected"), [(False, "holds"), (True, "refuted")])
def test_the_law_of_rows_with_seeds_is_examined(wrong, expected):
    subject = made_subject(WithParameters(partial(with_seeds_too, wrong=wrong)), "an engine")
    few = subject.with_programs(tuple(program for program in subject.programs if program.name == SAME_PROMPT.name))
    assert run_check(few, check_named("law_is_target"), Checklist(())).status == expected
