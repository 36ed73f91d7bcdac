"""Explain tests of drafts in which p already counts drafts that are not accepted yet, as by an early penalty.

A penalty multiplies the odds of each token of the text by one number. A wrong engine applies it to p with the drafts of
the round counted too: the number is then found from one test and must explain all tests, replacements and bonuses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from scipy.optimize import brentq

from specverify.checks.explaining.given_drafts import PARTS, GivenDrafts, expected, fits, value_fits, values_of
from specverify.checks.explaining.round_rules import ModelRows, scaled
from specverify.checks.explaining.wording import short
from specverify.reference import Tokens

OPEN = 1e-6
LEAST_NUMBERS = 3
"""The least number of different wrong acceptances that must show the number."""
LEAST_CHANGE = 0.01
"""A number nearer than this to 1 is no penalty: a rounded ratio, say, looks like it."""
LARGEST_LOG = 7.0
"""The largest logarithm of the number that is tried."""


class _Counting(NamedTuple):
    """The drafts that a wrong p counts at the test of a draft.

    ``later``: also the drafts after the tested one. ``hidden``: also the token after the last draft if p is certain of
    it, because such a draft is seen by no draw. ``repeated``: a token counts as often as it occurs; otherwise once, and
    not if the text has it already. ``known``: a token of the prompt, which may not be known.
    """

    later: bool
    hidden: bool
    repeated: bool
    known: int | None

    def times(self, given: GivenDrafts, i: int) -> dict[int, int]:
        """Return how often the wrong p at position ``i`` of the round ``given`` counts a token too often."""
        counted = given.drafts[i:] if self.later else given.drafts[i : i + 1]
        counted += _certain_token(given) if self.hidden else ()
        if self.repeated:
            return dict(Counter(counted))
        text: Tokens = given.prefix + given.drafts[:i]
        return {token: 1 for token in counted if token not in text and token != self.known}

    def rows(self, given: GivenDrafts, number: float) -> ModelRows:
        """Return the rows of ``given`` with the wrong p at each draft; ``number`` multiplies the odds of a token."""
        p = list(given.rows.p)
        for i in range(len(given.drafts)):
            odds = list(p[i])
            for token, count in self.times(given, i).items():
                odds[token] = float(odds[token]) * number**count
            p[i] = scaled(odds)
        return given.rows._replace(p=tuple(p))


def counted_drafts(all_given: Sequence[GivenDrafts]) -> str:
    """Return the sentence that p in the tests of ``all_given`` counts drafts that are not accepted yet; "" if not."""
    wrong = [
        (given, i, float(seen))
        for given in all_given
        for i, seen in enumerate(given.accept)
        if OPEN < seen < 1 - OPEN and not fits(seen, expected(given, "accept", i, given.rows), given.slack)
    ]
    if len({round(seen, 9) for _, _, seen in wrong}) < LEAST_NUMBERS:
        return ""
    for counting in _countings(sorted({token for given in all_given for token in given.drafts})):
        number = _number(counting, *wrong[0])
        if (
            abs(number - 1) > LEAST_CHANGE
            and number
            and all(
                value_fits(given, part, i, seen, counting.rows(given, number))
                for given in all_given
                for part in PARTS
                for i, seen in values_of(given, part)
            )
        ):
            which = "the draft itself and those after it" if counting.later else "the draft itself"
            early = "as a penalty does that is applied too early" if number < 1 else "before the draft is accepted"
            return f"p in the test of a draft counts {which} ({short(number)} times the odds), {early}"
    return ""


def _countings(drafts: Sequence[int]) -> Iterator[_Counting]:
    """Yield each way to count drafts that is tried; one of the tokens ``drafts`` may stand in the prompt too."""
    for later, hidden, repeated in product((False, True), repeat=3):
        if later or not hidden:
            yield from (_Counting(later, hidden, repeated, token) for token in (None, *(() if repeated else drafts)))


def _certain_token(given: GivenDrafts) -> Tokens:
    row = [float(mass) for mass in given.rows.p[-1]]
    return (row.index(max(row)),) if len(given.rows.p) > len(given.drafts) and max(row) > 1 - OPEN else ()


def _number(counting: _Counting, given: GivenDrafts, i: int, seen: float) -> float:
    """Return the number with which draft ``i`` of ``given`` is accepted with probability ``seen``; 0 if there is none.

    ``counting`` states which tokens have the number in their odds.
    """
    row, token, times = given.rows.p[i], given.drafts[i], counting.times(given, i)
    wanted = seen * float(given.rows.q[i][token])
    others = 1 - sum(float(row[other]) for other in times)

    def deviation(logarithm: float) -> float:
        odds = {other: float(row[other]) * math.exp(logarithm * count) for other, count in times.items()}
        return odds[token] / (others + sum(odds.values())) - wanted

    if token not in times or deviation(-LARGEST_LOG) * deviation(LARGEST_LOG) >= 0:
        return 0.0
    return math.exp(float(brentq(deviation, -LARGEST_LOG, LARGEST_LOG, xtol=1e-14)))
