"""The programs of ``proofs/`` translated line by line to Python; each function has its name in the Rocq theories.

A program returns a list of weighted outcomes. ``draw`` samples a token, ``flip`` a coin, and ``bind`` runs one program
after another. A pmf is a tuple of ``Fraction``. Models are callables from a text to a pmf, as in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Text = tuple[int, ...]
Pmf = tuple[Fraction, ...]
Dist = list[tuple[Fraction, Any]]
Result = tuple[Text, int, int]
"""The kept tokens, the token behind them, and how many of the tokens are accepted drafts."""


# Probability.v


def ret(value: Any) -> Dist:
    return [(Fraction(1), value)]


def bind(program: Dist, go_on: Callable[[Any], Dist]) -> Dist:
    return [(weight * other, value) for weight, outcome in program for other, value in go_on(outcome)]


def draw(pmf: Sequence[Fraction]) -> Dist:
    return [(mass, token) for token, mass in enumerate(pmf) if mass != 0]


def flip(heads: Fraction) -> Dist:
    return [(weight, value) for weight, value in ((Fraction(heads), True), (1 - Fraction(heads), False)) if weight != 0]


def law(program: Dist) -> dict[Any, Fraction]:
    """Return the probability of each outcome of a program; the weights of equal outcomes are added."""
    masses: dict[Any, Fraction] = {}
    for weight, value in program:
        masses[value] = masses.get(value, Fraction(0)) + weight
    return masses


# OnePosition.v


def accept_probability(p: Pmf, q: Pmf, x: int) -> Fraction:
    return Fraction(p[x]) / q[x] if p[x] < q[x] else Fraction(1) if p[x] > 0 else Fraction(0)


def excess(p: Pmf, q: Pmf) -> Pmf:
    return tuple(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True))


def excess_law(p: Pmf, q: Pmf) -> Pmf:
    mass = sum(excess(p, q))
    return tuple(part / mass for part in excess(p, q)) if mass > 0 else p


def accept_or_replace(a: Fraction, r: Pmf) -> Dist:
    return bind(flip(a), lambda kept: ret(None) if kept else draw(r))


def speculative_rule(p: Pmf, q: Pmf, d: int) -> Dist:
    return accept_or_replace(accept_probability(p, q, d), excess_law(p, q))


def match_rule(p: Pmf, d: int) -> Dist:
    return bind(draw(p), lambda z: ret(None if z == d else z))


def drop_rule(sure: Callable[[int], bool], p: Pmf, q: Pmf, d: int) -> Dist:
    kept = tuple(mass if sure(x) else Fraction(0) for x, mass in enumerate(q))
    return accept_or_replace(accept_probability(p, q, d) if kept[d] else Fraction(0), excess_law(p, kept))


# Texts.v


def until_end(eos: Text, block: Text) -> Text:
    for place, token in enumerate(block):
        if token in eos:
            return block[: place + 1]
    return block


def commit(eos: Text, block: Text, n: int) -> tuple[Text, int]:
    new = until_end(eos, block[:n])
    return new, 0 if any(token in eos for token in new) else n - len(new)


Round = Callable[[Any, int, Text], Dist]


def decode(eos: Text, round_: Round, slack: int, n: int, s: Any, c: Text) -> Dist:
    if n == 0:
        return ret(())

    def go_on(outcome: tuple[Any, Result]) -> Dist:
        after, (kept, last, accepted) = outcome
        new, remaining = commit(eos, (*kept, last), n)
        record = (new, min(accepted, len(new)))
        return bind(decode(eos, round_, slack, remaining, after, c + new), lambda rounds: ret((record, *rounds)))

    return bind(round_(s, slack + n, c), go_on)


# Chain.v


class Chain(NamedTuple):
    """The parts of a chain algorithm; every part may read the state, the text and the drafts so far."""

    plan: Callable[[Any, Text], int]
    more: Callable[[Any, Text, Text], bool]
    q: Callable[[Any, Text, Text], Pmf]
    rule: Callable[[Any, Text, Text, int], Dist]
    bonus: Callable[[Text], Dist]
    next: Callable[[Any, Text, Text, Result], Any] = lambda s, c, ds, result: s


def propose(chain: Chain, g: int, s: Any, c: Text, ds: Text) -> Dist:
    if g == 0 or not chain.more(s, c, ds):
        return ret(())
    return bind(
        draw(chain.q(s, c, ds)),
        lambda d: bind(propose(chain, g - 1, s, c, (*ds, d)), lambda later: ret((d, *later))),
    )


def judge(chain: Chain, s: Any, c: Text, ks: Text, ds: Text) -> Dist:
    if not ds:
        return bind(chain.bonus(c + ks), lambda x: ret((ks, x, len(ks))))
    return bind(
        chain.rule(s, c, ks, ds[0]),
        lambda o: ret((ks, o, len(ks))) if o is not None else judge(chain, s, c, (*ks, ds[0]), ds[1:]),
    )


def chain_round(chain: Chain) -> Round:
    return lambda s, n, c: bind(
        propose(chain, min(chain.plan(s, c), n - 1), s, c, ()),
        lambda ds: bind(judge(chain, s, c, (), ds), lambda result: ret((chain.next(s, c, ds, result), result))),
    )


# Lengths.v


def until_stop(
    q: Callable[[Any, Text, Text], Pmf], stop: Callable[[Any, Pmf, int], bool]
) -> Callable[[Any, Text, Text], bool]:
    return lambda s, c, ds: not ds or not stop(s, q(s, c, ds[:-1]), ds[-1])


def cascade_round(chain: Chain, inner: Round, start: Any, slack: int) -> Round:
    def round_(s: Any, n: int, c: Text) -> Dist:
        drafted = decode((), inner, slack, min(chain.plan(s, c), n - 1), start, c)
        texts = [(weight, tuple(token for block, _ in rounds for token in block)) for weight, rounds in drafted]
        return bind(texts, lambda ds: bind(judge(chain, s, c, (), ds), lambda result: ret((s, result))))

    return round_


# OwnDraws.v


def draw_while_candidate(
    p: Callable[[Text], Pmf], candidate: Callable[[Any, Text, Text, int], Dist], g: int, draft: Any, c: Text, ks: Text
) -> Dist:
    def go_on(z: int) -> Dist:
        if g == 0:
            return ret((ks, z, len(ks)))
        return bind(
            candidate(draft, c, ks, z),
            lambda hit: draw_while_candidate(p, candidate, g - 1, draft, c, (*ks, z)) if hit else ret((ks, z, len(ks))),
        )

    return bind(draw(p(c + ks)), go_on)


def own_draws_round(
    p: Callable[[Text], Pmf], drafts: Callable[[int, Text], Dist], candidate: Callable[[Any, Text, Text, int], Dist]
) -> Round:
    return lambda s, n, c: bind(
        drafts(n, c),
        lambda draft: bind(draw_while_candidate(p, candidate, n - 1, draft, c, ()), lambda result: ret((s, result))),
    )


# Block.v


def weighted(w: Fraction, r: Pmf) -> Pmf:
    return tuple(w * mass for mass in r)


def block_heads(w: Fraction, r: Pmf, u: Pmf) -> Fraction:
    spare = sum(excess(weighted(w, r), u))
    return spare / (spare + 1 - w) if spare > 0 or w < 1 else w


def hierarchical_heads(w: Fraction, r: Pmf, u: Pmf) -> Fraction:
    above, below = sum(excess(weighted(w, r), u)), sum(excess(u, weighted(w, r)))
    return above / max(above, below) if above > 0 or below > 0 else Fraction(1)


def ending(w: Fraction, r: Pmf, ks: Text) -> Dist:
    return bind(flip(w), lambda heads: bind(draw(r), lambda x: ret((ks, x, len(ks)))) if heads else ret(None))


def block_coins(p: Callable[[Text], Pmf], q: Callable[[Text], Pmf], c: Text, w: Fraction, ks: Text, ds: Text) -> Dist:
    r = p(c + ks)
    if not ds:
        return ending(w, r, ks)
    u = q(c + ks)
    below = block_coins(p, q, c, accept_probability(weighted(w, r), u, ds[0]), (*ks, ds[0]), ds[1:])
    coin = ending_at(block_heads(w, r, u), excess_law(weighted(w, r), u), ks)
    return bind(below, lambda o: coin if o is None else ret(o))


def ending_at(heads: Fraction, owed: Pmf, ks: Text) -> Dist:
    return bind(flip(heads), lambda up: bind(draw(owed), lambda x: ret((ks, x, len(ks)))) if up else ret(None))


def hierarchical_coins(
    p: Callable[[Text], Pmf], q: Callable[[Text], Pmf], c: Text, ratios: tuple[Fraction, Fraction], ks: Text, ds: Text
) -> Dist:
    (ratio, highest), r = ratios, p(c + ks)
    w = ratio / highest
    if not ds:
        return ending(w, r, ks)
    u = q(c + ks)
    onward = ratio * r[ds[0]] / u[ds[0]]
    below = hierarchical_coins(p, q, c, (onward, max(highest, onward)), (*ks, ds[0]), ds[1:])
    coin = ending_at(hierarchical_heads(w, r, u), excess_law(weighted(w, r), u), ks)
    return bind(below, lambda o: coin if o is None else ret(o))


def something_stays(program: Dist) -> Dist:
    return bind(program, lambda o: [] if o is None else ret(o))


def block_round(chain: Chain, coins: Callable[[Text, Text], Dist]) -> Round:
    return lambda s, n, c: bind(
        propose(chain, min(chain.plan(s, c), n - 1), s, c, ()),
        lambda ds: bind(something_stays(coins(c, ds)), lambda result: ret((s, result))),
    )


# Tree.v


class Node(NamedTuple):
    """A node of a draft tree: its token, the pmf that it was drawn from, and its child nodes."""

    token: int
    pmf: Pmf
    below: tuple[Node, ...]


class Tree(NamedTuple):
    """How a tree is drafted: the pmf of the next sibling or None, and the plan below a child."""

    sibling: Callable[[Any, Text, Text], Pmf | None]
    below: Callable[[Any, Text, Text, int], Any]
    width: int


def siblings(tree: Tree, height: int, width: int, plan: Any, c: Text, earlier: Text) -> Dist:
    u = tree.sibling(plan, c, earlier) if width else None
    if u is None:
        return ret(())
    return bind(
        draw(u),
        lambda d: bind(
            grow(tree, height, (tree.below(plan, c, earlier, d),), (*c, d)),
            lambda below: bind(
                siblings(tree, height, width - 1, plan, c, (*earlier, d)),
                lambda later: ret((Node(d, u, below), *later)),
            ),
        ),
    )


def grow(tree: Tree, height: int, plans: tuple[Any, ...], c: Text) -> Dist:
    if height == 0 or not plans:
        return ret(())
    return bind(
        siblings(tree, height - 1, tree.width, plans[0], c, ()),
        lambda first: bind(grow(tree, height, plans[1:], c), lambda later: ret(first + later)),
    )


Select = Callable[[Pmf, list[tuple[int, Pmf]]], Dist]


def try_in_turn(owed: Pmf, candidates: list[tuple[int, Pmf]]) -> Dist:
    if not candidates:
        return bind(draw(owed), lambda x: ret((x, False)))
    d, u = candidates[0]
    return bind(
        flip(accept_probability(owed, u, d)),
        lambda kept: ret((d, True)) if kept else try_in_turn(excess_law(owed, u), candidates[1:]),
    )


def look_up(r: Pmf, candidates: list[tuple[int, Pmf]]) -> Dist:
    return bind(draw(r), lambda z: ret((z, z in [token for token, _ in candidates])))


def choose(select: Select, r: Pmf, candidates: list[tuple[int, Pmf]]) -> Dist:
    return select(r, candidates) if candidates else bind(draw(r), lambda x: ret((x, False)))


def merged(x: int, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(child for node in nodes if node.token == x for child in node.below)


def descend(p: Callable[[Text], Pmf], select: Select, height: int, c: Text, ks: Text, nodes: tuple[Node, ...]) -> Dist:
    if height == 0:
        return bind(draw(p(c + ks)), lambda x: ret((ks, x, len(ks))))

    def go_on(step: tuple[int, bool]) -> Dist:
        x, accepted = step
        return descend(p, select, height - 1, c, (*ks, x), merged(x, nodes)) if accepted else ret((ks, x, len(ks)))

    return bind(choose(select, p(c + ks), [(node.token, node.pmf) for node in nodes]), go_on)


def tree_round(p: Callable[[Text], Pmf], tree: Tree, select: Select, plan: Any, height: int) -> Round:
    def round_(s: Any, n: int, c: Text) -> Dist:
        h = min(height, n - 1)
        return bind(
            grow(tree, h, (plan,), c),
            lambda nodes: bind(descend(p, select, h, c, (), nodes), lambda result: ret((s, result))),
        )

    return round_


# KSeq.v


def try_alike(rho: Fraction, r: Pmf, owed: Pmf, candidates: list[tuple[int, Pmf]]) -> Dist:
    if not candidates:
        return bind(draw(owed), lambda x: ret((x, False)))
    d, u = candidates[0]
    return bind(
        flip(accept_probability(r, weighted(rho, u), d)),
        lambda kept: ret((d, True)) if kept else try_alike(rho, r, owed, candidates[1:]),
    )


def tries(beta: Fraction, count: int) -> Fraction:
    return 1 + (1 - beta) * tries(beta, count - 1) if count else Fraction(0)


def leftover(rho: Fraction, r: Pmf, u: Pmf, count: int) -> Pmf:
    one_try = tuple(mass * accept_probability(r, weighted(rho, u), x) for x, mass in enumerate(u))
    return excess_law(r, weighted(tries(sum(one_try, Fraction(0)), count), one_try))


def k_seq(choose_rho: Callable[[Pmf, Pmf, int], Fraction]) -> Select:
    def select(r: Pmf, candidates: list[tuple[int, Pmf]]) -> Dist:
        u, count = candidates[0][1], len(candidates)
        rho = choose_rho(r, u, count)
        return try_alike(rho, r, leftover(rho, r, u, count), candidates)

    return select


# Traversal.v


def enter_children(
    p: Callable[[Text], Pmf], h: int, c: Text, ks: Text, at: tuple[Fraction, Pmf], nodes: tuple[Node, ...]
) -> Dist:
    w, owed = at
    if not nodes:
        return ending(w, owed, ks)
    d, u, below = nodes[0]
    spare = sum(excess(weighted(w, owed), u))
    if spare > 0:
        left = (spare / (spare + (1 - w)), excess_law(weighted(w, owed), u))
    else:
        left = (w if not ks else Fraction(0), owed)
    inside = enter(p, h, c, (*ks, d), accept_probability(weighted(w, owed), u, d), below)
    return bind(inside, lambda o: enter_children(p, h, c, ks, left, nodes[1:]) if o is None else ret(o))


def enter(p: Callable[[Text], Pmf], height: int, c: Text, ks: Text, w: Fraction, nodes: tuple[Node, ...]) -> Dist:
    if height == 0:
        return ending(w, p(c + ks), ks)
    return enter_children(p, height - 1, c, ks, (w, p(c + ks)), nodes)


def traversal_round(p: Callable[[Text], Pmf], tree: Tree, plan: Any, height: int) -> Round:
    def round_(s: Any, n: int, c: Text) -> Dist:
        h = min(height, n - 1)
        return bind(
            grow(tree, h, (plan,), c),
            lambda nodes: bind(
                something_stays(enter(p, h, c, (), Fraction(1), nodes)), lambda result: ret((s, result))
            ),
        )

    return round_


# Shortcuts.v


def resample_rule(p: Pmf, q: Pmf, d: int) -> Dist:
    return accept_or_replace(accept_probability(p, q, d), p)


def lenient_rule(lenience: Fraction, p: Pmf, q: Pmf, d: int) -> Dist:
    return accept_or_replace(accept_probability(p, weighted(lenience, q), d), excess_law(p, q))


def likelier_rule(p: Pmf, q: Pmf, d: int) -> Dist:
    return accept_or_replace(Fraction(0) if p[d] < q[d] else Fraction(1), p)


def scalar_rule(p: Pmf, q: Pmf, d: int) -> Dist:
    alone = tuple(q[d] if x == d else Fraction(0) for x in range(len(p)))
    return accept_or_replace(accept_probability(p, q, d), excess_law(p, alone))


def threshold_rule(good: Callable[[int], bool], r: Pmf, d: int) -> Dist:
    return accept_or_replace(Fraction(1) if good(d) else Fraction(0), r)


def match_twice_rule(t: Pmf, d: int) -> Dist:
    return accept_or_replace(t[d], t)


def judge_rule(good: Callable[[int], bool], p: Pmf, q: Pmf, d: int) -> Dist:
    return accept_or_replace(Fraction(1) if good(d) else accept_probability(p, q, d), excess_law(p, q))


def raised_rule(h: Callable[[int], Pmf], q: Pmf, d: int) -> Dist:
    return accept_or_replace(accept_probability(h(d), q, d), excess_law(h(d), q))


def reward_round(p: Callable[[Text], Pmf], q: Callable[[Text], Pmf], good: Callable[[Text, int], bool]) -> Round:
    return lambda s, n, c: bind(
        draw(q(c)),
        lambda d: ret((s, ((), d, 1))) if good(c, d) else bind(draw(p(c)), lambda x: ret((s, ((), x, 0)))),
    )


def keep_tokens(good: Callable[[int], bool], p: Pmf, q: Pmf) -> Pmf:
    kept = tuple(mass if good(x) else Fraction(0) for x, mass in enumerate(q))
    return tuple(mass + (1 - sum(kept)) * target for mass, target in zip(kept, p, strict=True))
