"""Engines in the forms in which people write them: how they are called, and what they return."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import namedtuple
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.run.verify import Checklist, run_check
from specverify.subjects.alphabet_hint import alphabet_hint
from specverify.subjects.engine_answers import new_tokens, read_answer_rows
from specverify.subjects.engine_factories import WithVocabulary
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import AT_ONCE, ENDING_AT_ONCE, IN_TURN
from specverify.subjects.subject import UnusableSubject
from specverify.testing import Sizes, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

PAD = -100


class Core:
    """Speculative decoding of one draft a round; the wrong one draws what replaces a rejected draft from p."""

    def __init__(self, scenario, wrong):
        """Take the models of a scenario."""
        self.scenario, self.wrong, self.rng = scenario, wrong, np.random.default_rng()

    def tokens(self, prompt, rng=None):
        """Yield the new tokens."""
        rng = rng or self.rng
        text, end = tuple(map(int, prompt)), len(prompt) + self.scenario.horizon
        while len(text) < end and self.scenario.eos not in text[len(prompt) :]:
            p, q = self.scenario.target(text), self.scenario.draft(text)
            token = int(rng.choice(len(q), p=q))
            if not rng.random() < p[token] / q[token]:
                left = p if self.wrong else np.maximum(p - q, 0)
                token = int(rng.choice(len(p), p=left / left.sum()))
            text = (*text, token)
            yield token

    def new(self, prompt, rng=None):
        """Return the new tokens as a list."""
        return list(self.tokens(prompt, rng))

    def seeded(self, prompt, seed):
        """Return them, drawn from a generator of their own."""
        return self.new(prompt, np.random.default_rng(seed))


@dataclass
class Output:
    """One sample."""

    token_ids: Any
    logprobs: Any = None


@dataclass
class RequestOutput:
    """What a server returns for a request."""

    prompt_token_ids: Any
    outputs: list[Output]


@dataclass
class SamplingParams:
    """Sampling parameters, each with a default."""

    temperature: float = 1.0
    seed: int | None = None


class Options:
    """Attributes alone."""

    seed = None
    top_k = -1


Settings = namedtuple("Settings", ["seed", "top_p"], defaults=(1.0,))  # noqa: PYI024 - as people write it
Result = namedtuple("Result", ["tokens", "rounds"])  # noqa: PYI024 - as above


# Arguments


def seed_by_place(core):
    def decode(prompt, seed):
        return core.seeded(prompt, seed)

    return decode


def seed_by_name(core):
    def decode(prompt, *, random_seed):
        return core.seeded(prompt, random_seed)

    return decode


def seed_first(core):
    return lambda seed, prompt: core.seeded(prompt, seed)


def seed_and_defaults(core):
    def decode(prompt, max_tokens=None, *, seed, temperature=1.0):
        return core.seeded(prompt, seed)

    return decode


def seeds_of_both_models(core):
    def decode(prompt, target_seed, draft_seed):
        return core.new(prompt, _Two(np.random.default_rng(target_seed), np.random.default_rng(draft_seed)))

    return decode


class _Two:
    """Drafts from one generator and accepts with another."""

    def __init__(self, coins, drafts):
        self.random, self.choice = coins.random, drafts.choice


def seed_in_a_data_class(core):
    def decode(prompt, params: SamplingParams):
        return core.seeded(prompt, params.seed)

    return decode


def seed_in_a_named_tuple(core):
    def decode(prompt, settings: Settings):
        return core.seeded(prompt, settings.seed)

    return decode


def seed_in_a_dict(core):
    def decode(prompt, options: dict[str, Any]):
        return core.seeded(prompt, options.pop("seed"))

    return decode


def seed_in_a_mapping(core):
    def decode(prompt, sampling_params: Mapping[str, int]):
        return core.seeded(prompt, sampling_params.get("seed"))

    return decode


def seed_in_an_object(core):
    def decode(prompt, options: Options):
        return core.seeded(prompt, options.seed)

    return decode


def seed_in_what_is_not_annotated(core):
    def decode(prompt, params):
        assert params["seed"] == params.seed
        return core.seeded(prompt, params.seed)

    return decode


def seed_of_a_method(core):
    class Server:
        def generate(self, input_ids, seed: int):
            return core.seeded(input_ids, seed)

    return Server().generate


def seed_in_a_default(core):
    def decode(prompt, params=None):
        return core.seeded(prompt, params.seed)

    return partial(decode, params=SamplingParams(seed=7))


def prompt_as_a_list(core):
    return lambda prompt: core.new((prompt + [0])[:-1])  # noqa: RUF005 - a tuple would raise


def prompt_as_an_array(core):
    return lambda prompt: core.new(prompt.astype(np.int64).tolist())


# Answers of one prompt


def as_tuple(core):
    return lambda prompt: tuple(core.new(prompt))


def as_array(core):
    return lambda prompt: np.array(core.new(prompt))


def as_row_of_an_array(core):
    return lambda prompt: np.array([core.new(prompt)])


def as_list_of_one(core):
    return lambda prompt: [core.new(prompt)]


def with_placeholders(core):
    def decode(prompt):
        new = core.new(prompt)
        return np.array([*new, *[-1] * 3])

    return decode


def behind_the_prompt(core):
    return lambda prompt: [*prompt, *core.new(prompt)]


def behind_the_prompt_in_a_row(core):
    return lambda prompt: {"sequences": np.array([[*prompt, *core.new(prompt)]])}


def in_a_dict(core):
    return lambda prompt: {"tokens": core.new(prompt), "rounds": 3}


def in_a_named_tuple(core):
    return lambda prompt: Result(core.new(prompt), 2)


def in_a_data_class(core):
    return lambda prompt: Output(np.array(core.new(prompt)))


def in_a_request(core):
    return lambda prompt: RequestOutput(list(prompt), [Output(core.new(prompt))])


def with_a_length(core):
    return lambda prompt: {"tokens": [*core.new(prompt), 0, 0], "length": core.scenario.horizon}


# Answers that come later


def later(core):
    async def decode(prompt):
        await asyncio.sleep(0)
        return core.new(prompt)

    return decode


def later_by_a_plain_function(core):
    async def work(text):
        return core.new(text)

    return lambda prompt: work([*prompt])


def later_and_seeded(core):
    class Server:
        async def generate(self, prompt, *, seed):
            new = await asyncio.gather(self._new(prompt, seed))
            return Output(new[0])

        async def _new(self, prompt, seed):
            return core.seeded(prompt, seed)

    return Server().generate


def one_by_one(core):
    return core.tokens


def one_by_one_later(core):
    async def decode(prompt):
        for token in core.tokens(prompt):
            yield token
            await asyncio.sleep(0)

    return decode


def in_chunks(core):
    def decode(prompt):
        new = core.new(prompt)
        yield new[:1]
        if len(new) > 1:
            yield np.array(new[1:])

    return decode


def in_one_list_of_chunks(core):
    def decode(prompt):
        chunk = []
        for token in core.new(prompt):
            chunk[:] = [token]
            yield chunk

    return decode


def in_chunks_with_names_later(core):
    async def stream(prompt):
        for token in core.tokens(prompt):
            yield {"token_ids": [token]}

    async def decode(prompt):
        return stream(prompt)

    return decode


def without_an_end(core):
    def decode(prompt):
        text = list(prompt)
        while True:
            for token in core.tokens(text):
                text.append(token)
                yield token

    return decode


# Batches


def padded_right(rows):
    longest = max(map(len, rows))
    return [[*row, *[PAD] * (longest - len(row))] for row in rows]


def padded_left(rows, pad=PAD):
    longest = max(map(len, rows))
    return [[*[pad] * (longest - len(row)), *row] for row in rows]


def batch_of(shape):
    def form(core):
        return Made(lambda prompts: shape(core, prompts, [core.new(prompt) for prompt in prompts]), batched=True)

    form.__name__ = shape.__name__
    return form


@batch_of
def lists(core, prompts, rows):
    return rows


@batch_of
def tuples(core, prompts, rows):
    return tuple(map(tuple, rows))


@batch_of
def rows_of_arrays(core, prompts, rows):
    return [np.array(row) for row in rows]


@batch_of
def one_array(core, prompts, rows):
    return np.array(rows)


@batch_of
def array_behind_padded_prompts(core, prompts, rows):
    return np.array(padded_left([[*prompt, *row] for prompt, row in zip(prompts, rows, strict=True)], pad=0))


@batch_of
def masked_behind_prompts(core, prompts, rows):
    whole = [[*prompt, *row] for prompt, row in zip(prompts, rows, strict=True)]
    mask = padded_left([[1] * len(row) for row in whole], pad=0)
    return {"sequences": np.array(padded_left(whole, pad=1)), "attention_mask": np.array(mask)}


@batch_of
def ragged_behind_prompts(core, prompts, rows):
    return [[*prompt, *row] for prompt, row in zip(prompts, rows, strict=True)]


@batch_of
def requests(core, prompts, rows):
    return [RequestOutput(prompt, [Output(row)]) for prompt, row in zip(prompts, rows, strict=True)]


@batch_of
def lengths_beside_ragged_rows(core, prompts, rows):
    return {"token_ids": rows, "lengths": [len(row) for row in rows]}


def batch_with_seeds(core):
    def decode(prompts, seeds):
        assert len(set(seeds)) == len(prompts)
        return [core.seeded(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    return Made(decode, batched=True)


def batch_later(core):
    async def one(prompt):
        return core.new(prompt)

    async def decode(prompts):
        return await asyncio.gather(*map(one, prompts))

    return Made(decode, batched=True)


ARGUMENTS = (
    seed_by_place, seed_by_name, seed_first, seed_and_defaults, seeds_of_both_models, seed_in_a_data_class,
    seed_in_a_named_tuple, seed_in_a_dict, seed_in_a_mapping, seed_in_an_object, seed_in_what_is_not_annotated,
    seed_of_a_method, seed_in_a_default, prompt_as_a_list, prompt_as_an_array,
)  # fmt: skip
ANSWERS = (
    as_tuple, as_array, as_row_of_an_array, as_list_of_one, with_placeholders, behind_the_prompt,
    behind_the_prompt_in_a_row, in_a_dict, in_a_named_tuple, in_a_data_class, in_a_request, with_a_length,
)  # fmt: skip
LATER = (
    later, later_by_a_plain_function, later_and_seeded, one_by_one, one_by_one_later, in_chunks, in_one_list_of_chunks,
    in_chunks_with_names_later, without_an_end,
)  # fmt: skip
BATCHES = (
    lists, tuples, rows_of_arrays, one_array, array_behind_padded_prompts, masked_behind_prompts,
    ragged_behind_prompts, requests, lengths_beside_ragged_rows, batch_with_seeds, batch_later,
)  # fmt: skip
ALONE = {SCENARIOS[1].name, IN_TURN[-1].name}
TOGETHER = {SCENARIOS[0].name, AT_ONCE[0].name, AT_ONCE[-1].name}


def status_of(form, *, wrong, names):
    """Return what the law of an engine in this form is found to be, in a few situations."""
    subject = made_subject(lambda scenario: form(Core(scenario, wrong)), "an engine")
    subject = subject.with_programs(tuple(item for item in subject.programs if item.name in names))
    assert subject.programs
    return run_check(subject, check_named("law_is_target"), Checklist(()))


@pytest.mark.usefixtures("unexplained")
@pytest.mark.thorough(keep=35)
@pytest.mark.parametrize("form", [*ARGUMENTS, *ANSWERS, *LATER], ids=lambda form: form.__name__)
def test_an_engine_of_one_prompt(form):
    right, wrong = (status_of(form, wrong=wrong, names=ALONE) for wrong in (False, True))
    assert right.status is Status.HOLDS, right.statement
    assert right.figures["cases"] == len(ALONE)
    assert wrong.status is Status.REFUTED, wrong.statement


@pytest.mark.usefixtures("unexplained")
@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("form", BATCHES, ids=lambda form: form.__name__)
def test_an_engine_of_several_prompts(form):
    right, wrong = (status_of(form, wrong=wrong, names=TOGETHER) for wrong in (False, True))
    assert right.status is Status.HOLDS, right.statement
    assert wrong.status is Status.REFUTED, wrong.statement


# What both calls without arguments return


def pair_of(shape):
    """Return right, wrong and plain calls of two texts, each as ``shape`` makes it of rows."""
    rng = np.random.default_rng()
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])

    def drawn(pmf):
        return int(rng.choice(2, p=pmf))

    def speculative(*, wrong):
        token = drawn(q)
        left = p if wrong else np.maximum(p - q, 0)
        return token if rng.random() < p[token] / q[token] else drawn(left / left.sum())

    def rows(one):
        return shape([[one()], [one() for _ in range(2)]])

    return tuple(partial(rows, one) for one in (partial(speculative, wrong=False), partial(speculative, wrong=True),
                                                lambda: drawn(p)))  # fmt: skip


PAIRS = {
    "lists": lambda rows: rows,
    "padded": lambda rows: np.array(padded_right(rows)),
    "padded left": lambda rows: np.array(padded_left(rows)),
    "objects": lambda rows: {"outputs": [Output(row) for row in rows]}["outputs"],
    "lengths": lambda rows: {"tokens": np.array([[*rows[0], 0], rows[1]]), "lengths": np.array([1, 2])},
}


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("shape", PAIRS.values(), ids=PAIRS)
def test_two_calls_that_return_batches(shape):
    right, wrong, plain = pair_of(shape)
    chosen = {"checks": ["law_is_target"], "on_fail": None}
    found = check_engine(right, plain, **chosen)
    assert [item.status for item in found] == [Status.HOLDS], found
    found = check_engine(wrong, plain, **chosen)
    assert found[-1].status is Status.REFUTED, found


@pytest.mark.thorough
def test_rows_are_told_apart_where_one_is_longer():
    """Laid end to end both calls would return (0, 1, 0)."""
    *_, verdict = check_engine(lambda: [[0, 1], [0]], lambda: [[0], [1, 0]], checks=["law_is_target"], on_fail=None)
    assert verdict.status is Status.REFUTED
    assert "((0, 1), (0,))" in str(verdict.counterexample)


@pytest.mark.thorough
def test_a_text_for_a_batch_is_refused():
    with pytest.raises(UnusableSubject, match="it returned 1 rows, expected 2 rows, as the call without speculation"):
        check_engine(lambda: [0, 1], lambda: [[0], [1]])
    with pytest.raises(UnusableSubject, match="it returned 2 rows, expected one text"):
        check_engine(lambda: [[0], [1]], {(0, 1): 1.0})


@pytest.mark.thorough
def test_a_seed_of_a_call_without_a_prompt():
    def fast(seed):
        return [int(random.Random(seed).random() < 0.25)]

    assert check_engine(fast, {(0,): 0.75, (1,): 0.25}, checks=["law_is_target"])
    assert check_engine(fast, {(0,): 0.75, (1,): 0.25}, checks=["samples_fit_law", "law_is_target"], sampled=True)
    wrong = check_engine(fast, {(0,): 0.5, (1,): 0.5}, checks=["law_is_target"], on_fail=None)
    assert wrong[0].status is Status.REFUTED


# What is refused


def told_of(decode, **made):
    with pytest.raises((UnusableSubject, AssertionError)) as caught:
        check_engine(lambda scenario: Made(decode, **made), checks=["law_is_target"])
    return str(caught.value).partition("\n")[0]


@pytest.mark.parametrize(
    ("decode", "said"),
    [
        (
            lambda prompt, temperature: [0],
            (
                "specverify passes the prompt to 'prompt' and a number to each argument with seed in its name, but "
                "nothing to 'temperature': give it a default, or bind it, as in lambda prompt: decode(prompt, temper"
            ),
        ),
        (
            lambda prompt, state: [0],
            "nothing to 'state': take a seed instead and make the generator from it inside the",
        ),
        (lambda *, prompt: [0], "nothing to 'prompt': "),
    ],
)
def test_an_argument_that_is_no_seed_is_named(decode, said):
    assert said in told_of(decode)


def test_an_argument_of_a_call_without_a_prompt_is_named():
    with pytest.raises(ValueError, match="but nothing to 'length': give it a default, or bind it, as in lambda: dec"):
        check_engine(lambda length: [0], {(0,): 1.0})


def growing(prompt):
    text = []
    for _ in range(9):
        text = [*text, 0]
        yield text


@dataclass
class Both:
    """Two names for token ids, which differ."""

    tokens: Any = field(default_factory=lambda: [0, 1])
    token_ids: Any = field(default_factory=lambda: [1, 0])


@pytest.mark.thorough(keep=10)
@pytest.mark.parametrize(
    ("decode", "said"),
    [
        (growing, "it yields the whole text so far in each piece, expected the new tokens of each step alone"),
        (lambda prompt: Both(), "a Both whose token_ids and tokens differ, expected token ids under one name"),
        (
            lambda prompt: RequestOutput([], [Output([0]), Output([1])]),
            "it returned 2 outputs for one prompt, expected",
        ),
        (lambda prompt: {"tokens": [0] * 6, "lengths": [9]}, "its lengths hold 9 for a row of 6 ids, expected 0 to 6"),
        (lambda prompt: {"tokens": [0, 1, 0] * 9, "length": 6}, "for a row that continues after that with [0, 1]"),
        (lambda prompt: {"tokens": [0] * 9, "length": 1}, "its lengths leave [0] of a row, where "),
        (lambda prompt: {"tokens": [0, 1], "mask": [1]}, "its mask has 1 places for a row of 2"),
        (lambda prompt: {"tokens": [0, 1, 0], "mask": [1, 0, 1]}, "leaves out ids between others, expected padding"),
        (
            lambda prompt: {"sequences": [[*prompt, *[0] * 20]], "lengths": [20]},
            "rows that begin with the prompt, and may count it or not",
        ),
        (lambda prompt: {"text": "ab"}, "it returned {'text': 'ab'}, expected a sequence of new token ids"),
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_refused(decode, said):
    assert said in told_of(decode)


class Ending(Core):
    """Rows that end are padded."""

    def decode(self, prompts, shape):
        """Return what ``shape`` makes of the padded rows and their lengths."""
        rows = [self.new(prompt) for prompt in prompts]
        longest = max(map(len, rows))
        return shape(np.array([[*row, *[0] * (longest - len(row))] for row in rows]), [len(row) for row in rows])


def ended(shape, *, wrong=False):
    subject = made_subject(
        lambda scenario: Made(partial(Ending(scenario, wrong).decode, shape=shape), batched=True, stops=True), "it"
    )
    names = {ENDING_AT_ONCE[2].name, ENDING_AT_ONCE[-1].name}
    subject = subject.with_programs(tuple(item for item in subject.programs if item.name in names))
    return run_check(subject, check_named("law_is_target"), Checklist(()))


@pytest.mark.thorough
def test_padding_that_is_a_token_is_read_by_lengths_and_refused_without():
    def alone(rows, lengths):
        return rows

    def beside(rows, lengths):
        return {"tokens": rows, "lengths": np.array(lengths)}

    def named(rows, lengths):
        return {"tokens": rows, "pad_token_id": 0}

    assert ended(alone).status is Status.UNUSABLE
    assert "after its end, like padding" in ended(alone).statement
    for shape in (beside, named):
        assert ended(shape).status is Status.HOLDS, ended(shape).statement
        assert ended(shape, wrong=True).status is Status.REFUTED


@pytest.mark.parametrize(("pad", "refused"), [(-1, False), (0, True)])
def test_a_row_that_is_shorter_by_its_length_is_a_short_text_if_only_negative_ids_follow(pad, refused):
    """Other ids behind the length may be tokens, so the length may count something else."""
    answer = {"tokens": np.array([[1, 2, pad], [2, 1, 2]]), "lengths": np.array([2, 3])}
    expected = pytest.raises(UnusableSubject, match="its lengths leave") if refused else nullcontext()
    with expected:
        assert new_tokens(read_answer_rows(answer, 2), ((0,), (0,)), horizon=3) == [[1, 2], [2, 1, 2]]


# Engines that need more tokens than there are


def with_an_end_of_its_own(scenario, *, wrong=False):
    """Token 2 ends a text, whatever the vocabulary is: behind it there are ends alone."""
    counts = np.zeros(scenario.vocabulary)

    def decode(prompt):
        counts[2] += 1
        return Core(scenario, wrong).new(prompt)

    return decode


def test_an_alphabet_that_is_too_small_is_told_with_the_way_out():
    chosen = {"checks": ["law_is_target"], "fail_fast": True}
    with pytest.raises((UnusableSubject, AssertionError)) as caught:
        check_engine(with_an_end_of_its_own, quick=True, **chosen)
    assert "have the vocabulary {0, 1}, and there it raises IndexError: index 2 is out of bounds" in str(caught.value)
    assert "write check_engine(make, sizes=Sizes(least_vocabulary=3))" in str(caught.value)


def test_a_token_outside_the_alphabet_is_told_unless_no_alphabet_has_it():
    def two(scenario):
        return lambda prompt: [2] * scenario.horizon

    def beyond(scenario):
        return lambda prompt: [scenario.vocabulary] * scenario.horizon

    assert "{0, 1}, and there it emits token 2." in alphabet_hint(two)
    assert alphabet_hint(WithVocabulary(two, 3)) == alphabet_hint(beyond) == ""


@pytest.mark.usefixtures("unexplained")
def test_the_vocabulary_that_is_asked_for_is_that_of_every_scenario():
    for wrong, status in ((False, Status.HOLDS), (True, Status.REFUTED)):
        make = WithVocabulary(partial(with_an_end_of_its_own, wrong=wrong), 3)
        subject = made_subject(make, "an engine")
        assert not any("-v2-" in item.name for item in subject.programs)
        found = run_check(subject.with_programs(subject.programs[:1]), check_named("law_is_target"), Checklist(()))
        assert found.status is status, found.statement


@pytest.mark.parametrize("vocabulary", [1, 9, 2.5])
def test_a_vocabulary_that_cannot_be(vocabulary):
    with pytest.raises(ValueError, match="expected a whole number from 2 to 8"):
        check_engine(with_an_end_of_its_own, sizes=Sizes(least_vocabulary=vocabulary))
    with pytest.raises(ValueError, match="expected it to be left out with two calls"):
        check_engine(lambda: [0], lambda: [0], sizes=Sizes(least_vocabulary=3))


def test_the_error_of_an_engine_is_that_of_its_own_code_where_torch_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    def make(scenario):
        return lambda prompt: [len(None)] * scenario.horizon

    with pytest.raises(UnusableSubject, match=r"TypeError: object of type 'NoneType' has no len\(\)"):
        check_engine(make, quick=True)
