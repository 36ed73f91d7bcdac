"""Each promise of a black box: four wrong services of unlike kinds and four right ones, as a sampler and over HTTP."""

import itertools

import numpy as np
import pytest

from specverify.testing import check_sampler
from test_support.promises.faults import FAULTS, Text, text_of, values_of
from test_support.promises.services import LAW, LENGTH, WAYS, P, Q, inverse

# Right ways to decode: each draws its random numbers in an order of its own.


def chain(rng):
    """Draft one token, accept with min(1, p/q), else draw from the residual."""
    row, new = 0, []
    while len(new) < LENGTH:
        draft = int(rng.choice(3, p=Q[row]))
        if rng.random() >= P[row][draft] / Q[row][draft]:
            left = np.maximum(P[row] - Q[row], 0)
            draft = int(rng.choice(3, p=left / left.sum()))
        new.append(draft)
        row = draft
    return new


def agreement(rng):
    """Draw every token from p, and keep the greedy drafts that it agrees with; nothing is drawn behind a difference."""
    row, new = 0, []
    while len(new) < LENGTH:
        drafts = [int(Q[row].argmax())]
        drafts.append(int(Q[drafts[0]].argmax()))
        for draft in drafts[: LENGTH - len(new)]:
            token = inverse(P[row], rng.random())
            new.append(token)
            row = token
            if token != draft:
                break
    return new


def plain(rng):
    """Draw token by token from p."""
    row, new = 0, []
    for _ in range(LENGTH):
        row = inverse(P[row], rng.random())
        new.append(row)
    return new


def one_uniform_a_place(rng):
    """Draw the uniforms of all places first, as a kernel does, and read one for each token."""
    row, new = 0, []
    for u in rng.random(LENGTH):
        row = inverse(P[row], u)
        new.append(row)
    return new


RIGHT = {"chain": chain, "agreement": agreement, "plain": plain, "one uniform a place": one_uniform_a_place}
SHAPES = {"chain": "completions", "agreement": "chat", "plain": "named", "one uniform a place": "completions"}
"""How the server of each answers."""


PROMISED = {"text": text_of, "chunks": text_of, "finish_reason": lambda new: "length"}
SEEDS = {
    "": lambda seed, row, call: (seed, row),
    "ignored": lambda seed, row, call: None,
    "the number of the call": lambda seed, row, call: (seed, row, call),
}


def complete(decode, name, fault, seed, number, calls, seeds=""):
    """Return completions, each a dictionary of its values; ``fault`` changes the value of a name."""
    result = []
    for row in range(number):
        tokens = decode(np.random.default_rng(SEEDS[seeds](seed, row, next(calls))))
        before = [0, *tokens[:-1]]
        text = Text(tokens, [P[token] for token in before], [Q[token] for token in before], row)
        result.append({"tokens": tokens, **values_of(text, name, fault)})
    return result


def draws_behind(rng):
    """Agreement that draws for all drafts before it looks: the law is right, and draws behind a difference are lost."""
    row, new = 0, []
    while len(new) < LENGTH:
        first = int(Q[row].argmax())
        for draft, u in zip((first, int(Q[first].argmax())), rng.random(3), strict=False):
            token = inverse(P[row], u)
            new.append(token)
            row = token
            if token != draft:
                break
    return new[:LENGTH]


def drafts_first(rng):
    """Draw for the draft from the same stream."""
    rng.random()
    return plain(rng)


def from_above(rng):
    """Read the uniform from above: 1 - u."""

    class Turned:
        def random(self):
            return 1 - rng.random()

    return plain(Turned())


HOW = {"law": LAW, "tv": 0.4, "on_fail": None, "largest_call": 256}


def status_of_value(way, kind, fault, name):
    shape = "chat" if fault == "least first" else SHAPES[kind]  # a mapping has no order
    answer, calls = RIGHT[kind], itertools.count()
    with WAYS[way](
        lambda seed, n: complete(answer, name, fault, seed, n, calls), shape, stream=name == "chunks"
    ) as sample:
        found = check_sampler(sample, returns={name: PROMISED.get(name)}, **HOW)
    return {v.check: v.status for v in found}.get("values_match")


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    monkeypatch.setattr("specverify.promises.sampled.SAMPLES", 60)


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_wrong_value_is_refuted(way, name, fault):
    kind = list(RIGHT)[list(FAULTS[name]).index(fault)]
    assert status_of_value(way, kind, fault, name) == "refuted"


@pytest.mark.thorough(keep=12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("kind", RIGHT)
def test_a_right_value_holds(way, name, kind):
    assert status_of_value(way, kind, "", name) == "holds"


def tokens_of(decode, seeds=""):
    """Return a service whose values are right."""
    calls = itertools.count()
    return lambda seed, n: complete(decode, "", "", seed, n, calls, seeds)


def promised(way, decode, promise, *, seeds="", kind="plain"):
    law = LAW
    if promise == "seed-as-plain":
        law = lambda seed, n: [each["tokens"] for each in tokens_of(plain)(seed, n)]  # noqa: E731 - one of two laws
    with WAYS[way](tokens_of(decode, seeds), SHAPES[kind], stream=False) as sample:
        alone = lambda seed, n: [each["tokens"] for each in sample(seed, n)]  # noqa: E731 - as above
        found = check_sampler(alone, promises={promise}, **{**HOW, "law": law})
    name = {"seed": "seed_repeats", "seed-as-plain": "seed_as_plain"}[promise]
    return {v.check: v.status for v in found}.get(name)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", RIGHT)
def test_a_seed_that_decides_holds(way, kind):
    assert promised(way, RIGHT[kind], "seed", kind=kind) == "holds"


HIDDEN = np.random.default_rng(5)


def of_hidden_state(rng):
    """Mix what a generator of the module draws into one row in eight."""
    return plain(HIDDEN if rng.random() < 1 / 8 else rng)


def of_a_cache(rng, kept=[]):  # noqa: B006 - the fault: texts are kept from call to call
    """Answer a text of an earlier call now and then."""
    kept.append(plain(rng))
    return kept[len(kept) // 2]


BROKEN_SEEDS = {
    "ignored": (plain, "ignored"),
    "the number of the call": (chain, "the number of the call"),
    "hidden state": (of_hidden_state, ""),
    "texts of earlier calls": (of_a_cache, ""),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", BROKEN_SEEDS)
def test_a_seed_that_does_not_decide_is_refuted(way, fault):
    decode, seeds = BROKEN_SEEDS[fault]
    assert promised(way, decode, "seed", seeds=seeds) == "refuted"


OTHER_TEXTS = {"chain": chain, "draws behind": draws_behind, "drafts first": drafts_first, "from above": from_above}


def one_draft(rng):
    """Agreement with one draft a round, and a bonus token by the next uniform."""
    row, new = 0, []
    while len(new) < LENGTH:
        draft, token = int(Q[row].argmax()), inverse(P[row], rng.random())
        new += [token, *([inverse(P[token], rng.random())] if token == draft and len(new) + 1 < LENGTH else [])]
        row = new[-1]
    return new


SAME_TEXTS = {name: RIGHT[name] for name in ("agreement", "plain", "one uniform a place")} | {"one draft": one_draft}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OTHER_TEXTS)
def test_a_seed_that_gives_another_text_than_plain_decoding_is_refuted(way, name):
    assert promised(way, OTHER_TEXTS[name], "seed-as-plain") == "refuted"


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SAME_TEXTS)
def test_a_seed_that_gives_the_text_of_plain_decoding_holds(way, name):
    assert promised(way, SAME_TEXTS[name], "seed-as-plain") == "holds"
