"""Named rules of wrong tree verifiers, as variants of recursive rejection.

Recursive rejection (SpecInfer, arXiv 2305.09781; RSD, arXiv 2402.14160) tests the children of a node in their order,
child x with min(1, r(x)/q(x)), where r is p at first and norm(max(r - q, 0)) after each rejection. The q of a child
that is drawn without replacement has no mass on earlier siblings and is normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, product
from typing import NamedTuple

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_rules import Row, excess, ratio, scaled, without
from specverify.reference import Draft, LanguageModel, Tokens
from specverify.reference.trees import child_pmf, children, path_tokens

NEAR = 1e-6


class TreeLevel(NamedTuple):
    """The children of one node of a draft tree, with the row of p at the node and the q of each child.

    ``nodes`` are the numbers of the children in the tree, and ``tokens`` their tokens, both in the order of
    verification.
    """

    p: Row
    whole_q: Row
    """q of the first child, which is the draft model's row."""
    q: tuple[Row, ...]
    """q of each child."""
    nodes: tuple[int, ...]
    tokens: Tokens


class TreeRound(NamedTuple):
    """A round with a draft tree.

    ``prefix`` is the text before the round, ``draft`` the tree, and ``target`` gives p. ``items`` are the draws of the
    round, and ``emitted`` its tokens.
    """

    draft: Draft
    prefix: Tokens
    target: LanguageModel
    items: tuple[PathDraw, ...]
    """The draws after the draft, without draws that have a certain outcome."""
    emitted: Tokens

    def level(self, path: Tokens, siblings: Sequence[int]) -> TreeLevel:
        """Return the children ``siblings`` of a node, with p after the tokens ``path`` and the q of each child.

        ``siblings`` are the indices of the children in the draft, in the order of their tests. ``path`` are the tokens
        from the root to the node, or those after which a wrong program takes p.
        """
        p_row = self.target(self.prefix + path)
        p = tuple(float(mass) for mass in p_row.tolist())
        rows = tuple(tuple(float(mass) for mass in child_pmf(self.draft, child, p_row).tolist()) for child in siblings)
        tokens = tuple(self.draft.tokens[child] for child in siblings)
        return TreeLevel(p, rows[0] if rows else (), rows, tuple(siblings), tokens)


class OutcomeOfTests(NamedTuple):
    """The result of the tests of the children of one node."""

    kept: int | None
    """The index of the accepted child in its level; None if all are rejected."""
    left: Row
    """The row r after the rejections; for an accepted child, the row with which it was tested."""
    items: tuple[PathDraw, ...]
    """The draws after the tests."""


OfNode = Callable[[TreeRound, int, int], Tokens]
OfChild = Callable[[TreeLevel, int], Row]
Update = Callable[[TreeLevel, Row, Row, int], Row]

P_RULES: Mapping[str, OfNode] = {
    "": lambda one, node, depth: one.emitted[:depth],
    "p after an accepted child is the row of the node before it in the tree": lambda one, node, depth: path_tokens(
        one.draft, max(node - 1, -1)
    ),
    "p after an accepted child is the row of its parent": lambda one, node, depth: one.emitted[: max(depth - 1, 0)],
}
"""Rule -> the tokens of the tree after which p is taken at an accepted node, at a depth; the node -1 is the root."""
Q_RULES: Mapping[str, OfChild] = {
    "": lambda level, i: level.q[i],
    "q of a later sibling is not renormalised after the siblings before it are removed": lambda level, i: level.whole_q,
    "q of a later sibling has no mass on the siblings before it, although it is drawn with replacement": (
        lambda level, i: scaled(without(level.whole_q, *level.tokens[:i]))
    ),
}
RESIDUALS: Mapping[str, Update] = {
    "": lambda level, r, q, i: excess(r, q),
    "the siblings after a rejected child are tested with p, not with the residual": lambda level, r, q, i: level.p,
    "the siblings after a rejected child are tested with p, not with the residual (which the last draw has)": (
        lambda level, r, q, i: level.p if i + 1 < len(level.tokens) else excess(level.p, q)
    ),
    "the token after the last rejected child is drawn from p, not from the residual": lambda level, r, q, i: (
        level.p if i + 1 == len(level.tokens) else excess(r, q)
    ),
    "the residual after a rejected child is not divided by its sum": lambda level, r, q, i: _difference(r, q),
    "the residual after a rejected child is not divided by its sum, and kept where the next difference is 0": (
        lambda level, r, q, i: left if sum(left := _difference(r, q)) > 0 else r
    ),
    "the residual after a rejected child is not divided by its sum, and p where the next difference is 0": (
        lambda level, r, q, i: left if sum(left := _difference(r, q)) > 0 else level.p
    ),
    "the residual after a rejected child is p without its token": lambda level, r, q, i: scaled(
        without(level.p, *level.tokens[: i + 1])
    ),
    "the residual after a second rejected child is max(p - q, 0) again, not that of the residual": (
        lambda level, r, q, i: excess(level.p, q)
    ),
    "a child with the token of a rejected sibling is skipped, and the residual is not reduced for it": (
        lambda level, r, q, i: r if level.tokens[i] in level.tokens[:i] else excess(r, q)
    ),
}


def _difference(r: Row, q: Row) -> Row:
    return [max(a - b, 0.0) for a, b in zip(r, q, strict=True)]


def name_of_tree_rule(rounds: Sequence[TreeRound]) -> str:
    """Return the name of the wrong rule that all draws of ``rounds`` follow; "" if none is found.

    If several rules fit, those with the fewest wrong parts count. The shortest name is returned if all other names
    begin with it. Otherwise two names are joined by "or", and for more the result is "".
    """
    if not rounds or follows_rejection(rounds):
        return ""
    fitting = [[part for part in rule if part] for rule in _rules() if _fits(rounds, *rule)]
    fewest = min(map(len, fitting), default=0)
    names = sorted(("; ".join(parts) for parts in fitting if len(parts) == fewest), key=len)
    if names and all(name.startswith(names[0]) for name in names):
        return names[0]
    return ", or ".join(names) if len(names) == 2 else ""


def follows_rejection(rounds: Sequence[TreeRound]) -> bool:
    """Return whether recursive rejection, the right rule, predicts every draw of ``rounds``."""
    return _fits(rounds, "", "", "")


def has_tree_rule(rounds: Sequence[TreeRound]) -> bool:
    """Return whether a rule with a name, or the right rule, predicts every draw of ``rounds``."""
    return any(_fits(rounds, *rule) for rule in _rules())


def _rules() -> list[tuple[str, str, str]]:
    """Return the names of the parts of each rule: of p, of q and of the residual; "" for a right part.

    A rule with the wrong row of p has no other wrong part.
    """
    return [*product([""], Q_RULES, RESIDUALS), *((p_rule, "", "") for p_rule in P_RULES if p_rule)]


def _fits(rounds: Sequence[TreeRound], p_rule: str, q_rule: str, residual: str) -> bool:
    return all(_rule_predicts(one, P_RULES[p_rule], Q_RULES[q_rule], RESIDUALS[residual]) for one in rounds)


def _rule_predicts(one: TreeRound, p_rule: OfNode, q_rule: OfChild, residual: Update) -> bool:
    """Return whether a rule predicts the acceptance of each tested child and the last token of the round ``one``.

    ``p_rule`` returns the tokens after which p is taken, ``q_rule`` the q of a child, and ``residual`` the row r after
    a rejection.
    """
    items, nodes = one.items, (-1,)
    for depth, token in enumerate(one.emitted):
        level = one.level(p_rule(one, nodes[0], depth), children(one.draft.parents, nodes))
        tested = outcome_of_tests(level, items, q_rule, residual)
        if tested is None:
            return False
        kept, left, items = tested
        if kept is None:
            law = scaled(left if sum(left) > 0 else level.p)
            if max(law) > 1 - NEAR:
                return bool(law[token] > 1 - NEAR)
            return bool(law[token] > NEAR and (not items or draws_from(items[0], law, token)))
        if level.tokens[kept] != token:
            return False
        nodes = (level.nodes[kept],)
    return True


def outcome_of_tests(
    level: TreeLevel, items: Sequence[PathDraw], q_rule: OfChild = Q_RULES[""], residual: Update = RESIDUALS[""]
) -> OutcomeOfTests | None:
    """Return the result of the tests of the children in ``level``; None if a test differs from that of the rule.

    ``items`` are the draws from the first of these tests on. By default the rule is recursive rejection; ``q_rule`` and
    ``residual`` are its parts.
    """
    left, rest = level.p, list(items)
    for i, drafted in enumerate(level.tokens):
        q = q_rule(level, i)
        bound = float(ratio(left[drafted], q[drafted]))
        accepted = bound > NEAR
        if NEAR < bound < 1 - NEAR:
            if not rest or rest[0].is_lookup or abs(rest[0].bound - bound) > NEAR:
                return None
            accepted = rest.pop(0).low <= 0
        if accepted:
            return OutcomeOfTests(i, left, tuple(rest))
        left = residual(level, left, q, i)
    return OutcomeOfTests(None, left, tuple(rest))


def draws_from(item: PathDraw, law: Row, token: int) -> bool:
    """Return whether ``item`` draws ``token`` from ``law``, by its pmf or its interval of cumulated probabilities."""
    if item.pmf or item.widths:
        return item.token_from(law, NEAR) == token
    ends = [0.0, *accumulate(law)]
    return bool(abs(item.low - ends[token]) < NEAR and abs(item.high - ends[token + 1]) < NEAR)
