"""The token of a sample whose share differs most from its probability, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from specverify.checks.explaining.wording import apart
from specverify.reference import Tokens

SHORTER = 0.7
"""An earlier token is named if its deviation, in standard deviations, is at least this share of the largest one."""


class _ObservedShare(NamedTuple):
    """How often a token follows the new tokens ``before`` in a sample: ``seen`` of ``of`` times."""

    before: Tokens
    token: int
    seen: int
    of: int
    expected: float

    @property
    def deviation(self) -> float:
        """Return the difference from the expected share in standard deviations."""
        spread = math.sqrt(max(self.expected * (1 - self.expected), 1e-12) / self.of)
        return abs(self.seen / self.of - self.expected) / spread


def sampled_difference(counts: Mapping[Tokens, int], law: Mapping[Tokens, float]) -> str:
    """Return a sentence with the share of a token in a sample and its probability; "" if none can be compared.

    Args:
        counts: New tokens -> number of samples.
        law: New tokens -> expected probability.
    """
    drawn, expected = _beginnings(counts), _beginnings(law)
    shares = [
        _ObservedShare(text[:-1], text[-1], drawn.get(text, 0), int(drawn[text[:-1]]), expected.get(text, 0.0) / mass)
        for text in sorted({*drawn, *expected} - {()}, key=lambda text: (len(text), text))
        if text[:-1] in drawn and (mass := expected.get(text[:-1], 0.0)) > 0
    ]
    if not shares:
        return ""
    most = max(share.deviation for share in shares)
    found = next(share for share in shares if share.deviation >= SHORTER * most)
    share, probability = apart(found.seen / found.of, found.expected)
    after = (
        f" after new token{'s' * (len(found.before) > 1)} {', '.join(map(str, found.before))}" if found.before else ""
    )
    place = len(found.before) + 1
    return f"new token {place} is {found.token} in {share} of {found.of} samples{after}, expected {probability}"


def _beginnings(law: Mapping[Tokens, float]) -> Counter[Tokens]:
    """Return beginning of a text -> sum of the masses of the texts that begin so."""
    result: Counter[Tokens] = Counter()
    for text, mass in law.items():
        for length in range(len(text) + 1):
            result[text[:length]] += mass  # type: ignore[assignment]  # counts of masses
    return result
