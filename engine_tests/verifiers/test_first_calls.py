"""Verifiers that begin otherwise than they go on: what their first calls answer is none of what is examined."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.subjects.array_kinds import arrays_of
from specverify.subjects.batch_call import attempt_of
from specverify.subjects.forms import ROW
from specverify.testing import check_verifier


def lenient(calls, torches):
    """Return a verifier that accepts whatever comes in its first calls."""
    left = iter(range(calls))

    def in_numpy(p, q, draft_tokens):
        kept = np.random.default_rng().random() < p[0, draft_tokens[0]] / q[0, draft_tokens[0]]
        return [*draft_tokens, 0] if kept | (next(left, None) is not None) else [0]

    def in_torch(p, q, draft_tokens):
        kept = torch.rand(()) < p[0, draft_tokens[0]] / q[0, draft_tokens[0]]
        return [*draft_tokens.tolist(), 0] if kept | (next(left, None) is not None) else [0]

    return in_torch if torches else in_numpy


@pytest.mark.parametrize("torches", [False, True])
@pytest.mark.parametrize("calls", [0, 1, 2, 4])
def test_what_only_the_first_calls_do_is_noticed(torches, calls):
    convert = arrays_of(lenient(calls, torches), attempt_of(ROW))
    given = {"p": np.ones((2, 2)) / 2, "q": np.ones((1, 2)) / 2, "draft_tokens": np.array([1])}
    if calls:
        with pytest.raises(
            NotAFunctionOfItsDraws,
            match=r"its (first calls return other results|very first call returned another result)",
        ):
            convert(given)
    else:
        assert len(convert(given)) == 3


def first_call_only(wrong, uniforms):
    """Return a verifier that is right but for its very first call."""
    answers = iter([wrong] if wrong else [])

    def verify(p, q, draft_tokens):
        answer = next(answers, None)
        if answer is not None:
            return answer(p, draft_tokens)
        uniform = uniforms()
        for place, token in enumerate(draft_tokens):
            if uniform() * q[place, token] >= p[place, token]:
                return [*draft_tokens[:place], drawn(np.maximum(p[place] - q[place], 0), uniform())]
        return [*draft_tokens, drawn(p[-1], uniform())]

    return verify


def drawn(weights, number):
    return sum(bool(number * weights.sum() >= mass) for mass in np.cumsum(weights))


WRONG_AT_FIRST = {
    "nothing": None,
    "the argmax": lambda p, draft_tokens: [int(p[0].argmax())],
    "all drafts": lambda p, draft_tokens: [*draft_tokens, int(p[-1].argmax())],
    "p in the place of the residual": lambda p, draft_tokens: [4],
}


OF_LIBRARIES = {
    "random": lambda: random.random,
    "NumPy's own": lambda: np.random.rand,
    "a new generator": lambda: np.random.default_rng().random,
    "torch": lambda: partial(torch.rand, ()),
}


@pytest.mark.thorough(keep=16)
@pytest.mark.parametrize("library", OF_LIBRARIES)
@pytest.mark.parametrize("wrong", WRONG_AT_FIRST)
def test_a_verifier_whose_very_first_call_is_wrong_is_unknown(wrong, library):
    subject = first_call_only(WRONG_AT_FIRST[wrong], OF_LIBRARIES[library])
    (verdict,) = check_verifier(subject, checks=["program_is_its_draws"], gammas=(1,), on_fail=None)
    assert verdict.status is (Status.UNKNOWN if WRONG_AT_FIRST[wrong] else Status.HOLDS)
    assert ("its very first call returned another result" in verdict.statement) is bool(WRONG_AT_FIRST[wrong])


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("begins", [False, True])
def test_the_very_first_call_of_a_verifier_of_tensors_is_made_with_some(begins):
    left = iter([begins])

    def verify(p, q, draft_tokens):
        if next(left, False):
            return torch.stack([p[0].argmax()])
        for place, token in enumerate(draft_tokens):
            if torch.rand(()) >= p[place, token] / q[place, token]:
                return torch.cat([draft_tokens[:place], torch.multinomial((p[place] - q[place]).clamp(min=0), 1)])
        return torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])

    (verdict,) = check_verifier(verify, checks=["program_is_its_draws"], gammas=(1,), on_fail=None)
    assert verdict.status is (Status.UNKNOWN if begins else Status.HOLDS)


@pytest.mark.thorough
def test_a_generator_of_its_own_is_no_other_beginning():
    verify = first_call_only(None, partial(getattr, np.random.default_rng(5), "random"))
    (verdict,) = check_verifier(verify, checks=["program_is_its_draws"], gammas=(1,), on_fail=None)
    assert verdict.status is Status.HOLDS


def test_a_verifier_that_begins_otherwise_is_unknown():
    verdicts = check_verifier(lenient(3, False), checks=["program_is_its_draws"], on_fail=None)
    assert [verdict.status for verdict in verdicts] == [Status.UNKNOWN]
    assert "its first calls return other results" in verdicts[0].statement
