"""Right programs that have no law of their draws, or are compared with the wrong one: none is refuted."""

from __future__ import annotations

import hashlib
import random
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import Case, Conditions, check_named
from specverify.checks.program_is_its_draws import examine_refuted
from specverify.intercept.cpython.addresses import addresses_moved
from specverify.intercept.cpython.sandbox import look_around
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import EngineProgram, Subject
from specverify.testing import Made, check_engine

LAW = "law_is_target"


def statuses(make, *checks):
    found = check_engine(make, checks=[*checks] or None, on_fail=None, quick=True)
    return {verdict.check: verdict for verdict in found}


def hashed(seed):
    for position in range(1000):
        digest = hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()
        yield int.from_bytes(digest, "big") / 2**64


def congruential(seed):
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 11) / 2**53


def of_the_library(seed):
    generator = random.Random(seed)
    while True:
        yield generator.random()


def decoding_with(numbers):
    """Return a factory of engines that take each token by one of the ``numbers`` of a seed."""

    def make(scenario):
        def decode(prompt, seed):
            text, uniform = tuple(prompt), numbers(seed)
            while len(text) < len(prompt) + scenario.horizon:
                u, p = next(uniform), scenario.target(text)
                text += (next((token for token in range(len(p)) if u < sum(p[: token + 1])), len(p) - 1),)
            return text[len(prompt) :]

        return decode

    return make


@pytest.mark.parametrize("numbers", [hashed, congruential])
def test_an_engine_that_computes_random_numbers_from_its_seed_has_no_law_of_draws(numbers):
    found = statuses(decoding_with(numbers))
    assert {verdict.status for verdict in found.values()} == {Status.UNKNOWN}
    assert "in a call with another seed" in found["program_is_its_draws"].statement


def test_an_engine_that_seeds_a_generator_is_decided():
    assert {verdict.status for verdict in statuses(decoding_with(of_the_library)).values()} == {Status.HOLDS}


@dataclass(eq=False)
class Row:
    """A request, which is hashed by its address."""

    text: tuple[int, ...]


def in_any_order(scenario):
    """Decode the rows of a batch in the order of a set of objects, which depends on their addresses."""

    def decode(prompts):
        rows = [Row(tuple(prompt)) for prompt in prompts]
        for _ in range(scenario.horizon):
            for row in set(rows):
                p = scenario.target(row.text)
                row.text += tuple(random.choices(range(len(p)), p))
        return [row.text[len(prompt) :] for row, prompt in zip(rows, prompts, strict=True)]

    return Made(decode, batched=True)


def test_an_engine_whose_order_depends_on_addresses_is_not_refuted():
    verdict = statuses(in_any_order, LAW)[LAW]
    assert verdict.status in {Status.UNKNOWN, Status.HOLDS}, verdict.statement


def case_of(run):
    """Return the case of a check that has refuted the program ``run``."""
    program = EngineProgram("it", lambda: nullcontext(run), dict)
    return Case(Subject("it", "", frozenset()), program, lambda _: None)


def by_the_clock(clock, draws):
    draws.categorical((0.5, 0.5), ("token",))
    return (int(clock.now()) % 2,)


def by_its_draws(draws):
    return (draws.categorical((0.5, 0.5), ("token",)),)


def test_a_refuted_case_is_unknown_if_it_depends_on_more_than_its_draws():
    clock = SimpleNamespace(now=time.time)  # a new object, which a search finds beside all that tests keep out
    look_around()
    found = examine_refuted(case_of(partial(by_the_clock, clock)), Conditions())
    assert found.unknown
    assert "it is not a function of the draws that are answered" in found.statement
    assert examine_refuted(case_of(by_its_draws), Conditions()) is None


def test_addresses_move():
    orders = set()
    for number in range(40):
        with addresses_moved(number):
            rows = [Row(()), Row(())]
            orders.add(tuple(map(rows.index, set(rows))))
    assert orders == {(0, 1), (1, 0)}


def finishing_after_its_last_token(scenario):
    """Stream tokens, and clear the state of the request after the last one."""
    state = {"busy": False}

    def stream(prompt):
        text = tuple(prompt)[state["busy"] :] or tuple(prompt)
        state["busy"] = True
        for _ in range(scenario.horizon):
            p = scenario.target(text)
            text += tuple(random.choices(range(len(p)), p))
            yield text[-1]
        state["busy"] = False

    return stream


def test_a_stream_is_read_to_its_end():
    assert statuses(finishing_after_its_last_token, LAW)[LAW].status is Status.HOLDS


def by_place(fast_temperatures, temperatures=(1, 2)):
    """Return a factory of engines whose rows have the temperatures of their places, with and without speculation."""

    def make(scenario):
        def decode(prompts, of_rows):
            new = []
            for place, prompt in enumerate(prompts):
                text = tuple(prompt)
                for _ in range(scenario.horizon):
                    weights = np.asarray(scenario.target(text)) ** (1 / of_rows[place % len(of_rows)])
                    text += tuple(random.choices(range(len(weights)), weights))
                new.append(text[len(prompt) :])
            return new

        return Made(lambda prompts: decode(prompts, fast_temperatures), lambda prompts: decode(prompts, temperatures),
                    batched=True)  # fmt: skip

    return make


BESIDE_AN_EQUAL_ROW = "open_after_2_3-v2-p01-h2-s90 beside 01"


def law_beside_an_equal_row(make):
    """Return the verdict on the law of an engine that serves two rows with one prompt."""
    subject = made_subject(make, "rows")
    programs = [program for program in subject.programs if program.name == BESIDE_AN_EQUAL_ROW]
    return run_check(subject.with_programs(programs), check_named(LAW), Checklist((), quick=True))


def test_rows_with_the_parameters_of_their_places_are_not_refuted_if_speculation_changes_nothing():
    verdict = law_beside_an_equal_row(by_place((1, 2)))
    assert verdict.status is Status.UNKNOWN
    assert "return Made(..., parameters=[...])" in verdict.statement


@pytest.mark.usefixtures("unexplained")
def test_rows_that_speculation_changes_are_refuted():
    assert law_beside_an_equal_row(by_place((1, 3))).status is Status.REFUTED
