"""The programs of ``Engines.v``, ``OldResponse.v``, ``Requests.v`` and ``Keys.v``, line by line in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from test_support.formal.released_programs import first_miss
from test_support.formal.theory_programs import (
    Chain,
    Dist,
    Pmf,
    Result,
    Round,
    Text,
    accept_probability,
    bind,
    draw,
    excess_law,
    flip,
    judge,
    propose,
    ret,
    speculative_rule,
    weighted,
)

Rows = Callable[[Text], Pmf]
Excused = Callable[[Text, Text, tuple[bool, ...], int], bool]


# Engines.v


def toss_all(a: Callable[[Text, int], Fraction], ks: Text, ds: Text) -> Dist:
    if not ds:
        return ret(())
    return bind(
        flip(a(ks, ds[0])),
        lambda up: bind(toss_all(a, (*ks, ds[0]), ds[1:]), lambda later: ret((up, *later))),
    )


def deferring_judge(p: Rows, q: Rows, excused: Excused, c: Text, ds: Text) -> Dist:
    def accepts(ks: Text, d: int) -> Fraction:
        return accept_probability(p(c + ks), q(c + ks), d)

    def token_behind(i: int) -> Pmf:
        ks = ds[:i]
        return excess_law(p(c + ks), q(c + ks)) if i < len(ds) else p(c + ks)

    def go_on(up: tuple[bool, ...]) -> Dist:
        i = first_miss(lambda coins, place: excused(c, ds, coins, place), up)
        return bind(draw(token_behind(i)), lambda x: ret((ds[:i], x, i)))

    return bind(toss_all(accepts, (), ds), go_on)


def relaxed_step(
    models: tuple[Callable[[Text], int], Callable[[Text], int]], near: Callable[[Text, Text, int], bool], gamma: int
) -> Callable[[Any, int, Text], tuple[Any, Result]]:
    small, large = models

    def argmaxes(g: int, c: Text, ds: Text) -> Text:
        return argmaxes(g - 1, c, (*ds, small(c + ds))) if g else ds

    def near_drafts(c: Text, ks: Text, ds: Text) -> int:
        return near_drafts(c, (*ks, ds[0]), ds[1:]) if ds and near(c, ks, ds[0]) else len(ks)

    def step(s: Any, n: int, c: Text) -> tuple[Any, Result]:
        ds = argmaxes(min(gamma, n - 1), c, ())
        i = near_drafts(c, (), ds)
        return s, (ds[:i], large(c + ds[:i]), i)

    return step


# OldResponse.v


def judge_response(a: Callable[[Text, int], Fraction], p: Rows, c: Text, ks: Text, ds: Text) -> Dist:
    if not ds:
        return ret((ks, len(ks)))
    return bind(
        flip(a(c + ks, ds[0])),
        lambda kept: (
            judge_response(a, p, c, (*ks, ds[0]), ds[1:])
            if kept
            else bind(draw(p(c + ks)), lambda x: ret(((*ks, x), len(ks))))
        ),
    )


def response_round(eos: Text, p: Rows, q: Rows, lenience: Fraction) -> Round:
    drafter = Chain(None, lambda s, c, ds: not ds or ds[-1] not in eos, lambda s, c, ds: q(c + ds), None, None)

    def reuse(c: Text, d: int) -> Fraction:
        return accept_probability(weighted(lenience, p(c)), q(c), d)

    def round_(used: bool, n: int, c: Text) -> Dist:
        def after(block: tuple[Text, int]) -> Dist:
            tokens, kept = block
            return ret((True, (tokens[:-1], tokens[-1], kept))) if tokens else decode_on()

        def decode_on() -> Dist:
            return bind(draw(p(c)), lambda x: ret((True, ((), x, 0))))

        if used:
            return decode_on()
        drafted = propose(drafter, n, None, c, ())
        return bind(drafted, lambda ds: bind(judge_response(reuse, p, c, (), ds), after))

    return round_


# Requests.v


def scheduled_round(chain: Chain, others: Callable[[Any], Dist], room: Callable[[Text, Text, Any], int]) -> Round:
    return lambda s, n, c: bind(
        propose(chain, min(chain.plan(s, c), n - 1), s, c, ()),
        lambda ds: bind(
            others(s),
            lambda o: bind(judge(chain, s, c, (), ds[: room(c, ds, o)]), lambda result: ret((s, result))),
        ),
    )


def cut_to(m: int, result: Result) -> Result:
    kept, _, a = result
    return (kept[: m - 1], kept[m - 1], min(a, m)) if m <= len(kept) else result


def cut_round(others: Callable[[Any], Dist], length: Callable[[Any], int], round_: Round) -> Round:
    return lambda s, n, c: bind(
        round_(s, n, c),
        lambda after: bind(others(s), lambda o: ret((after[0], cut_to(length(o), after[1])))),
    )


# Keys.v

Reweighting = Callable[[int, Pmf], Pmf]
KeyedRule = Callable[[Text, int, int], Dist]


def drawn_by_key(law_of_key: Pmf, reweighted: Reweighting, r: Pmf) -> Dist:
    return bind(draw(law_of_key), lambda k: draw(reweighted(k, r)))


def keyed_round(law_of_key: Pmf, reweighted: Reweighting, gamma: int, p: Rows, q: Rows, rule: KeyedRule) -> Round:
    def propose_by_keys(g: int, c: Text) -> Dist:
        if g == 0:
            return ret(())
        return bind(
            draw(law_of_key),
            lambda k: bind(
                draw(reweighted(k, q(c))),
                lambda d: bind(propose_by_keys(g - 1, (*c, d)), lambda later: ret(((k, d), *later))),
            ),
        )

    def judge_by_keys(c: Text, ks: Text, ds: Sequence[tuple[int, int]]) -> Dist:
        if not ds:
            return bind(drawn_by_key(law_of_key, reweighted, p(c + ks)), lambda x: ret((ks, x, len(ks))))
        k, d = ds[0]
        return bind(
            rule(c + ks, k, d),
            lambda o: judge_by_keys(c, (*ks, d), ds[1:]) if o is None else ret((ks, o, len(ks))),
        )

    return lambda s, n, c: bind(
        propose_by_keys(min(gamma, n - 1), c),
        lambda ds: bind(judge_by_keys(c, (), ds), lambda result: ret((s, result))),
    )


def strength_rule(reweighted: Reweighting, p: Rows, q: Rows) -> KeyedRule:
    return lambda c, k, d: speculative_rule(reweighted(k, p(c)), reweighted(k, q(c)), d)


def efficiency_rule(law_of_key: Pmf, reweighted: Reweighting, p: Rows, q: Rows) -> KeyedRule:
    return lambda c, k, d: bind(
        flip(accept_probability(p(c), q(c), d)),
        lambda kept: ret(None) if kept else drawn_by_key(law_of_key, reweighted, excess_law(p(c), q(c))),
    )


def second_half(w: Fraction) -> Fraction:
    return max(w + w - 1, Fraction(0))


def two_orders(key: int, r: Pmf) -> Pmf:
    """Return the pmf of a token drawn from r by inverse CDF with a uniform from the upper half of [0, 1).

    The cumulative masses are added in rising order of tokens for ``key`` 0, in falling order for ``key`` 1.
    """
    order = range(len(r)) if key == 0 else range(len(r) - 1, -1, -1)

    def in_order(x: int) -> Fraction:
        before = sum((r[y] for y in order[: order.index(x)]), Fraction(0))
        return second_half(before + r[x]) - second_half(before)

    return tuple(in_order(x) for x in range(len(r)))
