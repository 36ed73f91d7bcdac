"""A real vocabulary in NumPy: the law of every way to draw a token, in a few runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.large import at_large
from specverify.laws.draws import Tape
from test_support.laws.at_large import kept_open

SIZE = 300
WEIGHTS = np.random.default_rng(0).exponential(size=SIZE)
WEIGHTS[[0, 7, 100, SIZE - 1]] = 0.0
PMF = WEIGHTS / WEIGHTS.sum()
CDF = np.cumsum(PMF)
ONE = np.where(np.arange(SIZE) == 5, 0.25, 0.0)


def rng():
    return np.random.default_rng()


def forbidden(found):
    with np.errstate(divide="ignore"):
        return np.log(PMF) + found


IDIOMS = {
    "choice": lambda: rng().choice(SIZE, p=PMF),
    "legacy choice": lambda: int(np.random.choice(SIZE, p=PMF)),  # noqa: NPY002 - what is tested
    "multinomial": lambda: rng().multinomial(1, PMF).argmax(),
    "race": lambda: int((PMF / rng().exponential(size=SIZE)).argmax()),
    "race of the smallest": lambda: int(np.argmin(rng().standard_exponential(SIZE)[PMF > 0] / PMF[PMF > 0])),
    "gumbel": lambda: int(np.argmax(forbidden(rng().gumbel(size=SIZE)))),
    "gumbel of uniforms": lambda: forbidden(-np.log(-np.log(rng().random(SIZE)))).argmax(),
    "rows": lambda: (np.stack([PMF, PMF[::-1]]) / rng().exponential(size=(2, SIZE))).argmax(axis=-1)[1],
    "one is left": lambda: int(np.argmin(-np.log(1 - rng().random(SIZE)) / ONE)),
    "searchsorted": lambda: np.searchsorted(CDF, rng().random()),
    "method searchsorted": lambda: CDF.searchsorted(rng().random() * CDF[-1], side="right"),
    "digitize": lambda: np.digitize(rng().random(), CDF),
    "first above": lambda: int((rng().random() < CDF).argmax()),
    "count below": lambda: int((rng().random() >= CDF).sum()),
    "choices": lambda: random.choices(range(SIZE), weights=PMF)[0],
    "choices of sums": lambda: random.choices(range(SIZE), cum_weights=CDF.tolist())[0],
}
OTHER = {"rows": PMF[::-1], "one is left": 4 * ONE, "race of the smallest": np.append(PMF[PMF > 0], np.zeros(4))}
"""What is drawn where that is not ``PMF``."""


@pytest.mark.parametrize("idiom", IDIOMS)
def test_a_token_has_its_law_in_a_real_vocabulary(idiom):
    found, runs = kept_open(IDIOMS[idiom], SIZE)
    assert np.allclose(found, OTHER.get(idiom, PMF), atol=1e-12)
    assert runs < SIZE / 4


def test_another_law_would_be_seen():
    assert not np.allclose(kept_open(IDIOMS["rows"], SIZE)[0], PMF, atol=1e-12)


def run(program):
    with at_large(), answered_everywhere(Tape(0)):
        return program()


def test_noise_of_one_state_is_one_noise_and_another_draw_from_it_is_refused():
    def twice(second):
        first, other = (np.random.default_rng(3) for _ in range(2))
        return (PMF / first.exponential(size=SIZE)).argmax(), second(other)

    with pytest.raises(NeedsValue, match="second race"):
        run(lambda: twice(lambda rng: (PMF / rng.exponential(size=SIZE)).argmax()))
    with pytest.raises(NeedsValue, match=r"draws? (twice )?from one state"):
        run(lambda: twice(lambda rng: rng.exponential(size=SIZE + 1).argmax()))


@pytest.mark.parametrize(
    "program",
    [
        lambda noise: np.asarray(noise).view(np.ndarray).sum(),
        lambda noise: noise.sort(),
        lambda noise: noise.astype(int),
        lambda noise: noise.argmax(out=np.zeros((), dtype=np.int64)),
        lambda noise: noise > 0.5 * np.arange(SIZE) / SIZE,
        lambda noise: np.fromiter(np.asarray(noise), dtype=float),
    ],
)
def test_what_gets_at_the_numbers_is_refused(program):
    with pytest.raises(NeedsValue):
        run(lambda: program(rng().random(SIZE)))


def test_an_operation_in_place_is_seen_by_nobody_else_or_refused():
    def gumbel():
        noise = rng().gumbel(size=SIZE)
        noise += forbidden(0)
        np.multiply(noise, 2.0, out=noise)
        return noise.argmax()

    def seen():
        noise = rng().gumbel(size=SIZE)
        part = noise[:]
        noise += forbidden(0)
        return part.argmax()

    assert np.allclose(kept_open(gumbel, SIZE)[0], PMF)
    with pytest.raises(NeedsValue, match="that others see"):
        run(seen)


def test_shapes_copies_and_parts_are_the_same_numbers():
    def program():
        noise = rng().exponential(size=(2, SIZE))
        moved = np.reshape(noise.copy().astype(np.float32), -1).reshape(2, SIZE).T.T
        few = moved[1, 5:8] * 2.0
        assert few.shape == (3,)
        assert isinstance(few[0] < 0.5, bool)
        return int((PMF / np.ravel(moved[0])).argmax())

    large, _ = kept_open(program, SIZE)
    assert np.allclose(large, PMF)
