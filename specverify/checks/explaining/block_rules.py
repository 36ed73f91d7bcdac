"""Name the fault of a verifier that follows one half of block verification (2403.10444, Algorithm 2) and not the other.

Block verification accepts a prefix of the drafts by a joint test, so whether a draft is accepted depends on later
drafts. Compared with the tests of single drafts such a verifier looks wrong in every part. Here it is compared with its
own rule: the number of accepted drafts, and the law of the token after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.given_drafts import GivenDrafts, error_of, expected, fits
from specverify.checks.explaining.round_rules import Row, excess, scaled
from specverify.checks.explaining.wording import apart, rows_apart, short
from specverify.reference.verifiers.block_verification import capped_ratios, pass_probability

RULE = "block verification (2403.10444)"
WEIGHT = "w is the product of p/q over the accepted drafts, limited to 1 after each of them"


class BlockRound(NamedTuple):
    """The probabilities that block verification gives for one round: acceptance of each draft, and the next token."""

    weights: Sequence[Any]
    """w after each number of accepted drafts."""
    accept: Sequence[Any]
    """P(draft i is accepted | the earlier drafts are accepted)."""
    replace: Mapping[int, Row]
    """Number of accepted drafts, if not all -> pmf of the next token."""


def block_round(given: GivenDrafts) -> BlockRound:
    """Return the acceptance probabilities and replacement pmfs of block verification for the round ``given``.

    They are computed from the drafts of the round and its rows of p and q.
    """
    gamma = len(given.drafts)
    p, q = ([np.asarray(row) for row in rows] for rows in (given.rows.p, given.rows.q))
    weights = capped_ratios(p, q, given.drafts)
    rejected, at_least = 1 - weights[gamma], [weights[gamma]]
    for i in reversed(range(1, gamma)):
        rejected *= 1 - pass_probability(weights[i], p[i], q[i])
        at_least.insert(0, 1 - rejected)
    at_least.insert(0, 1)
    accept = [later / now if now > 0 else 0 for now, later in pairwise(at_least)]
    replace = {i: scaled(excess((weights[i] * p[i]).tolist(), q[i].tolist())) for i in range(gamma)}
    return BlockRound(weights, accept, replace)


def block_fault(all_given: Sequence[GivenDrafts]) -> str:
    """Return the sentence about the wrong half of a block verification; "" if both halves are right or both are wrong.

    The two halves are the number of accepted drafts, and the law of the token after them. The sentence is returned if
    the rounds ``all_given`` follow one half and not the other. Following a half counts only if it differs there from
    the rule that tests single drafts.
    """
    rounds = [(given, block_round(given)) for given in all_given if given.drafts]
    accepts = all(
        fits(seen, block.accept[i], 4 * given.slack) for given, block in rounds for i, seen in enumerate(given.accept)
    )
    replaces = all(_replaces(given, block, i) for given, block in rounds for i in given.replace)
    if accepts and not replaces and _differ(rounds, "accept"):
        return _wrong_replacement(rounds)
    if replaces and not accepts and _differ(rounds, "replace"):
        return _wrong_acceptance(rounds)
    return ""


def _replaces(given: GivenDrafts, block: BlockRound, i: int) -> bool:
    return fits(given.replace[i], block.replace[i], 4 * error_of(given, "replace", i))


def _differ(rounds: Sequence[tuple[GivenDrafts, BlockRound]], part: str) -> bool:
    """Return whether block verification gives other values for ``part`` than the tests of single drafts, in any round.

    ``part`` is "accept" (acceptance probabilities) or "replace" (pmfs of the next token). Only the positions that
    ``rounds`` observe are compared. If no value differs, the rounds cannot show which of the two rules is followed.
    """
    for given, block in rounds:
        places = range(len(given.accept)) if part == "accept" else given.replace
        for i in places:
            single = expected(given, part, i, given.rows)
            own = dict(enumerate(block.replace[i])) if part == "replace" else block.accept[i]
            if not fits(own, single, 1e-6):
                return True
    return False


_ROWS: Mapping[str, Callable[[GivenDrafts, int], Row]] = {
    "norm(max(p - q, 0)), without w": lambda given, i: excess(given.rows.p[i], given.rows.q[i]),
    "p": lambda given, i: scaled(given.rows.p[i]),
}
"""Name -> a wrong row of the token after a partly accepted block."""


def _wrong_replacement(rounds: Sequence[tuple[GivenDrafts, BlockRound]]) -> str:
    named = next(
        (
            name
            for name, row in _ROWS.items()
            if all(
                fits(law, row(given, i), 4 * error_of(given, "replace", i))
                for given, _ in rounds
                for i, law in given.replace.items()
            )
        ),
        "another row",
    )
    given, block, i = next(
        (given, block, i) for given, block in rounds for i in given.replace if not _replaces(given, block, i)
    )
    does, ought = rows_apart(
        [given.replace[i].get(token, 0) for token in range(len(block.replace[i]))], block.replace[i]
    )
    return (
        f"drafts are accepted as by {RULE}, but the token after a partly accepted block is drawn from {named}, "
        f"expected norm(max(w p - q, 0)), where {WEIGHT}: after {_drafts(given, i)}, w = {short(block.weights[i])}, it "
        f"is drawn from {does}, expected {ought}"
    )


def _wrong_acceptance(rounds: Sequence[tuple[GivenDrafts, BlockRound]]) -> str:
    given, block, i = next(
        (given, block, i)
        for given, block in rounds
        for i, seen in enumerate(given.accept)
        if not fits(seen, block.accept[i], 4 * given.slack)
    )
    does, ought = apart(given.accept[i], block.accept[i])
    return (
        f"the token after a partly accepted block is drawn as by {RULE}, but blocks are accepted otherwise: of the "
        f"drafts {given.drafts}, draft {i + 1} is accepted with probability {does} after the drafts before it, "
        f"expected {ought}"
    )


def _drafts(given: GivenDrafts, number: int) -> str:
    if number == 0:
        return "no accepted draft"
    tokens = ", ".join(map(str, given.drafts[:number]))
    return f"the accepted draft{'s' * (number > 1)} {tokens}"
