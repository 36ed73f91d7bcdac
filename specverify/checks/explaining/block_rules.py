"""Recognise block verification (2403.10444, Algorithm 2), and name the fault of a verifier that follows one half of it.

Block verification accepts a prefix of the drafts by a joint test, so whether a draft is accepted depends on later
drafts. Compared with the tests of single drafts such a verifier looks wrong in every part. Here it is compared with its
own rule: the number of accepted drafts, and the law of the token after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.given_drafts import GivenDrafts, error_of, expected, fits, values_of
from specverify.checks.explaining.round_rules import Row, excess, ratio, scaled
from specverify.checks.explaining.wording import apart, rows_apart, short
from specverify.reference import Tokens
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


Weights = Callable[[list[Any], list[Any], Tokens], list[Any]]
"""``weights(p, q, drafts)`` returns w after each number of accepted drafts; ``p`` and ``q`` are rows."""


def block_round(given: GivenDrafts, weights_of: Weights = capped_ratios) -> BlockRound:
    """Return the acceptance probabilities and replacement pmfs of block verification for the round ``given``.

    They are computed from the drafts of the round, its rows of p and q, and the w that ``weights_of`` returns.
    """
    gamma = len(given.drafts)
    p, q = ([np.asarray(row) for row in rows] for rows in (given.rows.p, given.rows.q))
    weights = weights_of(p, q, given.drafts)
    rejected, at_least = 1 - weights[gamma], [weights[gamma]]
    for i in reversed(range(1, gamma)):
        rejected *= 1 - pass_probability(weights[i], p[i], q[i])
        at_least.insert(0, 1 - rejected)
    at_least.insert(0, 1)
    accept = [later / now if now > 0 else 0 for now, later in pairwise(at_least)]
    replace = {i: scaled(excess((weights[i] * p[i]).tolist(), q[i].tolist())) for i in range(gamma)}
    return BlockRound(weights, accept, replace)


def block_fault(all_given: Sequence[GivenDrafts]) -> str:
    """Return the sentence about the fault of a block verification: a wrong weight w, or one wrong half; else "".

    w is the product of p/q over the accepted drafts, limited to 1 after each. The two halves are the number of accepted
    drafts, and the law of the token after them. A wrong w must explain all numbers of both halves. A sentence about a
    half is returned if the rounds ``all_given`` follow the other half. Following a half counts only if the rule that
    tests single drafts does not explain its numbers. The result is "" if the acceptance of a draft does not depend on
    the drafts after it: then single drafts are tested.
    """
    if not depends_on_later(all_given):
        return ""
    rounds = [(given, block_round(given)) for given in all_given if given.drafts]
    accepts, replaces = _halves(rounds)
    if not (accepts and replaces) and any(_exclude_single_tests(rounds, part) for part in ("accept", "replace")):
        for name, weights_of in _OTHER_WEIGHTS.items():
            if all(_halves([(given, block_round(given, weights_of)) for given, _ in rounds])):
                return _wrong_weights(name, rounds)
    if accepts and not replaces and _exclude_single_tests(rounds, "accept"):
        return _wrong_replacement(rounds)
    if replaces and not accepts and _exclude_single_tests(rounds, "replace"):
        return _wrong_acceptance(rounds)
    return ""


def depends_on_later(all_given: Sequence[GivenDrafts]) -> str:
    """Return a phrase if the acceptance of a draft depends on the drafts after it, which a right test ignores; else "".

    Rounds of ``all_given`` are compared if they have the same text, and the same drafts and rows up to the tested one.
    """
    first: dict[Any, GivenDrafts] = {}
    for given in all_given:
        for i, value in enumerate(given.accept):
            begun = (given.prefix, given.drafts[: i + 1], *(tuple(rows[: i + 1]) for rows in given.rows))
            known = first.setdefault(begun, given)
            if not fits(value, known.accept[i], given.slack):
                return f"depending on later drafts: whether draft {i + 1} is accepted depends on draft {i + 2}"
    return ""


def follows_blocks(all_given: Sequence[GivenDrafts]) -> bool:
    """Return whether ``all_given`` follow both halves of block verification, and not the tests of single drafts."""
    rounds = [(given, block_round(given)) for given in all_given if given.drafts]
    return bool(depends_on_later(all_given)) and all(_halves(rounds))


def _halves(rounds: Sequence[tuple[GivenDrafts, BlockRound]]) -> tuple[bool, bool]:
    """Return which of the two halves of block verification the program follows in all ``rounds``, as two bools.

    The first half is the number of accepted drafts, the second the law of the token after them. ``rounds`` has pairs
    (observed round, the round that block verification gives).
    """
    accepts = all(
        fits(seen, block.accept[i], 4 * given.slack) for given, block in rounds for i, seen in enumerate(given.accept)
    )
    return accepts, all(_replaces(given, block, i) for given, block in rounds for i in given.replace)


def _products(p: Sequence[Row], q: Sequence[Row], drafts: Tokens, *, each: bool) -> list[Any]:
    """Return w for each number i of accepted drafts, as some wrong programs compute it.

    The right w is the product of p/q over the drafts, limited to 1 after each draft. Here only the final product is
    limited to 1, or with ``each``, every factor.
    """
    masses = [(p[i][token], q[i][token]) for i, token in enumerate(drafts)]
    ratios = [one / other if other > 0 and not each else ratio(one, other) for one, other in masses]
    return [min(1, product) for product in accumulate(ratios, mul, initial=1)]


_OTHER_WEIGHTS: Mapping[str, Weights] = {
    "the product of min(1, p/q) over the accepted drafts": partial(_products, each=True),
    "min(1, the product of p/q over the accepted drafts)": partial(_products, each=False),
}
"""Name -> a wrong w."""


def _wrong_weights(name: str, rounds: Sequence[tuple[GivenDrafts, BlockRound]]) -> str:
    """Return the sentence that ``rounds`` follow block verification with the wrong w called ``name``; "" if not.

    ``rounds`` has pairs (round, block verification of this round).
    """
    right = f"expected as in {RULE} the product of p/q, limited to 1 after each draft"
    said = f"blocks are verified with w = {name}, {right}"
    observed = ((given, block, i) for given, block in rounds for i in range(len(given.accept)))
    wrong = next((one for one in observed if not fits(one[0].accept[one[2]], one[1].accept[one[2]], 1e-6)), None)
    return f"{said}: {_accepted(*wrong)}" if wrong else said


def _accepted(given: GivenDrafts, block: BlockRound, i: int) -> str:
    does, ought = apart(given.accept[i], block.accept[i])
    behind = " after the drafts before it" if i else ""
    return f"of the drafts {given.drafts}, draft {i + 1} is accepted with probability {does}{behind}, expected {ought}"


def _replaces(given: GivenDrafts, block: BlockRound, i: int) -> bool:
    return fits(given.replace[i], block.replace[i], 4 * error_of(given, "replace", i))


def _exclude_single_tests(rounds: Sequence[tuple[GivenDrafts, BlockRound]], part: str) -> bool:
    """Return whether an observed value of ``part`` in ``rounds`` contradicts the rule that tests single drafts.

    ``part`` is "accept" (acceptance probabilities) or "replace" (pmfs of the next token). If no value contradicts it,
    the rounds do not show that ``part`` follows block verification.
    """
    return not all(
        fits(value, expected(given, part, i, given.rows), 4 * error_of(given, part, i))
        for given, _ in rounds
        for i, value in values_of(given, part)
    )


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
    half = f"the token after a partly accepted block is drawn as by {RULE}, but blocks are accepted otherwise"
    return f"{half}: {_accepted(given, block, i)}"


def _drafts(given: GivenDrafts, number: int) -> str:
    if number == 0:
        return "no accepted draft"
    tokens = ", ".join(map(str, given.drafts[:number]))
    return f"the accepted draft{'s' * (number > 1)} {tokens}"
