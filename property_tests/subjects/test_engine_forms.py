"""Engines in the forms in which people write them: how they are called, and what they return."""

from __future__ import annotations

import asyncio
import random
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import SCENARIOS, Made, made_subject
from specverify.subjects.requests import AT_ONCE, ENDING_AT_ONCE, IN_TURN
from specverify.subjects.subject import UnusableSubject
from specverify.testing import check_engine

PAD = -100


class Core:
    """Speculative decoding of one draft a round; the wrong one draws what replaces a rejected draft from p."""

    def __init__(self, scenario, wrong):
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
    token_ids: Any
    logprobs: Any = None


@dataclass
class RequestOutput:
    prompt_token_ids: Any
    outputs: list[Output]


@dataclass
class SamplingParams:
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
    return lambda prompt, seed: core.seeded(prompt, seed)


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
    async def work(prompt):
        return core.new(prompt)

    return lambda prompt: work(prompt)


def later_and_seeded(core):
    class Server:
        async def generate(self, prompt, *, seed):
            new = await asyncio.gather(self._new(prompt, seed))
            return Output(new[0])

        async def _new(self, prompt, seed):
            return core.seeded(prompt, seed)

    return Server().generate


def one_by_one(core):
    return lambda prompt: core.tokens(prompt)


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
    later, later_by_a_plain_function, later_and_seeded, one_by_one, one_by_one_later, in_chunks,
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
    subject = subject._replace(programs=tuple(item for item in subject.programs if item.name in names))
    assert subject.programs
    return run_check(subject, check_named("law_is_target"), Checklist(()))


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("form", [*ARGUMENTS, *ANSWERS, *LATER], ids=lambda form: form.__name__)
def test_an_engine_of_one_prompt(form):
    right, wrong = (status_of(form, wrong=wrong, names=ALONE) for wrong in (False, True))
    assert right.status is Status.HOLDS, right.statement
    assert right.figures["cases"] == len(ALONE)
    assert wrong.status is Status.REFUTED, wrong.statement


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("form", BATCHES, ids=lambda form: form.__name__)
def test_an_engine_of_several_prompts(form):
    right, wrong = (status_of(form, wrong=wrong, names=TOGETHER) for wrong in (False, True))
    assert right.status is Status.HOLDS, right.statement
    assert wrong.status is Status.REFUTED, wrong.statement
