"""One verification, decision by decision: the sites of its draws, the texts that the target reads, and the result.

Sites are an interface: a tape answers by site, so a verifier that renames a decision gets another uniform.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from reference import Tokens, Verified
from specverify.laws.draws import Narrated, Replayed
from test_support.laws.rational import pmf

PREFIX = (2, 2)
MOST_ROWS = 9
"""More than any verification here reads: one that would go on for ever is stopped."""
SECOND, THIRD = pmf("1/4", "1/2", "1/4"), pmf("1/6", "1/3", "1/2")
BEHIND = {(0,): SECOND, (1,): THIRD, (2,): THIRD, (0, 1): THIRD, (2, 2): SECOND}
"""The target's rows by what stands behind the prefix and its first row."""

BONUS = (("bonus",), THIRD.tolist())
TO_THE_END = ((), (0,), (0, 1))
LAST, OUTER = [0, 0, 1], pmf(".5", 0, ".5").tolist()


class Done(NamedTuple):
    """The draws of a verification, the texts that it read, and its result."""

    decisions: tuple[tuple[tuple[object, ...], list[object]], ...]
    read: tuple[Tokens, ...]
    verified: Verified


def played(first, verify, draft, outcomes):
    """Run ``verify`` on a draft with its draws answered by ``outcomes``, all of which it must use.

    ``first`` is the target's first row of p.
    """
    rows = {(): first, **BEHIND}
    read, replayed = [], Replayed(outcomes)
    draws = Narrated(replayed)

    def target(tokens):
        assert tokens[: len(PREFIX)] == PREFIX
        assert len(read) < MOST_ROWS
        read.append(tokens[len(PREFIX) :])
        return rows[read[-1]]

    verified = verify(draws, target, PREFIX, draft)
    assert replayed.used == len(outcomes)
    return Done(tuple((made.site, list(made.weights)) for made in draws.decisions), tuple(read), verified)


def coin(heads):
    return pmf(heads, 1 - Fraction(heads)).tolist()
