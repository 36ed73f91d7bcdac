"""The edge-cloud guide: what replaces a rejected draft, and what of q it takes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from reference import Task, one_hot, overlap, total_variation
from reference.algorithms import edge_cloud_scalar_q, edge_cloud_two_phase
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import (
    bias,
    ratio,
    rational_pairs,
    rule_law,
)
from test_support.laws.rational import P, Q, distance, pmf

F = Fraction


def scalar_residual(p, q, token):
    """Return the guide's residual, normalised: p less q(y) at the rejected token y, not clamped."""
    rest = p - one_hot(token, p) * q[token]
    return rest / rest.sum()


def clamped(p, q, token):
    """Return norm((p - 1[y] q(y))+)."""
    rest = np.maximum(p - one_hot(token, p) * q[token], 0 * p)
    return rest / rest.sum()


@erratum(
    "EC",
    "3.1 and 12, the correction",
    stated="Strictly unbiased: after rejecting y draw from r(v) proportional to p(v) - 1[v = y] q(y).",
    verdict=Verdict.FALSE,
    correct="If y is rejected, q(y) > p(y), so r is negative at y. For p = {p}, q = {q}, y = 0 it is {raw}. If r is "
    "clamped at 0, the law is {law}, at distance {bias}. The rule is exact only for V = 2 ({two} of {pairs} random "
    "pairs; for V = 3 {three} of {pairs}). The residual norm((p - q)+) needs the whole row of q.",
)
def test_the_scalar_residual_is_not_a_distribution():
    raw = scalar_residual(P, Q, 0)
    law = rule_law(ratio(P, Q), lambda token: clamped(P, Q, token))
    assert min(raw) < 0 < bias(law)
    pairs = 60
    two, three = (
        sum(
            bias(rule_law(ratio(p, q), lambda token, p=p, q=q: clamped(p, q, token), p, q), p) == 0
            for p, q in rational_pairs(size, pairs)
        )
        for size in (2, 3)
    )
    assert two == pairs > three
    task = Task(*table_pair("generic", 3, 1), horizon=2)
    assert decoder_law(edge_cloud_scalar_q.build(task, gamma=1), (0,)).probabilities != target_law(task, (0,))
    return {"p": P, "q": Q, "raw": raw, "law": law, "bias": bias(law), "two": two, "three": three, "pairs": pairs}


def best_scalar_acceptance(p, q, steps):
    """Return the largest acceptance at q of a rule K(v | y, q(y)) that is lossless for every q with entries k/steps.

    A linear programme: K is a law for each (y, q(y)), and sum_y q(y) K(v | y, q(y)) = p(v) for every such q.
    """
    size = len(p)
    cells = [(y, k) for y in range(size) for k in range(1, steps + 1)]
    place = {cell: size * i for i, cell in enumerate(cells)}
    equal, values = [], []
    for cell in cells:
        row = np.zeros(size * len(cells))
        row[place[cell] : place[cell] + size] = 1
        equal.append(row)
        values.append(1)
    for counts in _compositions(steps, size):
        for v in range(size):
            row = np.zeros(size * len(cells))
            for y, k in enumerate(counts):
                if k:
                    row[place[y, k] + v] = k / steps
            equal.append(row)
            values.append(float(p[v]))
    gain = np.zeros(size * len(cells))
    for y, mass in enumerate(q):
        if mass:
            gain[place[y, int(mass * steps)] + y] -= float(mass)
    return -linprog(gain, A_eq=np.array(equal), b_eq=values, bounds=(0, 1)).fun


def _compositions(total, parts):
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


@erratum(
    "EC",
    "3.1, 5.1 and 13",
    stated="The edge need only send q(y_i), a number per drafted token, for exact verification.",
    verdict=Verdict.FALSE,
    correct="Take the best rule that knows only p, y and q(y), and that is exact for every q (computed for V = 3, in "
    "steps of 1/10). For p = {p}, q = {q} it accepts {scalar:.4f}. This is no more than a comparison of the draft "
    "with a draw from p ({match}); with the whole row of q, {alpha} is possible. For V = 2 it reaches the optimum "
    "({two:.4f}). It is enough to send the row of q of the first rejection when it is requested; this is exact "
    "({fetched}). A row of 32000 probabilities of 2 bytes has {row} kB, a float {scalar_bytes} bytes.",
)
def test_a_scalar_of_q_is_not_enough():
    scalar = best_scalar_acceptance(P, Q, 10)
    match = sum(P * Q)
    assert abs(scalar - float(match)) < 1e-7 < float(overlap(P, Q)) - scalar
    p, q = pmf(".2", ".8"), pmf(".6", ".4")
    two = best_scalar_acceptance(p, q, 10)
    assert abs(two - float(overlap(p, q))) < 1e-7
    task = Task(*table_pair("generic", 3, 1), horizon=2)
    law = decoder_law(edge_cloud_two_phase.build(task, gamma=1), (0,)).probabilities
    fetched = distance(law, target_law(task, (0,)))
    assert fetched == 0
    row, one = np.zeros(32_000, dtype=np.float16).nbytes, np.float32(0).nbytes
    return {
        "scalar": scalar,
        "p": P,
        "q": Q,
        "match": match,
        "alpha": overlap(P, Q),
        "two": two,
        "fetched": fetched,
        "row": row // 1000,
        "scalar_bytes": one,
    }


@erratum(
    "EC",
    "3.1 and 3.2, the shortcut",
    stated="The engineering shortcut is not quite strictly unbiased, but usually hardly changes the quality.",
    verdict=Verdict.CONDITION,
    correct="The bias depends on p and q; quality is not judged here. The law of the shortcut is min(p, q) + TV(p, "
    "q) p. For p = {p}, q = {q} it is {law}, at distance {bias} (the sum of (TV p - (p - q)+)+). Of {pairs} random "
    "pairs the shortcut is exact for {exact}: those in which q is proportional to p where p > 0.",
)
def test_the_shortcut_has_a_bias():
    law = rule_law(ratio(P, Q), lambda _: P)
    tv = total_variation(P, Q)
    assert law == (np.minimum(P, Q) + tv * P).tolist()
    excess = tv * P - np.maximum(P - Q, 0 * P)
    assert bias(law) == sum(max(value, 0) for value in excess) > 0
    pairs = rational_pairs(3, 100)
    exact = [(p, q) for p, q in pairs if bias(rule_law(ratio(p, q), lambda _, p=p: p, p, q), p) == 0]
    proportional = [(p, q) for p, q in pairs if len({b / a for a, b in zip(p, q, strict=True) if a > 0}) == 1]
    assert [p.tolist() for p, _ in exact] == [p.tolist() for p, _ in proportional]
    assert len(exact) < len(pairs)
    return {"p": P, "q": Q, "law": law, "bias": bias(law), "pairs": len(pairs), "exact": len(exact)}
