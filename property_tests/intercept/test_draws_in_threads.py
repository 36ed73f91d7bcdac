"""Draws of several threads, whose order may differ from run to run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from specverify.intercept.everywhere import AT_ONCE, Unanswered
from specverify.laws.draws import NotAFunctionOfItsDraws


class Parted:
    """Draws that differ from those of an earlier run."""

    def categorical(self, pmf, site):
        """Raise, as a replay does that draws from another pmf."""
        raise NotAFunctionOfItsDraws(f"the draw at {site} from {pmf} is another one")


def draw(draws):
    return draws.categorical([0.5, 0.5], ("coin",))


def test_threads_are_named_if_they_draw():
    draws = Unanswered(Parted())
    with pytest.raises(NotAFunctionOfItsDraws):
        draw(draws)
    with ThreadPoolExecutor(1) as pool, pytest.raises(NotAFunctionOfItsDraws, match=f"is another one: {AT_ONCE}"):
        pool.submit(draw, draws).result()


def test_a_single_thread_is_not_blamed():
    with pytest.raises(NotAFunctionOfItsDraws, match=r"is another one$"):
        draw(Unanswered(Parted()))
    with ThreadPoolExecutor(1) as pool, pytest.raises(NotAFunctionOfItsDraws, match=r"is another one$"):
        pool.submit(draw, Unanswered(Parted())).result()
