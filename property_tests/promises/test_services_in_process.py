"""Each value beside the tokens, in process: four wrong engines of unlike kinds and four right ones."""

from functools import partial

import numpy as np
import pytest

from specverify.testing import Made, check_engine
from test_support.promises.faults import FAULTS, Text, text_of, values_of

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def inverse(pmf, u):
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


# Right ways to decode: each draws its random numbers in an order of its own.


def chain(s, text):
    """Draft one token, accept with min(1, p/q), else draw from the residual."""
    q, p = s.draft(text), s.target(text)
    draft = int(np.random.choice(s.vocabulary, p=q))
    if np.random.random() < p[draft] / q[draft]:
        return (draft,)
    left = np.maximum(p - q, 0)
    left = left if left.sum() > 0 else p
    return (int(np.random.choice(s.vocabulary, p=left / left.sum())),)


def agreement(s, text):
    """Draw every token from p, and go on behind a greedy draft that agrees."""
    draft = int(np.argmax(s.draft(text)))
    token = inverse(s.target(text), np.random.random())
    return (token, inverse(s.target((*text, token)), np.random.random())) if token == draft else (token,)


def plain(s, text):
    """Draw one token from p."""
    return (int(np.random.choice(s.vocabulary, p=s.target(text))),)


def noise_first(s, text):
    """Draw the uniforms of two places first, as a kernel does, and use the second where the first is the draft."""
    first, second = np.random.random(2)
    token = inverse(s.target(text), first)
    return (token, inverse(s.target((*text, token)), second)) if token == np.argmax(s.draft(text)) else (token,)


RIGHT = {"chain": chain, "agreement": agreement, "plain": plain, "noise first": noise_first}
PROMISED = {
    "logprobs": "raw",
    "top_logprobs": "raw",
    "text": text_of,
    "chunks": text_of,
    "finish_reason": lambda new: "length",
    "usage": None,
}


def engine(kind, name, fault, s):
    def decode():
        tokens = ()
        while len(tokens) < s.horizon:
            tokens += RIGHT[kind](s, s.prompt + tokens)
        tokens = tokens[: s.horizon]
        texts = [s.prompt + tokens[:place] for place in range(len(tokens))]
        p, q = ([np.asarray(model(text)) for text in texts] for model in (s.target, s.draft))
        row = int(tokens[0] == 1)  # texts that another row would have
        values = values_of(Text(list(tokens), p, q, row), name, fault)
        return tokens, {name: values[name]}

    return Made(decode)


def status_of(kind, name, fault):
    check = "statistics_match" if name == "usage" else "values_match"
    returns = {name: PROMISED[name]}
    found = check_engine(partial(engine, kind, name, fault), returns=returns, checks=[check], on_fail=None, quick=True)
    return {v.check: v.status for v in found}[check]


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_wrong_value_is_refuted(name, fault):
    kind = list(RIGHT)[list(FAULTS[name]).index(fault)]
    assert status_of(kind, name, fault) == "refuted"


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("kind", RIGHT)
def test_a_right_value_holds(kind, name):
    assert status_of(kind, name, "") == "holds"
