"""The coupling of one race with several: list-level Gumbel sampling (Rowan et al. 2506.05632, Section 3).

K drafts share noise with the target: list k has its own E_kv ~ Exp(1), draft k is ``argmin E_kv/q_v`` and the target's
token is ``argmin over v of (min over k of E_kv)/p_v``. The target's token has the law p, since the minimum of K
exponentials is exponential, and it depends on the noise alone: the text is the same for all drafters.

The joint law is rational. Suppose that token y in list k wins the target's race, at the time T ~ Exp(K). Then every
other E_jv, in all lists, exceeds p_v T, and the excess is again exponential. So draft j is the winner of a race in
which v starts at the time (p_v/q_v) T and has the rate q_v; in list k itself, y arrives at exactly (p_y/q_y) T. Given
T, the law of a draft is a sum of exponentials in T. The drafts are independent given T, so their joint law is a product
of such sums, which is integrated term by term.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..remembered import by_values
from ..types import Pmf

Sum = dict[Any, Any]
"""Rate -> factor, for the function ``T -> sum of factor * exp(-rate * T)``."""


@by_values
def list_given_target(p: Pmf, q: Pmf, count: int, token: int) -> Any:
    """Return the joint law of the drafts of ``count`` lists, given that the target's token is ``token``.

    The result is an array with one axis of vocabulary size for each list.
    """
    pairs = list(zip(p.tolist(), q.tolist(), strict=True))
    (own_rates, own), (rates, other) = (_table(_race(pairs, arrived), p) for arrived in (token, None))
    total = own_rates
    for _ in range(count - 1):
        total = np.add.outer(total, rates)
    law = count / (count + total)
    for wins in (own, *[other] * (count - 1)):
        law = np.tensordot(law, wins, axes=(0, 1))  # the first axis goes, that of the list comes last
    return sum(np.moveaxis(law, 0, winner) for winner in range(count)) / count


def _table(wins: list[Sum], like: Pmf) -> tuple[Any, Any]:
    """Return ``wins`` as two arrays: the rates that occur in its sums, and the factors of each sum, ``[sums, rates]``.

    A sum of exponentials in T is a map rate -> factor; a missing rate has the factor 0. The number type is that of
    ``like``.
    """
    rates = sorted({rate for terms in wins for rate in terms})
    zero = like[0] * 0
    rows = [[terms.get(rate, zero) for rate in rates] for terms in wins]
    return np.array(rates, dtype=like.dtype), np.array(rows, dtype=like.dtype).reshape(len(wins), len(rates))


def _race(pairs: list[tuple[Any, Any]], arrived: int | None) -> list[Sum]:
    """Return, for every token, the probability that it is the draft of a list, given T, the time of the target's token.

    It is a sum of exponentials in T, as a map rate -> factor. ``pairs`` has (p_v, q_v) for each token v. ``arrived`` is
    the target's token if it won in this list, where it arrives at exactly (p_v/q_v) T; None in other lists.
    """
    starts = sorted({p / q for p, q in pairs if q > 0})
    finish = pairs[arrived][0] / pairs[arrived][1] if arrived is not None and pairs[arrived][1] > 0 else None
    wins: list[Sum] = [{} for _ in pairs]
    for low, high in zip(starts, [*starts[1:], None], strict=True):
        if finish is not None and low >= finish:
            break
        running = [v for v, (p, q) in enumerate(pairs) if q > 0 and p / q <= low and v != arrived]
        rate, late = sum(pairs[v][1] for v in running), sum(pairs[v][0] for v in running)
        for v in running:
            _add(wins[v], rate * low - late, pairs[v][1] / rate)
            if high is not None:
                _add(wins[v], rate * high - late, -pairs[v][1] / rate)
    if arrived is not None and finish is not None:
        before = [v for v, (p, q) in enumerate(pairs) if q > 0 and p / q < finish and v != arrived]
        zero = finish * 0
        _add(wins[arrived], sum((pairs[v][1] * finish - pairs[v][0] for v in before), start=zero), zero + 1)
    return wins


def _add(terms: Sum, rate: Any, factor: Any) -> None:
    terms[rate] = terms.get(rate, 0) + factor
