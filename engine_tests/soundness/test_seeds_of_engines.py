"""Numbers of a seed that an engine sets in each of its calls stay as they are: there is no law of them to compare."""

from __future__ import annotations

import random
import secrets
from functools import cache, partial
from itertools import count
from threading import Thread

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.testing import check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

TOKENS = range(2)
HELD = torch.Generator().manual_seed(3)


def row_of_a_seed(kind, text):
    """A toy model as it is often written: its weights are those of a generator that the text seeds."""
    drawn = random.Random(f"{kind}{text}")
    return [drawn.randint(1, 2) for _ in TOKENS]


def decode(row, choose, coin, residual=True, length=1):
    """One draft a token; the same with ``row`` alone is ``plain``."""
    text = (0,)
    while len(text) <= length:
        (p, q) = ([weight / sum(found) for weight in found] for found in (row("p", text), row("q", text)))
        draft = choose(q)
        left = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)] if residual else p
        text += (draft if coin() < p[draft] / q[draft] else choose(left),)
    return text[1:]


def plain(row, choose, length=1):
    text = (0,)
    for _ in range(length):
        text += (choose(row("p", text)),)
    return text[1:]


def chosen(weights, generator=random):
    return generator.choices(TOKENS, weights)[0]


def coin():
    return random.random()


def statuses(fast, slow):
    found = check_engine(fast, slow, on_fail=None)
    return {verdict.check: verdict.status for verdict in found}, found[0].statement


def law_of_the_model():
    weights = row_of_a_seed("p", (0,))
    return {(token,): weight / sum(weights) for token, weight in enumerate(weights)}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("residual", "slow", "status"),
    [
        (True, partial(plain, row_of_a_seed, chosen), Status.HOLDS),
        (True, law_of_the_model(), Status.HOLDS),
        (False, partial(plain, row_of_a_seed, chosen), Status.REFUTED),
        (False, law_of_the_model(), Status.UNKNOWN),
    ],
    ids=["right-a call", "right-a law", "wrong-a call", "wrong-a law"],
)
def test_rows_drawn_in_the_call_are_told_from_what_is_sampled(residual, slow, status):
    """Over all seeds the wrong one has the law of the call without speculation, and the right one not the model's."""
    verdicts = check_engine(partial(decode, row_of_a_seed, chosen, coin, residual), slow, quick=True, on_fail=None)
    found = {verdict.check: verdict for verdict in verdicts}
    assert found["law_is_target"].status is status, found["law_is_target"].statement
    assert "it draws constants at test_seeds_of_engines.py:" in str(found["program_is_its_draws"].figures["notes"])
    if status is Status.UNKNOWN:
        said = found["law_is_target"].statement
        assert "seeds that it sets to the same values in every run (random.randint seed(str) at" in said
        assert "others do not (random.choices at" in said


def seeded_torch():
    torch.manual_seed(0)
    weights = torch.randint(1, 3, (2,)).tolist()
    return decode(lambda kind, _: weights if kind == "p" else [1, 1], chosen, coin)


@pytest.mark.thorough
def test_a_seed_of_torch_is_seen_too():
    verdicts = check_engine(seeded_torch, {(0,): 0.5, (1,): 0.5}, on_fail=None)
    law = next(verdict for verdict in verdicts if verdict.check == "law_is_target")
    assert law.status is Status.UNKNOWN
    assert "(torch.randint at" in law.statement


def rows(kind, _):
    return [1, 3] if kind == "p" else [2, 2]


def all_of_one_seed():
    generator = random.Random(5)
    return decode(rows, partial(chosen, generator=generator), generator.random)


def held_beside_the_global_one():
    return decode(rows, chosen, lambda: torch.rand((), generator=HELD))


def of_numpy_without_a_seed():
    return decode(rows, chosen, np.random.default_rng().random)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    "fast", [all_of_one_seed, held_beside_the_global_one, of_numpy_without_a_seed], ids=lambda fast: fast.__name__
)
def test_one_seed_for_everything_and_generators_without_one_have_their_law(fast):
    found, _ = statuses(fast, partial(plain, rows, chosen))
    assert set(found.values()) == {Status.HOLDS}


@pytest.mark.thorough
def test_threads_that_draw_in_another_order_are_named():
    """Drawn one by one, the two of them are a function of their draws."""
    runs, found = count(), {}

    def draw(name, weights):
        found[name] = chosen(weights)

    def draw_both(turned):
        each = [Thread(target=draw, args=given) for given in (("a", [1, 3]), ("b", [1, 1]))]
        for thread in each[::-1] if turned else each:
            thread.start()
            thread.join()
        return [max(found.values())]

    law = {(0,): 1 / 8, (1,): 7 / 8}
    assert set(statuses(lambda: draw_both(turned=False), law)[0].values()) == {Status.HOLDS}
    assert "several threads draw" in statuses(lambda: draw_both(next(runs) % 2), law)[1]


def test_what_is_drawn_once_and_kept_is_named_by_its_line():
    kept = cache(lambda kind, text: [random.randint(1, 2) for _ in TOKENS])
    _, said = statuses(partial(decode, kept, chosen, coin, length=3), partial(plain, kept, chosen, 3))
    assert "('random.randint', 'test_seeds_of_engines.py" in said
    assert "must be drawn before the call" in said


@pytest.mark.thorough
def test_bytes_of_the_operating_system_may_name_a_request_and_decide_nothing():
    kept = set()

    def named(last=0):
        kept.add(secrets.token_hex(4))
        return [int(random.random() < 0.25 + last)]

    def decided():
        return named() if secrets.token_bytes(1)[0] < 128 else named(0.5)

    law = {(0,): 0.75, (1,): 0.25}
    held, _ = statuses(named, law)
    assert set(held.values()) == {Status.HOLDS}
    hidden, statement = statuses(decided, law)
    assert hidden["law_is_target"] is Status.UNKNOWN
    assert "not a function of the draws that are answered" in statement
    assert "bytes of the operating system at test_seeds_of_engines.py:" in statement
