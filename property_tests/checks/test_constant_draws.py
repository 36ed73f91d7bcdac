"""Engines that make the weights of their models in each call, from a generator with a constant seed."""

from __future__ import annotations

import random
import sys
import time

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks.constant_draws import seeds_in_words
from specverify.intercept.run import PROCESS
from specverify.testing import check_engine

RNG = np.random.default_rng(0)
NEW = 2
LAW = "law_is_target"


@pytest.fixture(autouse=True)
def _new_generator(monkeypatch):
    """Make the generator anew: a search finds it beside all that tests keep out."""
    monkeypatch.setattr(sys.modules[__name__], "RNG", np.random.default_rng(0))


def pmf_of(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


class Model:
    """A network of one hidden layer with two tokens; ``draws`` makes its weights."""

    def __init__(self, draws):  # noqa: D107 - the class says it
        self.embed, self.head = draws(2, 3), draws(3, 2)

    def __call__(self, text):  # noqa: D102 - the pmf of the next token
        return pmf_of(np.tanh(self.embed[text[-1]] + len(text)) @ self.head)


def of_state(seed):
    return Model(np.random.RandomState(seed).randn)


def of_generator(seed):
    generator = np.random.default_rng(seed)
    return Model(lambda *shape: generator.uniform(-1, 1, shape))


def of_python(seed):
    generator = random.Random(seed)
    return Model(lambda *shape: np.array([[generator.gauss(0, 1) for _ in range(shape[1])] for _ in range(shape[0])]))


def choice(pmf):
    return int(RNG.choice(2, p=pmf))


def coin_of_numpy():
    return RNG.random()


def speculative(target, draft, verified=None, sample=choice, coin=coin_of_numpy):
    """Decode with one draft a round; ``verified`` has the rows by which drafts are accepted, ``target`` if None."""
    text = [0]
    while len(text) <= NEW:
        q = draft(text)
        token, p = sample(q), (verified or target)(text)
        if coin() >= p[token] / q[token]:
            token = sample(np.maximum(p - q, 0) / np.maximum(p - q, 0).sum())
        text.append(token)
    return text[1:]


def plain(target, sample=choice):
    text = [0]
    for _ in range(NEW):
        text.append(sample(target(text)))
    return text[1:]


def statuses(fast, slow, *checks):
    verdicts = check_engine(fast, slow, quick=True, checks=[*checks] or None, on_fail=None)
    return {verdict.check: verdict.status for verdict in verdicts}, verdicts


@pytest.mark.thorough(keep=2)
@pytest.mark.usefixtures("unexplained", "named_checks_alone")
@pytest.mark.parametrize("made", [of_state, of_generator, of_python])
def test_weights_that_each_call_makes_are_constants(made):
    found, verdicts = statuses(lambda: speculative(made(3), made(8)), lambda: plain(made(3)))
    assert set(found.values()) == {Status.HOLDS}
    lines = ", ".join(sorted(PROCESS.constant_lines))
    assert verdicts[0].figures["notes"] == [
        f"it draws constants at {lines}, from a generator that it seeds itself: they are the numbers of the library"
    ]
    wrong = statuses(lambda: speculative(made(3), made(8), verified=made(4)), lambda: plain(made(3)), LAW)[0]
    assert wrong[LAW] is Status.REFUTED


def of_the_time():
    """Return a function that is new, as ``_new_generator`` is."""
    return lambda clock=time.time: int(clock())


@pytest.mark.parametrize(
    "seeding",
    [of_the_time, lambda: lambda: RNG.integers(2**31), lambda: lambda: None],
    ids=["the time", "a drawn number", "none"],
)
def test_weights_that_differ_from_call_to_call_are_no_constants(seeding):
    seed = seeding()
    found, _ = statuses(lambda: speculative(of_generator(seed()), of_generator(8)), lambda: plain(of_generator(3)))
    assert set(found.values()) == {Status.UNKNOWN}


@pytest.mark.usefixtures("unexplained", "named_checks_alone")
def test_weights_may_depend_on_a_draw():
    def one_of_two():
        return of_state(int(RNG.integers(2)))

    found, _ = statuses(lambda: speculative(one_of_two(), of_state(8)), lambda: plain(one_of_two()))
    assert set(found.values()) == {Status.HOLDS}
    wrong, _ = statuses(lambda: speculative(of_state(0), of_state(8)), lambda: plain(one_of_two()), LAW)
    assert wrong[LAW] is Status.REFUTED


def coins_first(seed, model, draft=None):
    """Decode with coins that are drawn together before the weights, from a generator with ``seed``."""
    coins = iter(np.random.default_rng(seed).random(3 * NEW))

    def sample(pmf):
        return int(next(coins) >= pmf[0])

    if draft is None:
        return plain(of_state(model), sample)
    return speculative(of_state(model), of_state(draft), sample=sample, coin=lambda: next(coins))


@pytest.mark.parametrize("seeded", [True, False], ids=["the seed of the request", "a constant seed"])
def test_numbers_that_can_be_followed_remain_random(seeded):
    """They are drawn before the program is refused, as the weights are, and have decided nothing until then."""

    def fast(seed):
        return coins_first(seed, 3, 8)

    def slow(seed):
        return coins_first(seed, 3)

    found, _ = statuses(*((fast, slow) if seeded else (lambda: fast(0), lambda: slow(0))))
    assert set(found.values()) == {Status.HOLDS}


def test_an_engine_that_is_followed_has_no_constants():
    def fast():
        generator = np.random.default_rng(5)
        return speculative(
            table, draft_table, sample=lambda pmf: int(generator.choice(2, p=pmf)), coin=generator.random
        )

    found, verdicts = statuses(fast, lambda: plain(table))
    assert set(found.values()) == {Status.HOLDS}
    assert not PROCESS.constant_lines
    assert "constants" not in str(verdicts[0].figures.get("notes"))


def table(text):
    return np.array([0.25, 0.75]) if text[-1] else np.array([0.5, 0.5])


def draft_table(text):
    return np.array([0.625, 0.375])


def test_the_lines_of_one_engine_are_not_those_of_the_next():
    statuses(lambda: speculative(of_state(3), of_state(8)), lambda: plain(of_state(3)))
    assert PROCESS.constant_lines
    statuses(lambda: speculative(table, draft_table), lambda: plain(table))
    assert not PROCESS.constant_lines


def test_an_engine_that_is_refused_for_another_reason_has_no_constants():
    """Its weights could be constants, but the value of another number is needed too."""

    def fast():
        target = of_state(3)
        return [int(float(f"{RNG.random():.3f}") > 0.5), *speculative(target, of_state(8))[1:]]

    found, _ = statuses(fast, lambda: plain(of_state(3)))
    assert found["law_is_target"] is Status.UNKNOWN


def test_a_path_may_need_constants_that_others_do_not():
    def fast():
        first = choice(table([0]))
        return [first, choice(of_state(3)([0, first]) if first else table([0]))]

    def slow():
        first = choice(table([0]))
        return [first, choice(of_state(3)([0, first]) if first else table([0]))]

    found, _ = statuses(fast, slow)
    assert set(found.values()) == {Status.HOLDS}


def by_numpy(seed):
    return np.random.default_rng(seed).permutation(3)


def by_large_permutation(seed):
    return [token for token in np.random.RandomState(seed).permutation(5000) if token < 3]


def by_python(seed):
    tokens = [0, 1, 2]
    random.Random(seed).shuffle(tokens)
    return tokens


def marked(rows, text, last, shuffled):
    """Return the row after ``text`` with three times the weight of a token that a hash of ``last`` chooses."""
    weights = rows[text[-1]].copy()
    weights[shuffled(100 + last)[0]] *= 3
    return weights / weights.sum()


P = np.array([[0.5, 0.25, 0.25], [0.25, 0.125, 0.625], [0.375, 0.5, 0.125]])
Q = np.array([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])


def drawn(row):
    return int(RNG.choice(3, p=row / row.sum()))


def marked_plain(shuffled):
    """Return two new tokens, drawn one by one from marked rows."""
    text = [0]
    for _ in range(2):
        text.append(drawn(marked(P, text, text[-1], shuffled)))
    return text[1:]


def marked_fast(shuffled, stale):
    """Return the tokens of a round of one draft; if ``stale``, the row of the bonus is marked by an earlier token."""
    p, q = (marked(rows, [0], 0, shuffled) for rows in (P, Q))
    draft = drawn(q)
    if RNG.random() * q[draft] >= p[draft]:
        draft = drawn(np.maximum(p - q, 0))
    return [draft, drawn(marked(P, [draft], 0 if stale else draft, shuffled))]


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("shuffled", [by_numpy, by_python, by_large_permutation])
@pytest.mark.parametrize(("stale", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_what_a_hash_of_the_text_draws_belongs_to_the_rows(shuffled, stale, status):
    found, verdicts = statuses(lambda: marked_fast(shuffled, stale), lambda: marked_plain(shuffled), LAW)
    assert found[LAW] is status, verdicts


@pytest.mark.usefixtures("unexplained")
def test_a_law_that_is_wrong_with_constant_coins_is_unknown():
    """With another seed in each call it would be right; with the seed that the program sets it is not."""

    def fast():
        return speculative(table, draft_table, coin=np.random.default_rng(5).random)

    found, verdicts = statuses(fast, lambda: plain(table), LAW)
    assert found[LAW] is Status.UNKNOWN
    said = next(verdict.statement for verdict in verdicts if verdict.check == LAW)
    assert said.startswith("some of its random numbers come from seeds that it sets to the same values in every run (")
    assert ". With the numbers of the library in their place it is refuted: as called: TV = " in said


def by_generator(generator, pmf):
    return int(generator.choice(2, p=pmf))


def with_bonuses_of(fixed):
    """Return a call that draws from generators with its seed, and every second token from one with the seed 0."""

    def fast(seed):
        generator, text = np.random.default_rng(seed), [0]
        while len(text) <= NEW:
            text.append(by_generator(generator, table(text)))
            text.append(by_generator(np.random.default_rng(0) if fixed else generator, table(text)))
        return text[1 : NEW + 1]

    return fast


@pytest.mark.parametrize(("fixed", "status"), [(True, Status.UNKNOWN), (False, Status.HOLDS)])
def test_a_constant_seed_beside_that_of_the_call_is_unknown(fixed, status):
    """One line draws with both seeds, so its numbers are neither constants nor random in all draws."""
    found, verdicts = statuses(with_bonuses_of(fixed), lambda: plain(table), LAW)
    assert found[LAW] is status, verdicts
    said = next((verdict.statement for verdict in verdicts if verdict.status is Status.UNKNOWN), "")
    assert (" (np.random.default_rng(0).choice at test_constant_draws.py:" in said) is fixed


def test_a_line_with_draws_of_both_kinds_is_named_as_such():
    said = seeds_in_words(["noise at e.py:3", "coin at e.py:1"], ["noise at e.py:3"])
    assert "(some draws of noise at e.py:3, coin at e.py:1), others do not (other draws of noise at e.py:3)" in said


@pytest.mark.usefixtures("unexplained")
def test_constant_coins_that_are_used_again_in_each_round_are_refuted():
    """The law is wrong with the numbers of the constant seed, and with those of any other seed too."""

    def fast():
        return speculative(table, draft_table, coin=lambda: np.random.default_rng(5).random())

    found, _ = statuses(fast, lambda: plain(table), LAW)
    assert found[LAW] is Status.REFUTED
