"""The coupling of two argmins of one exponential race: the law of (y, d) if both models read the same noise.

Daliri, Musco, Suresh 2408.07978 (Gumbel sampling; ``-log E`` is Gumbel if E is exponential). With E_v ~ Exp(1) iid, y =
argmin E_v/p_v has law p and d = argmin E_v/q_v has law q. Let r_v = p_v/q_v. For i != j, integrating over the winning
times t and r t gives

    P(y = i, d = j) = p_i q_j  integral over r in [r_j, r_i] of dr / (A(r) + B(r) r)^2
    A(r) = sum of p_v over r < r_v,   B(r) = sum of q_v over r_v <= r

A and B are constant between neighbouring ratios r1 < r2, where the integral is (r2 - r1) / ((A + B r1)(A + B r2)). So
the law is rational. P(y = d = i) = 1 / sum_v max(p_v/p_i, q_v/q_i). The probability of agreement lies between (1 -
TV)/(1 + TV) and 1 - TV.
"""

from __future__ import annotations

from typing import Any

from ..coupling import overlap
from ..pmf import as_pmf
from ..types import Pmf


def agreement_probability(p: Pmf, q: Pmf) -> Any:
    """Return the probability that the target's token y (law p) and the draft d (law q) are equal: the acceptance."""
    pairs = _pairs(p, q)
    return sum((_both(i, pairs) for i in range(len(pairs))), start=overlap(p, q) * 0)


def draft_given_target(p: Pmf, q: Pmf, token: int) -> Pmf:
    """Return the law of the draft d, ``[V]``, given that the target's token y is ``token``.

    Its mean over y ~ p is q.
    """
    pairs = _pairs(p, q)
    p_y, q_y = pairs[token]
    until = dict(_up_to(pairs))
    whole = until[p_y / q_y] if q_y > 0 else until[None]
    row = []
    for j, (p_j, q_j) in enumerate(pairs):
        if j == token:
            row.append(_both(j, pairs))
        elif q_j > 0 and (q_y == 0 or p_j / q_j < p_y / q_y):
            row.append(p_y * q_j * (whole - until[p_j / q_j]))
        else:
            row.append(p_y * 0)
    total = sum(row)
    return as_pmf([mass / total for mass in row])


def _up_to(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return pairs (r, integral of dr / (A + B r)^2 from the smallest ratio to r), one for each ratio r.

    ``pairs`` has (p_v, q_v) for each token v; a ratio is p_v/q_v, and None stands for infinity. A and B are the
    functions of r in the module's docstring.
    """
    ratios = sorted({p / q for p, q in pairs if q > 0})
    zero = pairs[0][0] * 0
    result, total = [(ratios[0], zero)], zero
    for low, high in zip(ratios, [*ratios[1:], None], strict=True):
        a = sum((p for p, q in pairs if q == 0 or p / q > low), start=zero)
        b = sum((q for p, q in pairs if q > 0 and p / q <= low), start=zero)
        below = a + b * low
        if high is not None:
            total = total + (high - low) / (below * (a + b * high))
        elif below > 0:
            total = total + 1 / (b * below)
        result.append((high, total))
    return result


def _both(i: int, pairs: list[tuple[Any, Any]]) -> Any:
    p_i, q_i = pairs[i]
    if not (p_i > 0 and q_i > 0):
        return p_i * 0
    return 1 / sum(max(p / p_i, q / q_i) for p, q in pairs)


def _pairs(p: Pmf, q: Pmf) -> list[tuple[Any, Any]]:
    overlap(p, q)  # refuses two vocabularies
    return list(zip(p.tolist(), q.tolist(), strict=True))
