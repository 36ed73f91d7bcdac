"""Interpreters of draws whose outcomes are the drafts and uniforms of a test vector.

They serve programs that name their draws, and foreign code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from specverify.reference import Pmf, Site, inverse_cdf


class NotAsked(Exception):  # noqa: N818 - reads as what it says
    """Raised if a test vector does not apply to the subject."""


class Forced:
    """Interpreter that answers the draws of a program with the numbers of a test vector.

    Drafts become those of the vector; its uniforms decide the acceptance tests (coins) and the draw of the next token.
    Draws made by ``Draws`` are recognised by their names. Of intercepted draws, those with two outcomes are taken for
    the coins of the drafts in order, and the others for the next token. ``NotAsked`` is raised if coins come from
    several program lines, or one uniform is compared twice: then a draw with two outcomes need not be a coin.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        """Store the draws that the test vector fixes: its drafted tokens and its uniforms.

        ``inputs`` are the inputs of a ``verify_chain`` vector, which describe one round of a verifier. A vector has the
        uniforms of the acceptance tests (``coins``) or one uniform for each token drawn from p (``uniforms``), and the
        uniform of the last token (``final``). Those that it lacks are not fixed: a draw that needs one raises
        ``NotAsked``.
        """
        self._drafts = tuple(inputs["draft"])
        self._coins = [Fraction(coin) for coin in inputs.get("coins", ())]
        self._uniforms = [Fraction(uniform) for uniform in inputs.get("uniforms", ())]
        self._final = Fraction(inputs["final"]) if "final" in inputs else None
        self._flipped = 0
        self._line: Site = ()

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome that the vector gives this draw; raises ``NotAsked`` if the vector gives none."""
        if site[0] == "draft":
            return self._draft(pmf, site)
        return inverse_cdf(pmf, self._uniform(pmf, site))  # type: ignore[arg-type]

    def _draft(self, pmf: Pmf, site: Site) -> int:
        token = self._drafts[site[1]] if isinstance(site[1], int) and site[1] < len(self._drafts) else -1
        if token < 0 or not pmf[token] > 0:
            raise NotAsked("another draft")
        return token

    def _uniform(self, pmf: Pmf, site: Site) -> Fraction:
        named = site[0] in {"accept", "target", "residual", "bonus"}
        if site[0] == "target" and self._uniforms:
            return self._at(self._uniforms, site[1])
        if named and site[0] == "accept":
            return self._at(self._coins, site[1])
        if not named and len(pmf) == 2:
            return self._next_coin(site)
        if self._final is None:
            raise NotAsked("another draw")
        return self._final

    def _next_coin(self, site: Site) -> Fraction:
        call, again = site[:2], site[-1]
        self._line = self._line or call
        if call != self._line or (isinstance(again, int) and again > 1):
            raise NotAsked("a uniform that is looked up, and is no coin")
        self._flipped += 1
        return self._at(self._coins, self._flipped - 1)

    def _at(self, numbers: Sequence[Fraction], place: Any) -> Fraction:
        if not isinstance(place, int) or place >= len(numbers):
            raise NotAsked("another coin")
        return numbers[place]
