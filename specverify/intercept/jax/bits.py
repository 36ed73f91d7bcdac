"""Random bits that nobody has valued, on their way to a uniform number.

JAX makes every random number of ``random_bits``. A uniform one is their leading bits, put under the exponent of 1, read
as a float, less 1: so many of them that a float32 or a float64 has no digit more. What is read of them otherwise is the
rest of a division, as ``randint`` does, or the whole number itself, which is given as seeds are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np

from specverify.intercept.audit import Draw, Raced
from specverify.intercept.caller import caller
from specverify.intercept.refusals import Declined
from specverify.intercept.unknowns.continuous import Continuous, whole_number
from specverify.intercept.unknowns.deferred import Categorical, Deferred
from specverify.intercept.unknowns.finite import MOST_OUTCOMES
from specverify.intercept.unknowns.given import given
from specverify.intercept.unknowns.steps import plus, times
from specverify.intercept.unknowns.uniform import NeedsValue, Uniform
from specverify.laws import rounding
from specverify.reference import Draws, Site

FEW = 11
"""So many bits of a uniform, or less, are so few numbers that a law shows it."""


class Source:
    """One word of random bits: where it comes from, whatever is made of it."""

    def __init__(self, draws: Draws, site: Site, width: int, draw: Callable[[Hashable], Draw]) -> None:
        """``draw(way)`` is the draw of it in one way: as a uniform, or as the rest of a division."""
        self.draws, self.site, self.width, self._draw = draws, site, width, draw
        self.uniform = Uniform(draws, site, draw(("uniform", width)))
        """The word as a share of all words."""

    def rest(self, number: int) -> Deferred:
        """Return the rest of a division by a number far smaller than all words are many.

        It hangs on the last bits, of which a share tells nothing: whoever compares that as well is refused.
        """
        pmf = np.full(number, 1.0 / number)
        self.uniform.known.raced = Raced(caller(), 0.0)
        return Categorical(self.draws, pmf, (*self.site, "rest"), draw=self._draw(("rest", number, self.width)))


class Bits(Deferred):
    """The leading bits of a word as a whole number; who looks at it is given one, or draws it if it is one of few."""

    def __init__(self, source: Source, kept: int, under: int = 0) -> None:
        """``kept`` bits of the word are left, and ``under`` is what they were put under."""
        self.source, self.kept, self.under = source, kept, under
        super().__init__(lambda: under + given(whole_number(source.uniform, 0, 2**kept)))

    def shifted(self, by: int) -> Any:
        """Return them without the last ones."""
        return (
            Bits(self.source, self.kept - by)
            if not self.under and 0 <= by < self.kept
            else Declined(f"random bits are shifted by {by}")
        )

    def placed_under(self, number: int) -> Any:
        """Return them with other bits before them."""
        free = not self.under and number >= 0 and number % 2**self.kept == 0
        return (
            Bits(self.source, self.kept, number)
            if free
            else Declined("random bits are joined with bits in the same places")
        )

    def masked(self, mask: int) -> Any:
        """Return the last ones alone."""
        whole = not self.under and (mask + 1) & mask == 0 and mask > 0
        return self.rest(mask + 1) if whole else Declined(f"random bits are masked by {mask}, which is not 2**n - 1")

    def rest(self, number: int) -> Any:
        """Return the rest of a division."""
        if self.under or self.kept != self.source.width or number <= 0:
            raise NeedsValue("rest-needed", f"the rest of a division of random bits by {number} is needed")
        if number > MOST_OUTCOMES:  # a seed, or too many to be followed
            return Deferred(lambda: given(whole_number(self.source.uniform, 0, number)))
        return self.source.rest(number) if number > 1 else 0

    def converted(self, dtype: Any) -> Any:
        """Return them as whole numbers of another dtype, or as floats."""
        kind = np.dtype(dtype)
        if kind.kind == "u" and kind.itemsize * 8 >= self.kept:
            return self
        if kind.kind in "iu":
            return Deferred(lambda: int(np.asarray(self.value()).astype(kind)))
        if kind == np.bool_:
            return Deferred(lambda: int(self.value() != 0))
        if self.kept <= FEW:
            return whole_number(self.source.uniform, 0, 2**self.kept).then(plus(float(self.under)))
        return Continuous(self.source.uniform).then(times(2.0**self.kept)).then(plus(float(self.under)))

    def as_float(self, dtype: Any) -> Any:
        """Return the float whose bits these are: from 1 to 2, if they are all that a float of the exponent of 1 has."""
        info = jax.numpy.finfo(dtype)
        one = int(np.asarray(1.0, dtype).view(f"uint{info.bits}"))
        if self.kept != info.nmant or self.under != one:
            return Declined("random bits are read as a float that is not between 1 and 2")
        uniform = self.source.uniform
        if self.kept > FEW:
            return Continuous(uniform).then(plus(1.0))
        rounding.saw(dtype)
        return whole_number(uniform, 0, 2**self.kept).then(times(2.0**-self.kept)).then(plus(1.0))
