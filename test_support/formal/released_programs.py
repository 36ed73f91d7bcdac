"""The programs of ``FixedBlock.v``, ``EdgeCloud.v``, ``Released.v`` and ``JointBlocks.v``, line by line in Python.

They are the registry's rows that are not lossless and are no accept-or-replace rule of one position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from test_support.formal.theory_programs import (
    Chain,
    Dist,
    Pmf,
    Result,
    Round,
    Text,
    bind,
    draw,
    excess_law,
    flip,
    hierarchical_heads,
    judge,
    propose,
    ret,
    weighted,
)

Rows = Callable[[Text], Pmf]
ONE = Fraction(1)


# FixedBlock.v


def longest(heads: Callable[[Text, Text], Fraction], owed: Callable[[Text, Text], Pmf], ks: Text, ds: Text) -> Dist:
    def toss() -> Dist:
        return bind(
            flip(heads(ks, ds)),
            lambda up: bind(draw(owed(ks, ds)), lambda x: ret((ks, x, len(ks)))) if up else ret(None),
        )

    if not ds:
        return toss()
    return bind(longest(heads, owed, (*ks, ds[0]), ds[1:]), lambda o: toss() if o is None else ret(o))


# EdgeCloud.v


def coupled_rule(given: Callable[[int], Pmf], d: int) -> Dist:
    return bind(draw(given(d)), lambda z: ret(None if z == d else z))


def timeout_round(chain: Chain, late: Fraction) -> Round:
    def round_(s: Any, n: int, c: Text) -> Dist:
        def go_on(ds: Text) -> Dist:
            verified = bind(judge(chain, s, c, (), ds), lambda result: ret((s, result)))
            if not ds:
                return verified
            return bind(flip(late), lambda silent: ret((s, ((), ds[0], 1))) if silent else verified)

        return bind(propose(chain, min(chain.plan(s, c), n - 1), s, c, ()), go_on)

    return round_


def behind_block(ks: Text, result: Result) -> Result:
    return ks + result[0], result[1], len(ks) + result[2]


def committed_alone(ks: Text, ds: Text) -> Result:
    return ks + ds[:-1], ds[-1], len(ks + ds)


def gated_blocks(
    chain: Chain, eos: Text, easy: Callable[[Text, Text], bool], fuel: int, s: Any, n: int, c: Text, ks: Text
) -> Dist:
    def go_on(ds: Text) -> Dist:
        if not (fuel and ds and easy(c + ks, ds)):
            return bind(judge(chain, s, c + ks, (), ds), lambda result: ret(behind_block(ks, result)))
        if any(token in eos for token in ds):
            return ret(committed_alone(ks, ds))
        return gated_blocks(chain, eos, easy, fuel - 1, s, n, c, ks + ds)

    return bind(propose(chain, min(chain.plan(s, c + ks), n - len(ks) - 1), s, c + ks, ()), go_on)


def gated_round(chain: Chain, eos: Text, easy: Callable[[Text, Text], bool]) -> Round:
    return lambda s, n, c: bind(gated_blocks(chain, eos, easy, n, s, n, c, ()), lambda result: ret((s, result)))


# Released.v


def ratios(p: Rows, u: Rows, ks: Text) -> tuple[Fraction, Fraction]:
    ratio, highest = ONE, ONE
    for place, d in enumerate(ks):
        ratio = ratio * p(ks[:place])[d] / u(ks[:place])[d]
        highest = max(highest, ratio)
    return ratio, highest


def capped_ratio(p: Rows, u: Rows, ks: Text) -> Fraction:
    ratio, highest = ratios(p, u, ks)
    return ratio / highest


def hierarchical_released(p: Rows, q: Rows, c: Text, ds: Text) -> Dist:
    def row(ks: Text) -> Pmf:
        return p(c + ks)

    def drafted(ks: Text) -> Pmf:
        return q(c + ks)

    def heads(ks: Text, later: Text) -> Fraction:
        if not later:
            return min(ratios(row, drafted, ks)[0], ONE)
        return hierarchical_heads(capped_ratio(row, drafted, ks), row(ks), drafted(ks))

    def owed(ks: Text, later: Text) -> Pmf:
        return excess_law(weighted(capped_ratio(row, drafted, ks), row(ks)), drafted(ks)) if later else row(ks)

    return longest(heads, owed, (), ds)


def match_path(p: Rows, c: Text, ks: Text, path: Text) -> Dist:
    if not path:
        return ret(ks)
    return bind(draw(p(c + ks)), lambda x: match_path(p, c, (*ks, path[0]), path[1:]) if x == path[0] else ret(ks))


def match_paths(p: Rows, c: Text, paths: Sequence[Text], best: Text) -> Dist:
    if not paths:
        return ret(best)
    return bind(
        match_path(p, c, (), paths[0]),
        lambda matched: match_paths(p, c, paths[1:], matched if len(best) < len(matched) else best),
    )


def rest_released_round(p: Rows, paths: Callable[[int, Text], Sequence[Text]]) -> Round:
    return lambda s, n, c: bind(
        match_paths(p, c, paths(n, c), ()),
        lambda best: bind(draw(p(c + best)), lambda x: ret((s, (best, x, len(best))))),
    )


def two_draws(r: Pmf, d: int) -> Dist:
    return bind(draw(r), lambda z: ret((z, True)) if z == d else bind(draw(r), lambda again: ret((z, again == d))))


def mark(p: Rows, c: Text, ks: Text, ds: Text) -> Dist:
    if not ds:
        return ret(())
    return bind(
        two_draws(p(c + ks), ds[0]),
        lambda zm: bind(mark(p, c, (*ks, ds[0]), ds[1:]), lambda later: ret((zm, *later))),
    )


def first_miss(excused: Callable[[tuple[bool, ...], int], bool], met: tuple[bool, ...]) -> int:
    return next((i for i in range(len(met)) if not (met[i] or excused(met, i))), len(met))


def fly_judge(p: Rows, excused: Callable[[Text, Text, tuple[bool, ...], int], bool], c: Text, ds: Text) -> Dist:
    def go_on(marks: tuple[tuple[int, bool], ...]) -> Dist:
        i = first_miss(lambda met, place: excused(c, ds, met, place), tuple(meets for _, meets in marks))
        if i < len(marks):
            return ret((ds[:i], marks[i][0], i))
        return bind(draw(p(c + ds)), lambda x: ret((ds, x, len(ds))))

    return bind(mark(p, c, (), ds), go_on)


def ends(eos: Text, ds: Text) -> bool:
    return bool(ds) and ds[-1] in eos


def bild_step(
    eos: Text,
    models: tuple[Callable[[Text], int], Callable[[Text], int]],
    unsure: Callable[[Text], bool],
    unlikely: Callable[[Text, int], bool],
    gamma: int,
) -> Callable[[Any, int, Text], tuple[bool, Result]]:
    small, large = models

    def confident(most: int, c: Text, ds: Text) -> Text:
        if most == 0 or ends(eos, ds) or unsure(c + ds):
            return ds
        return confident(most - 1, c, (*ds, small(c + ds)))

    def looked_at(c: Text, ds: Text) -> tuple[int, bool]:
        for place, d in enumerate(ds):
            if unlikely(c + ds[:place], d):
                return (len(ds), False) if large(c + ds[:place]) == d else (place, True)
        return len(ds), False

    def step(again: bool, n: int, c: Text) -> tuple[bool, Result]:
        ds = () if again else confident(min(gamma, n), c, ())
        if ds and (len(ds) == n or ends(eos, ds)):
            return False, (ds[:-1], ds[-1], len(ds))
        kept, back = looked_at(c, ds)
        return back, (ds[:kept], large(c + ds[:kept]), kept)

    return step


# JointBlocks.v


def mass_along(r: Rows, ks: Text) -> Fraction:
    mass = ONE
    for place, d in enumerate(ks):
        mass = mass * r(ks[:place])[d]
    return mass


def share_of(proposed: Fraction, mass: Fraction) -> Fraction:
    return proposed / mass if proposed < mass else ONE


def shares_behind(p: Rows, u: Rows, ks: Text) -> Pmf:
    proposed, mass = mass_along(u, ks), mass_along(p, ks)
    return tuple(share_of(proposed * a, mass * b) for a, b in zip(u(ks), p(ks), strict=True))


def chance(part: Fraction, whole: Fraction) -> Fraction:
    return min(part / whole, ONE) if part > 0 and whole > 0 else Fraction(0)


def joint_stays(p: Rows, u: Rows, whole: int, count: int, ks: Text) -> Fraction:
    proposed, mass = mass_along(u, ks), mass_along(p, ks)
    missing = (1 - share_of(proposed, mass)) ** count
    drafted = 1 - (1 - proposed) ** count
    if len(ks) == whole:
        return chance(mass * (1 - missing), drafted)
    onward = [mass * b for b in p(ks)]
    gaps = [(1 - share) ** count for share in shares_behind(p, u, ks)]
    left = sum(a * gap for a, gap in zip(onward, gaps, strict=True)) - mass * missing
    return chance(left, drafted - sum(a * (1 - gap) for a, gap in zip(onward, gaps, strict=True)))


def joint_behind(p: Rows, u: Rows, whole: int, count: int, ks: Text) -> Pmf:
    if len(ks) == whole:
        return p(ks)
    owed = [b * (1 - share**count) for b, share in zip(p(ks), shares_behind(p, u, ks), strict=True)]
    return tuple(part / sum(owed) for part in owed) if sum(owed) > 0 else p(ks)


def try_parts(
    stays: Callable[[Text], Fraction], whole: int, parts: Sequence[Text], kept: Text, turned: frozenset[Text]
) -> Dist:
    if not parts:
        return ret((kept, turned))
    part, later = parts[0], parts[1:]
    if part in turned:
        return try_parts(stays, whole, later, kept, turned)
    down = turned if len(part) == whole else turned | {part}
    return bind(
        flip(stays(part)),
        lambda up: try_parts(stays, whole, later, part if up else kept, turned if up else down),
    )


def try_blocks(
    stays: Callable[[Text], Fraction], whole: int, blocks: Sequence[Text], kept: Text, turned: frozenset[Text]
) -> Dist:
    if len(kept) == whole or not blocks:
        return ret(kept)
    parts = [blocks[0][:i] for i in range(len(kept) + 1, len(blocks[0]) + 1)]
    return bind(
        try_parts(stays, whole, parts, kept, turned), lambda found: try_blocks(stays, whole, blocks[1:], *found)
    )


def several(k: int, program: Dist) -> Dist:
    return bind(program, lambda a: bind(several(k - 1, program), lambda later: ret((a, *later)))) if k else ret(())


def joint_round(p: Rows, q: Rows, count: int, gamma: int) -> Round:
    drafter = Chain(None, lambda s, c, ds: True, lambda s, c, ds: q(c + ds), None, None)

    def round_(s: Any, n: int, c: Text) -> Dist:
        g = min(gamma, n - 1)

        def row(ks: Text) -> Pmf:
            return p(c + ks)

        def drafted(ks: Text) -> Pmf:
            return q(c + ks)

        def judged(blocks: tuple[Text, ...]) -> Dist:
            found = try_blocks(lambda ks: joint_stays(row, drafted, g, count, ks), g, blocks, (), frozenset())
            return bind(
                found,
                lambda kept: bind(
                    draw(joint_behind(row, drafted, g, count, kept)), lambda x: ret((s, (kept, x, len(kept))))
                ),
            )

        return bind(several(count, propose(drafter, g, None, c, ())), judged)

    return round_
