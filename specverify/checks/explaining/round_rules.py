"""The rule of speculative sampling, and the formulas that wrong programs use instead, each with a name.

The rule (2211.17192, Algorithm 1): draft x is accepted with probability min(1, p(x)/q(x)), a rejected draft is replaced
by a draw from norm(max(p - q, 0)), and after the last draft comes a bonus token from p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.reference import Tokens, excess_law

Row = Sequence[Any]


class ModelRows(NamedTuple):
    """Rows of p and q along a draft: ``p[i]`` and ``q[i]`` are the rows after i drafts."""

    p: tuple[Row, ...]
    q: tuple[Row, ...]


def ratio(p: Any, q: Any) -> Any:
    """Return min(1, p/q); 1 if q is 0, because such a token is never drafted."""
    return min(1, p / q) if q > 0 else 1


def excess(p: Row, q: Row) -> Row:
    """Return norm(max(p - q, 0)), or p if the maximum is 0 everywhere."""
    return _excess(tuple(p), tuple(q))


@lru_cache(maxsize=32)
def _excess(p: tuple[Any, ...], q: tuple[Any, ...]) -> Row:
    law: Row = excess_law(np.asarray(p), np.asarray(q)).tolist()
    return law


def same_row(one: Row, other: Row, near: float) -> bool:
    """Return whether the rows ``one`` and ``other`` have equal length and differ by less than ``near`` everywhere."""
    return len(one) == len(other) and all(abs(a - b) < near for a, b in zip(one, other, strict=True))


# Other formulas

AcceptFormula = Callable[[ModelRows, Tokens, int], Any]
RowFormula = Callable[[ModelRows, Tokens, int], Row]


def _argmax(row: Row) -> int:
    return max(range(len(row)), key=lambda token: row[token])


def scaled(row: Row) -> Row:
    """Return a row divided by its sum; the row itself if the sum is 0."""
    total = sum(row)
    return [value / total for value in row] if total > 0 else list(row)


def without(row: Row, *tokens: int) -> Row:
    """Return ``row`` with 0 at ``tokens``; it is not divided by its sum."""
    return [0 * mass if token in tokens else mass for token, mass in enumerate(row)]


def mean(rows: Sequence[Row]) -> Row:
    """Return the mean of the rows, entry by entry."""
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def _one_coin(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return P(draft i is accepted | all earlier drafts are) of a wrong rule that uses one uniform for all tests.

    ``rows`` are the rows of p and q along ``drafts``.
    """
    ratios = [ratio(rows.p[k][drafts[k]], rows.q[k][drafts[k]]) for k in range(i + 1)]
    before = min([1, *ratios[:-1]])
    return min(1, ratios[-1] / before) if before > 0 else 1


def _by_number(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return P(more than i drafts are accepted | at least i are) of a wrong rule that counts the passed tests.

    A test that passes after a failed one also counts. ``rows`` are the rows of p and q along ``drafts``.
    """
    passed: list[Any] = [1]
    for k, token in enumerate(drafts):
        one = ratio(rows.p[k][token], rows.q[k][token])
        passed = [fewer * one + same * (1 - one) for fewer, same in zip([0, *passed], [*passed, 0], strict=True)]
    reached = sum(passed[i:])
    return sum(passed[i + 1 :]) / reached if reached > 0 else 1


def _product_so_far(capped: bool, rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return the acceptance probability of draft ``i`` under a wrong rule with a running product.

    The probability is the product of p/q over all drafts up to ``i``, but at most 1. With ``capped``, each factor is at
    most 1. ``rows`` are the rows of p and q along ``drafts``.
    """
    pairs = [(rows.p[k][drafts[k]], rows.q[k][drafts[k]]) for k in range(i + 1)]
    if any(q <= 0 for _, q in pairs):
        return 1
    return min(1, math.prod(min(1, p / q) if capped else p / q for p, q in pairs))


def _by_one_product(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return P(more than i drafts are accepted | at least i are) of a rule with one uniform and a running product.

    The rule keeps drafts while the uniform is below the product of p/q over all drafts so far, which is not limited to
    1 after each draft. ``rows`` are the rows of p and q along ``drafts``.
    """
    product, least = 1, [1]
    for k in range(i + 1):
        p, q = rows.p[k][drafts[k]], rows.q[k][drafts[k]]
        product = product * p / q if q > 0 else product
        least.append(min(least[-1], product))
    return least[-1] / least[-2] if least[-2] > 0 else 1


def _up_to_the_last(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return P(more than i drafts are accepted | at least i are) of a wrong rule that uses the last failed test.

    The rule accepts all drafts before the last failed test, and all drafts if no test fails. ``rows`` are the rows of p
    and q along ``drafts``.
    """
    passes = [ratio(rows.p[k][token], rows.q[k][token]) for k, token in enumerate(drafts)]

    def at_least(number: int) -> Any:
        behind, all_before = math.prod(passes[number:]), math.prod(passes[:number])
        return 1 - behind * (1 - all_before)

    reached = at_least(i)
    return at_least(i + 1) / reached if reached > 0 else 1


def _all_as_none(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    """Return P(more than i drafts are accepted | at least i are) of a rule that accepts none if every test passes.

    If a test fails, it accepts the drafts before the first failed test, as it should. ``rows`` are the rows of p and q
    along ``drafts``.
    """
    passes = [ratio(rows.p[k][token], rows.q[k][token]) for k, token in enumerate(drafts)]
    everything = math.prod(passes)
    reached = math.prod(passes[:i]) - everything if i else 1
    return (math.prod(passes[: i + 1]) - everything) / reached if reached > 0 else 1


def _shifted_ratio(p_by: int, q_by: int) -> AcceptFormula:
    def accept(rows: ModelRows, drafts: Tokens, i: int) -> Any:
        p, q = rows.p[_inside(i + p_by, rows.p)], rows.q[_inside(i + q_by, rows.q)]
        return ratio(p[drafts[i]], q[drafts[i]])

    return accept


def _inside(index: int, rows: Sequence[Row]) -> int:
    return min(max(index, 0), len(rows) - 1)


ONE_NUMBER = "by one random number for all drafts"
ACCEPT_OF_ROW: Mapping[str, AcceptFormula] = {
    "with probability min(1, q/p)": lambda rows, drafts, i: ratio(rows.q[i][drafts[i]], rows.p[i][drafts[i]]),
    "always": lambda rows, drafts, i: 1,
    "never": lambda rows, drafts, i: 0,
    "with probability p": lambda rows, drafts, i: rows.p[i][drafts[i]],
    "with probability 1 - p/q": lambda rows, drafts, i: 1 - ratio(rows.p[i][drafts[i]], rows.q[i][drafts[i]]),
    "whenever p >= q, and never else": lambda rows, drafts, i: int(rows.p[i][drafts[i]] >= rows.q[i][drafts[i]]),
    "with probability 1 - max(q - p, 0)": lambda rows, drafts, i: (
        1 - max(rows.q[i][drafts[i]] - rows.p[i][drafts[i]], 0)
    ),
    "whenever p > 0": lambda rows, drafts, i: int(rows.p[i][drafts[i]] > 0),
    "only if the draft is the argmax of p": lambda rows, drafts, i: int(drafts[i] == _argmax(rows.p[i])),
    ONE_NUMBER: _one_coin,
    "with probability min(1, p/max(q)), by the largest entry of q": lambda rows, drafts, i: ratio(
        rows.p[i][drafts[i]], max(rows.q[i])
    ),
    "with probability p/(p + q)": lambda rows, drafts, i: (
        rows.p[i][drafts[i]] / total if (total := rows.p[i][drafts[i]] + rows.q[i][drafts[i]]) > 0 else 1
    ),
}
"""End of a message that begins "drafts are accepted" -> the formula, which uses only the rows at the draft."""
ACCEPT: Mapping[str, AcceptFormula] = {
    **ACCEPT_OF_ROW,
    "whenever p >= q, and else with probability p, without the division by q": lambda rows, drafts, i: (
        1 if rows.p[i][drafts[i]] >= rows.q[i][drafts[i]] else rows.p[i][drafts[i]]
    ),
    "by the row of p one position late": _shifted_ratio(1, 0),
    "by the row of p one position early": _shifted_ratio(-1, 0),
    "by the row of q one position late": _shifted_ratio(0, 1),
    "by the row of q one position early": _shifted_ratio(0, -1),
    "by rows of p and q one position early": _shifted_ratio(-1, -1),
    "by rows of p and q one position late": _shifted_ratio(1, 1),
    "by the first rows of p and q": lambda rows, drafts, i: ratio(rows.p[0][drafts[i]], rows.q[0][drafts[i]]),
    "by the first row of p": lambda rows, drafts, i: ratio(rows.p[0][drafts[i]], rows.q[i][drafts[i]]),
    "by the first row of q": lambda rows, drafts, i: ratio(rows.p[i][drafts[i]], rows.q[0][drafts[i]]),
    "by the row of q of the last draft": lambda rows, drafts, i: ratio(
        rows.p[i][drafts[i]], rows.q[len(drafts) - 1][drafts[i]]
    ),
    "by the number of tests that pass, also after the first rejection (no cumulative product)": _by_number,
    "while one uniform is below the running product of p/q, which is not limited to 1 at each draft": _by_one_product,
    "up to the last test that fails, not the first": _up_to_the_last,
    "with the product of p/q over all drafts so far (it does not start again at each draft)": partial(
        _product_so_far, False
    ),
    "with the product of min(1, p/q) over all drafts so far (it does not start again at each draft)": partial(
        _product_so_far, True
    ),
    "up to the first test that fails, and none of them if no test fails": _all_as_none,
}
"""Message ending -> formula for the acceptance, as in ``ACCEPT_OF_ROW``; some formulas also use rows at other
positions."""


def _shifted_excess(p_by: int, q_by: int) -> RowFormula:
    return lambda rows, drafts, i: excess(rows.p[_inside(i + p_by, rows.p)], rows.q[_inside(i + q_by, rows.q)])


def _short_of_one(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    """Return max(p - q, 0) at position ``i``, not normalised; the last token also gets the rest, 1 minus the sum.

    An inverse CDF that is clamped to the vocabulary draws from this row. ``rows`` are the rows of p and q along
    ``drafts``.
    """
    left = [max(a - b, 0 * a) for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    return [*left[:-1], left[-1] + 1 - sum(left)]


def _rest_on_last_excess(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    """Return max(p - q, 0) at position ``i``, not normalised; one token also gets the rest, 1 minus the sum.

    That token is the last one with p > q. ``rows`` are the rows of p and q along ``drafts``.
    """
    left = [max(a - b, 0 * a) for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    last = max((token for token, mass in enumerate(left) if mass > 0), default=len(left) - 1)
    return [mass + (1 - sum(left)) * (token == last) for token, mass in enumerate(left)]


def _softmax(row: Row) -> Row:
    return scaled([math.exp(float(mass)) for mass in row])


def _only(token: int, row: Row) -> Row:
    """Return the point mass on ``token``, as long as ``row``."""
    return [int(other == token) for other in range(len(row))]


def _without_draft(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    return scaled(without(rows.p[i], drafts[i]))


def _or_p(left: Row, p: Row) -> Row:
    return scaled(left) if sum(left) > 0 else p


def _where_more_or_all(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    """Return a wrong residual: p over the tokens with p > q, normalised; p itself if q is 0 at one of them.

    The rows are those of position ``i`` in ``rows``, the rows of p and q along ``drafts``. A program draws from this
    law if it computes the residual by logarithms: where q is 0 it gets NaN, and then samples from p.
    """
    p, q = rows.p[i], rows.q[i]
    if any(a > b == 0 for a, b in zip(p, q, strict=True)):
        return p
    return scaled([a if a > b else 0 * a for a, b in zip(p, q, strict=True)])


REPLACE_OF_ROW: Mapping[str, RowFormula] = {
    "p": lambda rows, drafts, i: rows.p[i],
    "q": lambda rows, drafts, i: rows.q[i],
    "norm(max(q - p, 0))": lambda rows, drafts, i: excess(rows.q[i], rows.p[i]),
    "norm(|p - q|)": lambda rows, drafts, i: scaled([abs(a - b) for a, b in zip(rows.p[i], rows.q[i], strict=True)]),
    "max(p - q, 0) without its division by the sum: what is missing to 1 goes to the last token": _short_of_one,
    "max(p - q, 0) without its division by the sum: what is missing to 1 goes to the last token that has mass": (
        _rest_on_last_excess
    ),
    "p where q is certain of the draft": lambda rows, drafts, i: (
        rows.p[i] if rows.q[i][drafts[i]] == 1 else excess(rows.p[i], rows.q[i])
    ),
    "max(p - q, 0) on the tokens with q > 0 alone": lambda rows, drafts, i: _or_p(
        [max(a - b, 0) if b > 0 else 0 * a for a, b in zip(rows.p[i], rows.q[i], strict=True)], rows.p[i]
    ),
    "p on the tokens with p > q (p itself, not p - q)": lambda rows, drafts, i: scaled(
        [a if a > b else 0 * a for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    ),
    "norm(max(p^2 - q^2, 0))": lambda rows, drafts, i: _or_p(
        [max(a * a - b * b, 0) for a, b in zip(rows.p[i], rows.q[i], strict=True)], rows.p[i]
    ),
    "norm(max(p/q - 1, 0))": lambda rows, drafts, i: scaled(
        [max(a / b - 1, 0) if b > 0 else a for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    ),
    "softmax(p - q)": lambda rows, drafts, i: scaled(
        [math.exp(float(a) - float(b)) for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    ),
    "softmax(norm(max(p - q, 0))), as if the probabilities were logits": lambda rows, drafts, i: _softmax(
        excess(rows.p[i], rows.q[i])
    ),
    "norm(p/q) on the tokens with p > q": lambda rows, drafts, i: scaled(
        [(a / b if b > 0 else a) if a > b else 0 * a for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    ),
    "the tokens with p > q, all alike": lambda rows, drafts, i: scaled(
        [int(a > b) for a, b in zip(rows.p[i], rows.q[i], strict=True)]
    ),
    "all tokens alike": lambda rows, drafts, i: scaled([1 for _ in rows.p[i]]),
    "p without the rejected token": _without_draft,
    "the argmax of p": lambda rows, drafts, i: _only(_argmax(rows.p[i]), rows.p[i]),
    "the argmax of max(p - q, 0)": lambda rows, drafts, i: _only(_argmax(excess(rows.p[i], rows.q[i])), rows.p[i]),
}
"""End of a message that begins "a rejected draft is replaced by a draw from" -> the formula, which uses only the rows
at the draft."""
REPLACE: Mapping[str, RowFormula] = {
    **REPLACE_OF_ROW,
    "p one position late": lambda rows, drafts, i: rows.p[_inside(i + 1, rows.p)],
    "p one position early": lambda rows, drafts, i: rows.p[_inside(i - 1, rows.p)],
    "the last row of p": lambda rows, drafts, i: rows.p[-1],
    "max(p - q, 0) with p one position late": _shifted_excess(1, 0),
    "max(p - q, 0) with p one position early": _shifted_excess(-1, 0),
    "max(p - q, 0) with q one position late": _shifted_excess(0, 1),
    "max(p - q, 0) with q one position early": _shifted_excess(0, -1),
    "max(p - q, 0) with p and q one position early": _shifted_excess(-1, -1),
    "max(p - q, 0) with p and q one position late": _shifted_excess(1, 1),
    "max(p - q, 0) of the first position": lambda rows, drafts, i: excess(rows.p[0], rows.q[0]),
    "max(p - q, 0) of the last position": lambda rows, drafts, i: excess(
        rows.p[len(drafts) - 1], rows.q[len(drafts) - 1]
    ),
    "max(p - q, 0) with the last row of p": lambda rows, drafts, i: excess(rows.p[-1], rows.q[i]),
    "max(p - q, 0) with the last row of q": lambda rows, drafts, i: excess(rows.p[i], rows.q[len(drafts) - 1]),
    "max(p - q, 0) with the first row of p": lambda rows, drafts, i: excess(rows.p[0], rows.q[i]),
    "max(p - q, 0) with the first row of q": lambda rows, drafts, i: excess(rows.p[i], rows.q[0]),
}
"""Message ending -> formula for the replacement, as in ``REPLACE_OF_ROW``; some formulas also use rows at other
positions."""
REPLACE_WITH_NAN: Mapping[str, RowFormula] = {
    "p on the tokens with p > q (p itself, not p - q), but all of p where q is 0 on one of them (0/0)": (
        _where_more_or_all
    ),
}
"""Further formulas, which equal one of the others if q has no zeros."""

BONUS: Mapping[str, RowFormula] = {
    "q": lambda rows, drafts, i: rows.q[i],
    "norm(max(p - q, 0))": lambda rows, drafts, i: excess(rows.p[i], rows.q[i]),
    "the row of p before the last draft": lambda rows, drafts, i: rows.p[i - 1],
    "the first row of p": lambda rows, drafts, i: rows.p[0],
    "the row of q before the last draft": lambda rows, drafts, i: rows.q[i - 1],
    "p after the last draft minus q before it": lambda rows, drafts, i: excess(rows.p[i], rows.q[i - 1]),
    "all tokens alike": lambda rows, drafts, i: scaled([1 for _ in rows.p[i]]),
    "softmax(p), as if the probabilities were logits": lambda rows, drafts, i: _softmax(rows.p[i]),
    "the argmax of p": lambda rows, drafts, i: _only(_argmax(rows.p[i]), rows.p[i]),
    "the last draft again": lambda rows, drafts, i: _only(drafts[-1], rows.p[i]) if drafts else rows.p[i],
}
"""End of a message that begins "the bonus token is drawn from" -> the formula."""
POINTS = frozenset({"the argmax of p", "the argmax of max(p - q, 0)", "the last draft again"})
"""Names of formulas that give one token."""


def other_in_one_token(seen: Sequence[Any], p: Sequence[Any], near: float) -> int | None:
    """Return the token whose quotient seen/p differs from the common quotient of all others; None if there is none.

    Such a token suggests that a penalty is wrong for it. ``seen`` is the observed law of a token, and ``p`` the
    expected one. Both must be positive at the same tokens, and at three tokens at least. Quotients are equal if they
    differ by less than ``near``, and by less than this share of them.
    """
    if len(seen) != len(p) or any((a > 0) != (b > 0) for a, b in zip(seen, p, strict=True)):
        return None
    shares = {token: float(a) / float(b) for token, (a, b) in enumerate(zip(seen, p, strict=True)) if b > 0}
    if len(shares) < 3:
        return None
    for token in (min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)):
        others = [share for other, share in shares.items() if other != token]
        if max(others) - min(others) < near * min(1.0, *others) and near < abs(shares[token] - others[0]):
            return token
    return None
