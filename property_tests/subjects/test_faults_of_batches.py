"""Batches whose rows share random numbers or tokens with other rows, also distant ones, and ends at first tokens."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import ENDING_AT_THE_FIRST, LATE_ROWS_OPEN, MANY_ENDING_ROWS, OPEN_ROWS_APART
from specverify.testing import Made, check_verifier

LAW = check_named("law_is_target")
RNG = np.random.default_rng()
OWN = 1000


class Faults(NamedTuple):
    """What an engine of batches does wrong; by default nothing."""

    period: int = OWN
    """Rows at this distance share the coin of a draft."""
    late: int = OWN
    """From this row on, the prompt of the row before takes the place of as many tokens."""
    overlooks: int = OWN
    """An end is overlooked if it is the first new token after a prompt of a multiple of this length."""
    from_p: int = OWN
    """From this row on, a rejected draft is replaced by a draw from p."""


def drawn(weights):
    return random.choices(range(len(weights)), weights)[0]


def engine(faults):
    """Return the factory of an engine that serves each row by rounds of one draft."""

    def make(scenario):
        def row_of(place, prompt, coins):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                q, p = scenario.draft(text), scenario.target(text)
                token = drawn(q)
                at = place % faults.period, len(text)
                if coins.setdefault(at, random.random()) * q[token] >= p[token]:
                    left = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
                    token = drawn(p if place >= faults.from_p else left)
                text += (token,)
                overlooked = len(text) == len(prompt) + 1 and len(prompt) % faults.overlooks == 0
                if token == scenario.eos and not overlooked:
                    break
            return text[len(prompt) :]

        def decode(prompts):
            coins = {}
            given = [tuple(prompt) for prompt in prompts]
            for place in range(faults.late, len(given)):
                before = given[place - 1]
                given[place] = (*before[: len(given[place])], *given[place][len(before) :])
            return [row_of(place, prompt, coins) for place, prompt in enumerate(given)]

        return Made(decode, batched=True, stops=True)

    return make


FAULTS = {
    **{
        f"rows {apart} apart share a coin": (Faults(period=apart), requests)
        for apart, requests in zip((2, 3, 4, 8), (OPEN_ROWS_APART[0], *OPEN_ROWS_APART[2:]), strict=True)
    },
    "later rows begin like the row before": (Faults(late=7), MANY_ENDING_ROWS),
    "an end behind full blocks of the prompt is overlooked": (Faults(overlooks=8), ENDING_AT_THE_FIRST),
    "late rows are replaced from p": (Faults(from_p=16), LATE_ROWS_OPEN),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_engine_is_refuted_and_its_right_twin_holds(fault):
    faults, requests = FAULTS[fault]
    for given, fails in ((faults, True), (Faults(), False)):
        subject = made_subject(engine(given), "it")
        (case,) = (case for case in LAW.cases(subject) if case.situation.name == requests.name)
        result = case.examine(Conditions(explained=False))
        assert (result.failed, result.unknown) == (fails, False)


def verifier(period):
    """Return a verifier of batches whose rows use the random numbers of the rows ``period`` before them."""

    def verify(p, q, draft_tokens):
        rows, gamma = draft_tokens.shape
        numbers = RNG.random((min(rows, period), gamma + 1))
        result = np.full((rows, gamma + 1), -1)
        for b in range(rows):
            u, count = numbers[b % period], 0
            while (
                count < gamma and u[count] * q[b, count, draft_tokens[b, count]] < p[b, count, draft_tokens[b, count]]
            ):
                result[b, count] = draft_tokens[b, count]
                count += 1
            left = np.maximum(p[b, count] - q[b, count], 0) if count < gamma else p[b, count]
            left = left if left.any() else p[b, count]
            result[b, count] = min(np.searchsorted(left.cumsum(), u[-1] * left.sum(), "right"), len(left) - 1)
        return result

    return verify


@pytest.mark.thorough(keep=2)
@pytest.mark.usefixtures("unexplained", "named_checks_alone")
@pytest.mark.parametrize(
    ("period", "status"), [(OWN, Status.HOLDS), (3, Status.REFUTED), (6, Status.REFUTED)], ids=["own", "3", "6"]
)
def test_rows_of_a_verifier_share_no_number_at_any_distance(period, status):
    (verdict,) = check_verifier(
        verifier(period), form="batched", quick=True, on_fail=None, checks=["rows_are_independent"]
    )
    assert verdict.status is status
