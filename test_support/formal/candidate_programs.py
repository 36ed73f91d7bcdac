"""The programs of ``Orders.v``, ``Plans.v``, ``Hub.v`` and ``Deferred.v`` in Python.

The staged round of ``Lengths.v`` is here too.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from test_support.formal.theory_programs import (
    Chain,
    Dist,
    Pmf,
    Result,
    Round,
    Select,
    Text,
    bind,
    decode,
    draw,
    excess,
    flip,
    judge,
    propose,
    ret,
    speculative_rule,
    try_in_turn,
)

Rows = Callable[[Text], Pmf]
Candidates = list[tuple[int, Pmf]]


def draw_all(pmfs: list[Pmf]) -> Dist:
    """Draw one token from each pmf, as in ``Probability.v``."""
    if not pmfs:
        return ret(())
    return bind(draw(pmfs[0]), lambda x: bind(draw_all(pmfs[1:]), lambda later: ret((x, *later))))


# Orders.v


def even_order(left: tuple[int, ...]) -> Dist:
    if not left:
        return ret(())
    return bind(
        [(Fraction(1, len(left)), i) for i in left],
        lambda i: bind(even_order(tuple(j for j in left if j != i)), lambda order: ret((i, *order))),
    )


def try_in_drawn_order(r: Pmf, candidates: Candidates) -> Dist:
    return bind(even_order(tuple(range(len(candidates)))), lambda o: try_in_turn(r, [candidates[i] for i in o]))


# Plans.v


def plan_select(share: Callable[[Pmf, Candidates], Pmf], owed: Callable[[Pmf, Candidates], Pmf]) -> Select:
    def select(r: Pmf, candidates: Candidates) -> Dist:
        shares = share(r, candidates)
        choices = [(mass, v) for v, mass in enumerate(shares)] + [(1 - sum(shares), None)]
        return bind(
            [(mass, v) for mass, v in choices if mass != 0],
            lambda v: bind(draw(owed(r, candidates)), lambda x: ret((x, False))) if v is None else ret((v, True)),
        )

    return select


def two_step_select(choice: Callable[[Pmf, Candidates], Pmf], chosen: Callable[[Pmf, Candidates], Pmf]) -> Select:
    return lambda r, candidates: bind(
        draw(choice(r, candidates)),
        lambda x: bind(
            speculative_rule(r, chosen(r, candidates), x), lambda o: ret((x if o is None else o, o is None))
        ),
    )


# Hub.v


def off(a: int, u: Pmf) -> Pmf:
    return tuple(Fraction(0) if x == a else mass for x, mass in enumerate(u))


def hub_sibling(q: Rows, top: Callable[[Pmf], int]) -> Callable[[Any, Text, Text], Pmf | None]:
    def sibling(plan: Any, c: Text, earlier: Text) -> Pmf | None:
        u = q(c)
        a = top(u)
        rest = off(a, u)
        if not earlier:
            return u
        if len(earlier) > 1:
            return None
        if earlier[0] != a:
            return tuple(Fraction(x == a) for x in range(len(u)))
        return tuple(mass / sum(rest) for mass in rest) if sum(rest) > 0 else None

    return sibling


def over_proposed(mass: Fraction, proposed: Fraction) -> Fraction:
    return Fraction(0) if not proposed > 0 else mass / proposed if mass < proposed else Fraction(1)


def accept_else(a: Fraction, x: int, otherwise: Dist) -> Dist:
    return bind(flip(a), lambda accepted: ret((x, True)) if accepted else otherwise)


def through_the_hub(top: Callable[[Pmf], int]) -> Select:
    def select(r: Pmf, candidates: Candidates) -> Dist:
        (x, u), later = candidates[0], candidates[1:]
        a = top(u)
        rest = sum(off(a, u))
        first_pairs, others = off(a, u), off(a, r)
        second_pairs = tuple(u[a] * (mass / rest) for mass in off(a, u)) if rest > 0 else off(a, u)
        others_left, first_left = excess(others, first_pairs), sum(excess(first_pairs, others))
        second_left = sum(excess(second_pairs, others_left)) if rest > 0 else u[a]
        hub_left = max(r[a] - second_left, Fraction(0))
        owed = tuple(
            max(hub_left - first_left, Fraction(0)) if v == a else mass
            for v, mass in enumerate(excess(others_left, second_pairs))
        )
        law = tuple(mass / sum(owed) for mass in owed) if sum(owed) > 0 else r
        residual = bind(draw(law), lambda y: ret((y, False)))
        third = accept_else(over_proposed(r[a], second_left), a, residual)
        fourth = accept_else(over_proposed(hub_left, first_left), a, residual)
        if x != a:
            return accept_else(over_proposed(others[x], first_pairs[x]), x, fourth)
        if not later:
            return third
        y = later[0][0]
        return accept_else(over_proposed(others_left[y], second_pairs[y]), y, third)

    return select


# Deferred.v


def certain(x: int, size: int) -> Pmf:
    return tuple(Fraction(y == x) for y in range(size))


def jacobi_rule(p: Rows, held: tuple[Text, ...], c: Text, ks: Text, d: int) -> Dist:
    row = p(c + ks)
    return speculative_rule(row, p(held[len(ks)]) if len(ks) < len(held) else certain(d, len(row)), d)


def swept_texts(c: Text, ds: Text, result: Result) -> list[Text]:
    return [c + ds[:i] for i in range(result[2] + 1, len(ds))]


def sweep(p: Rows, texts: list[Text]) -> Dist:
    return bind(draw_all([p(text) for text in texts]), lambda tokens: ret(tuple(zip(tokens, texts, strict=True))))


def jacobi_round(p: Rows, even: Pmf, window: int) -> Round:
    def round_(s: tuple[tuple[int, Text], ...], n: int, c: Text) -> Dist:
        m = min(window, n - 1)
        texts = tuple(text for _, text in s)
        rule = Chain(None, None, None, lambda _, c, ks, d: jacobi_rule(p, texts, c, ks, d), lambda t: draw(p(t)))

        def go_on(fresh: Text) -> Dist:
            ds = (*(token for token, _ in s[:m]), *fresh)
            return bind(
                judge(rule, None, c, (), ds),
                lambda result: bind(sweep(p, swept_texts(c, ds, result)), lambda after: ret((after, result))),
            )

        return bind(draw_all([even] * max(m - len(s), 0)), go_on)

    return round_


# Lengths.v


def staged_round(chain: Chain, inner: Round, slack: int, first: int, second: Chain) -> Round:
    """Return a round judged by ``chain``, with drafts from two sources.

    Its first ``first`` drafts are decoded by the round ``inner``, the others are proposed by the chain ``second``.
    """

    def round_(s: Any, n: int, c: Text) -> Dist:
        m = min(chain.plan(s, c), n - 1)
        drafted = decode((), inner, slack, min(first, m), None, c)
        texts = [(weight, tuple(token for block, _ in rounds for token in block)) for weight, rounds in drafted]
        return bind(
            texts,
            lambda ds1: bind(
                propose(second, m - len(ds1), s, c, ds1),
                lambda ds2: bind(judge(chain, s, c, (), ds1 + ds2), lambda result: ret((s, result))),
            ),
        )

    return round_
