"""A comparison of a uniform with a bound, read as the test of a draft, and its description."""

from __future__ import annotations

from typing import NamedTuple

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.wording import apart, short


class DraftTest(NamedTuple):
    """A coin that is read as a test of a draft: a uniform u below its bound accepts it, or ``upside_down`` rejects."""

    coin: PathDraw
    upside_down: bool

    @property
    def accepts(self) -> bool:
        """Return whether the coin accepts the draft on its path."""
        return (self.coin.low <= 0) != self.upside_down

    @property
    def probability(self) -> float:
        """Return the probability with which the coin accepts the draft."""
        return self._number(self.coin.bound)

    @property
    def rule(self) -> str:
        """Return the formula of the right bound."""
        return "1 - min(1, p/q)" if self.upside_down else "min(1, p/q)"

    @property
    def where(self) -> str:
        """Return the program line of the coin in parentheses, after a space; "" if it is not known."""
        return f" ({self.coin.place})" if self.coin.place else ""

    def words(self, right: float | None = None) -> str:
        """Describe on which side of the bound u is; ``right`` is the right acceptance probability if it is another."""
        sign = "<" if self.coin.low <= 0 else ">="
        at = f", {self.coin.place}" if self.coin.place else ""
        if right is None:
            return f"u {sign} {short(self.coin.bound)}{at}"
        does, ought = self.bounds(right)
        return f"u {sign} {does}{at}; expected {ought} = {self.rule}"

    @property
    def wanted(self) -> str:
        """Return what u has to be for an acceptance, as the beginning of a comparison."""
        return "u >= " if self.upside_down else "u < "

    def bounds(self, right: float) -> tuple[str, str]:
        """Return the observed bound of u and the right one; ``right`` is the right acceptance probability."""
        return apart(self.coin.bound, self._number(right))

    def _number(self, other: float) -> float:
        """Return the bound of u for an acceptance probability, and the probability for a bound."""
        return 1 - other if self.upside_down else other
