"""Statements about every possible verification rule: the rule is unknown, and the conditions on it are linear.

The effect of a rule on one drafted token is a matrix of probabilities, ``k[d][v]`` for d drafted and v emitted.
Losslessness, acceptance and total variation are linear in the matrix. Linear arithmetic therefore bounds the best rule,
for all p and q. ``vocabulary`` is the number of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from specverify.proof.result import Proof, ProofStatus
from specverify.proof.solver import z3
from specverify.proof.symbolic_tables import Model

GRID = 4
"""A rule that reads only q(d) is tried on pmfs whose entries are multiples of 1 / GRID."""


class Sought(NamedTuple):
    """A search for a counterexample, as linear conditions.

    ``conditions`` are those on the unknowns, and ``q`` is the pmf of the draft if it is fixed (else empty).
    """

    conditions: list[Any]
    q: tuple[Fraction, ...] = ()


def _pmf(name: str, vocabulary: int) -> tuple[list[Any], list[Any]]:
    entries = [z3.Real(f"{name}{token}") for token in range(vocabulary)]
    return entries, [z3.Sum(entries) == 1, *(entry >= 0 for entry in entries)]


def _rule(q: list[Any]) -> tuple[list[list[Any]], list[Any]]:
    """Return an unknown rule as a matrix ``k`` of unknowns, and the list of conditions on it.

    ``k[d][v]`` is the probability that token d is drafted and token v emitted. The conditions are that no entry is
    negative and that row d sums to ``q[d]``, the probability that d is drafted.
    """
    tokens = range(len(q))
    masses = [[z3.Real(f"k{drafted}_{emitted}") for emitted in tokens] for drafted in tokens]
    return masses, [z3.Sum(row) == mass for row, mass in zip(masses, q, strict=True)] + [
        mass >= 0 for row in masses for mass in row
    ]


def _kept(p: list[Any], q: list[Any]) -> Any:
    return z3.Sum([z3.If(mass < other, mass, other) for mass, other in zip(p, q, strict=True)])


def optimal(vocabulary: int) -> Iterator[Sought]:
    """Yield one search: for a lossless rule that emits its draft with a higher probability than ``sum min(p, q)``.

    If its conditions have no solution, ``sum min(p, q)`` is proved to be the largest probability.
    """
    (p, of_p), (q, of_q) = _pmf("p", vocabulary), _pmf("q", vocabulary)
    masses, of_rule = _rule(q)
    lossless = [z3.Sum([row[token] for row in masses]) == p[token] for token in range(vocabulary)]
    same = z3.Sum([masses[token][token] for token in range(vocabulary)])
    yield Sought([*of_p, *of_q, *of_rule, *lossless, same > _kept(p, q)])


def price(vocabulary: int) -> Iterator[Sought]:
    """Yield one search: for a rule whose total variation from p is below P(output = d) - ``sum min(p, q)``.

    P(output = d) is the probability that the rule emits its draft. If the conditions have no solution, the total
    variation is proved to be at least this difference.
    """
    (p, of_p), (q, of_q) = _pmf("p", vocabulary), _pmf("q", vocabulary)
    masses, of_rule = _rule(q)
    out = [z3.Sum([row[token] for row in masses]) for token in range(vocabulary)]
    excess = [z3.If(mass > other, mass - other, z3.RealVal(0)) for mass, other in zip(out, p, strict=True)]
    same = z3.Sum([masses[token][token] for token in range(vocabulary)])
    yield Sought([*of_p, *of_q, *of_rule, z3.Sum(excess) < same - _kept(p, q)])


def scalar(vocabulary: int) -> Iterator[Sought]:
    """Yield one search for each q on a grid: for a rule that emits its draft more often than "sample and match" at q.

    "Sample and match" draws a token from p and accepts the draft if the two are equal. The searched rule reads only p,
    the draft d and q(d): for one unknown p, it is a table of probabilities ``K(v | d, q(d))`` of the emitted token v.
    It must be lossless for every q on the grid. If no search has a solution, no such rule is better than sample and
    match there.
    """
    p, of_p = _pmf("p", vocabulary)
    tokens, levels = range(vocabulary), range(GRID + 1)
    table = {
        key: z3.Real("K{}_{}_{}".format(*key)) for key in product(tokens, levels, tokens)
    }  # drafted, its probability in units of 1/GRID, emitted
    rule = [value >= 0 for value in table.values()]
    rule += [z3.Sum([table[d, s, v] for v in tokens]) == 1 for d in tokens for s in levels]
    grid = [q for q in product(levels, repeat=vocabulary) if sum(q) == GRID]
    for q in grid:
        rule += [z3.Sum([_share(q[d]) * table[d, q[d], v] for d in tokens if q[d]]) == p[v] for v in tokens]
    for q in grid:
        kept = z3.Sum([_share(q[d]) * table[d, q[d], d] for d in tokens if q[d]])
        least = z3.Sum([_share(q[d]) * p[d] for d in tokens])
        yield Sought([*of_p, *rule, kept > least], tuple(Fraction(level, GRID) for level in q))


def _share(level: int) -> Any:
    return z3.Q(level, GRID)


LINEAR: dict[str, tuple[Callable[[int], Iterator[Sought]], str]] = {
    "optimal": (
        optimal,
        """for all p and q over {vocabulary} tokens, no rule that is lossless emits its draft d ~ q more often than
        sum min(p, q)""",
    ),
    "price": (
        price,
        """for all p and q over {vocabulary} tokens and every rule, lossless or not, the law of the token emitted is at
        least P(out = d) - sum min(p, q) away from p in total variation""",
    ),
    "scalar-q": (
        scalar,
        """for all p over {vocabulary} tokens, no rule that sees p, d and q(d) alone and is lossless for all q emits its
        draft more often than sample and match does, sum p q, at any q with entries in quarters""",
    ),
}
"""Name for ``--what`` -> a statement about every verification rule, decided by linear programming."""


def prove_linear(what: str, vocabulary: int, seconds: float) -> Proof:
    """Prove the statement ``what`` about every rule, or search for a rule that violates it; return the result.

    ``what`` is a key of ``LINEAR``, and ``seconds`` the time limit. The ``figures`` of a refutation contain the rule
    that was found.
    """
    started = time.perf_counter()
    questions, says = LINEAR[what]
    said = " ".join(says.format(vocabulary=vocabulary).split())
    status, sentence, queries = ProofStatus.PROVED, said, 0
    model, rule = None, {}
    for question in questions(vocabulary):
        left = seconds - (time.perf_counter() - started)
        solver = z3.SolverFor("QF_LRA")
        solver.set("timeout", max(1, int(1000 * left)))
        solver.add(question.conditions)
        answer = solver.check() if left > 0 else z3.unknown
        queries += 1
        if answer == z3.unsat:
            continue
        status, sentence = ProofStatus.UNKNOWN, f"open: {said}; the time limit has passed after {queries} questions"
        if answer == z3.sat:
            point = _point(solver.model())
            p, q = (
                tuple(point[f"{name}{t}"] for t in range(vocabulary)) if f"{name}0" in point else () for name in "pq"
            )
            model = Model(vocabulary, {(0,): p}, {(0,): q or question.q}, {})
            rule = {name: str(value) for name, value in sorted(point.items()) if name[0] in "kK"}
            status, sentence = ProofStatus.REFUTED, f"it is false that {said}"
        break
    return Proof(
        "every rule", what, vocabulary, 1, status, sentence, queries, time.perf_counter() - started, model, rule
    )


def _point(model: Any) -> dict[str, Fraction]:
    return {
        item.name(): Fraction(model[item].numerator_as_long(), model[item].denominator_as_long())
        for item in model.decls()
    }
