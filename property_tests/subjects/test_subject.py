"""Answers that a subject cannot be examined with are refused once."""

from __future__ import annotations

import malformed
import numpy as np
import pytest
from malformed import always, round_of

from specverify.subjects.subject import UnusableSubject
from specverify.testing import (
    Observer,
    calibrate,
    check_decoder,
    check_engine,
    check_kernel,
    check_sampler,
    check_verifier,
)

HALVES = [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_verifier(malformed.awaited), "and is not async"),
        (lambda: check_verifier(malformed.Awaited()), "and is not async"),
        (lambda: check_decoder(malformed.awaited), "and is not async"),
        (lambda: check_engine(malformed.awaited), "and is not async"),
        (lambda: check_kernel(malformed.awaited), "and is not async"),
        (lambda: check_sampler(malformed.awaited, law=HALVES), "and is not async"),
        (lambda: calibrate(malformed.awaited, HALVES, samples=10), "and is not async"),
        (lambda: check_verifier(malformed.two), "takes (p, q), expected (p, q, draft_tokens), or (p, draft"),
        (lambda: check_verifier(malformed.four), "takes (p, q, draft_tokens, more), expected (p, q, draft_tokens)"),
        (lambda: check_verifier(len), ", or (p, draft_tokens) if each draft is certain: too many positional"),
        (
            lambda: check_verifier(always(0), claims="lossles"),
            "expected a collection of at least one Claim, such as {C",
        ),
        (
            lambda: check_verifier(always(0), claims=["lossless"]),
            "a claim is 'lossless', expected one of Claim.SUPPORT",
        ),
        (lambda: check_sampler(malformed.sample, law=HALVES, timeout=0), "timeout is 0, expected a number of seconds"),
        (lambda: check_sampler(malformed.sample, law="x"), "the law is 'x', expected a mapping from tuples"),
        (lambda: check_sampler(malformed.sample, law=5), "the law is 5, expected a mapping from tuples"),
        (lambda: check_sampler(malformed.sample, law=HALVES, draft=5), "the draft's law is 5, expected a mapping"),
        (lambda: check_kernel(lambda p, q, d, u, r: d, seed=-1), "the seed is -1, expected a whole number"),
        (lambda: Observer((0,), draft=5), "draft is 5, expected something to call with 1 argument"),
        (
            lambda: calibrate(lambda x: 0.3, HALVES, samples=10),
            "returned is 0.3, expected True, False or None, or a th",
        ),
        (lambda: calibrate(lambda x: "no", HALVES, samples=10), "what the statistic returned is 'no', expected True"),
        (lambda: calibrate(lambda x: "no", HALVES, samples=10, threshold=1), "returned is 'no', expected a number, to"),
        (
            lambda: calibrate(lambda x: np.nan, HALVES, samples=10, threshold=1),
            "returned is nan, expected a number, to",
        ),
        (lambda: calibrate(lambda x: (1, 2), HALVES, samples=10, threshold=1), "returned is (1, 2), expected a number"),
        (lambda: calibrate(lambda x: x, HALVES, samples=10, threshold=1), "expected a number, to compare with the"),
    ],
)
def test_an_argument_that_cannot_be(call, sentence):
    with pytest.raises((ValueError, UnusableSubject), match=r"\A[^\n]+\Z") as caught:
        call()
    assert sentence in str(caught.value)


@pytest.mark.thorough(keep=15)
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_verifier(always(None)), "it returned NoneType, expected a row of integer tokens"),
        (lambda: check_verifier(always("ab")), "it returned str 'ab', expected a row of integer tokens"),
        (lambda: check_verifier(always(["1", "0"])), "it returned list ['1', '0'], expected a row of integer tokens"),
        (lambda: check_verifier(always([[0]])), "it returned list [[0]], expected a row of integer tokens"),
        (lambda: check_verifier(always(([0], 2))), "it returned tuple ([0], 2), expected a row of integer tokens"),
        (lambda: check_verifier(always({0: 1})), "it returned dict {0: 1}, expected a row of integer tokens"),
        (lambda: check_verifier(always({0})), "it returned set {0}, expected a row of integer tokens"),
        (
            lambda: check_verifier(malformed.batches),
            "It fails on a row and answers a batch of one: is it to be given f",
        ),
        (lambda: check_verifier(always({"n": "ab"})), "it returned dict {'n': 'ab'}, expected a row of integer tokens"),
        (lambda: check_decoder(round_of(())), "a round committed no token, expected at least one"),
        (lambda: check_decoder(round_of(None)), "it returned NoneType, expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of("ab")), "it returned str 'ab', expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of(["a"])), "it returned list ['a'], expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of([True])), "it returned list [True], expected the new tokens as a sequence of"),
        (lambda: check_decoder(round_of({0: 1})), "it returned dict {0: 1}, expected the new tokens as a sequence of"),
    ],
)
def test_an_answer_that_is_none_is_told_once(call, sentence):
    with pytest.raises(UnusableSubject) as caught:
        call()
    told = str(caught.value)
    assert told.count(sentence) == 1
    assert " other checks say so too)" in told
    assert "emitted.py" not in told
    assert "external.py" not in told


@pytest.mark.thorough
@pytest.mark.parametrize(
    "answer", [None, 0, "ab", ["a"], [None], [[["a"]]], [True], [0.5], {0: 1}, {0}, np.array([True]), np.array([0.5])]
)
def test_an_engine_that_returns_no_tokens_is_held_to_be_nothing(answer):
    with pytest.raises(UnusableSubject) as caught:
        check_engine(lambda: answer, lambda: answer)
    assert "is unusable: it " in str(caught.value)
    assert "expected" in str(caught.value)
    assert "engine.py" not in str(caught.value)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # Python says it too
def test_a_verifier_that_returns_a_coroutine_is_told_how_to_call_it():
    with pytest.raises(UnusableSubject, match="a coroutine, expected the tokens: call it through asyncio"):
        check_verifier(lambda p, q, draft_tokens: malformed.awaited())
