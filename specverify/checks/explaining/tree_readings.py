"""Describe a round with a draft tree: each child that is tested or skipped, compared with recursive rejection.

Recursive rejection (SpecInfer, arXiv 2305.09781; RSD, arXiv 2402.14160): children of one node are tested in their
order, child x with min(1, r(x)/q(x)), where r is p at first and norm(max(r - q, 0)) after each rejection. Another rule
can be lossless too, so a difference is named only if the program uses p itself, or no row at all, instead of r.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.drawn_trees import drawn, is_tree, node_named
from specverify.checks.explaining.engine_paths import PathDraw, draws_of
from specverify.checks.explaining.readings import items_of_decisions
from specverify.checks.explaining.round_rules import Row, excess, ratio, same_row
from specverify.checks.explaining.tree_rules import TreeRound, draws_from
from specverify.checks.explaining.wording import apart, rows_apart, short
from specverify.laws.draws import Decision, Narrated, NotAFunctionOfItsDraws, Replayed
from specverify.reference import Draft, Pmf, Tokens
from specverify.reference.trees import child_pmf, children, path_tokens
from specverify.subjects.subject import InScenario

NEAR = 1e-6
LEAST_OF_ONE_COIN = 2
"""With fewer siblings, a coin for all of them is the test of one."""
DRAWN_BY_DRAFTER = frozenset({("draft",)})


class TreeReading(NamedTuple):
    """A path whose rounds draft trees, described in words, with its first deviations from the rule."""

    words: str
    fault: str
    """A sentence about the first test that wrongly uses p instead of the residual; "" if there is none."""
    rounds: tuple[TreeRound, ...] = ()
    example: str = ""
    """The first deviation of a test, in numbers."""
    last: str = ""
    """A clause about the first last token of a round that is drawn from a wrong row; "" if there is none."""
    end: str = ""
    """The same as a sentence, for a round whose tests follow the rule; "" if there is none."""
    method: str = ""
    """The method that the example is compared with, such as "recursive rejection"; "" if it is a draw from p."""


def tree_reading(here: InScenario, choices: tuple[int, ...]) -> TreeReading | None:
    """Describe the rounds of one decode in words; None if no round drafts a tree, or its draws cannot be understood.

    ``here`` is the decoder in its scenario, and ``choices`` are the outcomes of the draws of the decode. A decoder
    without the method ``propose`` does not return its drafts. Then draws with sites ``("draft", ...)`` count as a tree
    if all of them are for one position.
    """
    replayed, state = Replayed(choices), here.decoder.init(here.prompt)
    words, fault, trees = list[str](), "", False
    rounds, example, last, end, method = list[TreeRound](), "", "", "", ""
    with suppress(NotAFunctionOfItsDraws):
        while state.remaining > 0:
            propose, used = here.decoder.propose, replayed.used
            narrated, prefix = Narrated(replayed), state.tokens
            draft = propose(Replayed(choices[used:]), state) if propose else None
            state, done = here.decoder.step(narrated, state)
            own = [decision for decision in narrated.decisions if decision.site[:1] not in DRAWN_BY_DRAFTER]
            drawn_items = items_of_decisions(own) if draft is None else draws_of(own)
            draft = draft or drafts_of_one_position(narrated.decisions, done.tokens)
            if draft is None:
                return None
            items = [item for item in drawn_items if item.high - item.low < 1 - NEAR]
            walk = _Walk(here, draft, prefix, items)
            said, wrong = walk.words(done.tokens)
            if draft.tokens:
                rounds.append(TreeRound(draft, prefix, here.task.target, tuple(items), done.tokens))
            if not example:
                example, method = walk.example, walk.method
            last, end = last or walk.last, end or walk.end
            trees = trees or is_tree(draft)
            words.append(f"{drawn(draft)}: {said}" if draft.tokens else said)
            fault = fault or wrong
    if not trees:
        return None
    return TreeReading("\n".join(_numbered(words)), fault, tuple(rounds), example, last, end, method)


def drafts_of_one_position(decisions: Sequence[Decision], emitted: Tokens) -> Draft | None:
    """Return the drafts of a round, all for one position, as siblings of a tree; None if they are not.

    The round must emit one token. Each further draft must be drawn directly after the rejection of the one before.
    ``decisions`` are those of the round, and ``emitted`` its tokens.
    """
    names = [decision.site[0] if decision.site else None for decision in decisions]
    at = [number for number, name in enumerate(names) if name == "draft"]
    tested = all(names[number - 1] == "accept" and decisions[number - 1].outcome == 1 for number in at[1:])
    if len(emitted) != 1 or not at or not tested:
        return None
    pmfs = tuple(np.array([float(weight) for weight in decisions[number].weights]) for number in at)
    return Draft(tuple(decisions[number].outcome for number in at), (-1,) * len(at), pmfs)


def _numbered(words: Sequence[str]) -> list[str]:
    return [f"round {number}: {said}" for number, said in enumerate(words, 1)] if len(words) > 1 else list(words)


class _Walk:
    """Compare the draws of one round with the tests of its tree, from the root down."""

    def __init__(self, here: InScenario, draft: Draft, prefix: Tokens, items: Sequence[PathDraw]) -> None:
        """Prepare to read one round with the tree ``draft``, which was drawn after the text ``prefix``.

        ``items`` are the draws of the round after the tree. ``here`` is the decoder in its scenario.
        """
        self.here, self.draft, self.prefix, self.items = here, draft, prefix, list(items)
        self.fault, self.example, self.last, self.end, self.method = "", "", "", "", ""
        self.one_coin = False
        """Whether a coin was read that tests all siblings."""
        self.lines, self.unsure = set[str](), False

    def words(self, emitted: Tokens) -> tuple[str, str]:
        """Return the description of a round that emits ``emitted``, and its first fault, or ""."""
        said: list[str] = []
        nodes: tuple[int, ...] = (-1,)
        for depth, token in enumerate(emitted):
            text = self.prefix + emitted[:depth]
            siblings = children(self.draft.parents, nodes)
            matched = self._matched(text, nodes[0], siblings, token, len(emitted) - depth)
            by_one = matched or self._by_one_coin(text, siblings)
            kept, tests, left = by_one or self._level(text, siblings, token, len(emitted) - depth)
            said += tests
            if kept is None and matched:
                said += self._after_no_child(text, nodes[0], emitted[depth:])
                break
            if kept is None:
                said.append(self._last(text, token, left, rejected=bool(siblings)))
                break
            nodes = (kept,)
        return ", ".join(said), self.fault

    def _matched(
        self, text: Tokens, parent: int, siblings: Sequence[int], token: int, left: int
    ) -> tuple[int | None, list[str], Any] | None:
        """Read the next draw of a round as a token from p, which is accepted if a child of the node has this token.

        A program may do so if each draft is certain under its q. Returns (child with this token or None, words, p).
        Returns None if a draft is not certain, or if the next draw has no known pmf or does not select ``token``.

        Args:
            text: The text at the node.
            parent: The index of the node; -1 for the root.
            siblings: The children of the node.
            token: The next emitted token.
            left: The number of emitted tokens from here on. If there are fewer draws than tokens, a child with
                ``token`` may be accepted without a draw: then the next draw is one from p after this child.
        """
        p_row = self.here.task.target(text)
        item = self.items[0] if self.items and self.items[0].is_lookup else None
        nodes = range(len(self.draft.tokens))
        sure = nodes and all(max(child_pmf(self.draft, node, p_row)) > 1 - NEAR for node in nodes)
        if item is None or not sure:
            return None
        p = [float(mass) for mass in p_row.tolist()]
        by_p = draws_from(item, p, token)
        node = None if by_p else self._node_of_draw(item, token)
        if not by_p and node is None and (not item.pmf or item.outcome != token):
            return None
        kept = next((child for child in siblings if self.draft.tokens[child] == token), None)
        if kept is not None and self._lacks_draws(left) and draws_from(item, self._row_after(kept), token):
            does = f"#{kept} (token {token}) is accepted without a draw"
            ought = f"with probability {short(p[token])}"
            self.example = self.example or f" child {does}, expected {ought}"
            return kept, [f"#{kept} accepted without a draw (expected {ought})"], p
        self.items.pop(0)
        whose = f", which is #{kept}" if kept is not None else ", which is no child" if siblings else ""
        if by_p:
            return kept, [f"drew {token}{whose} (p = {short(p[token])}{f', {item.place}' if item.place else ''})"], p
        does, ought = rows_apart(item.pmf if node is None else self._row_after(node), p)
        row = does if node is None else f"p after #{node} = {does}"
        behind, own = (text, "p") if parent < 0 else (f"#{parent}", f"p after #{parent}")
        place = f" ({item.place})" if item.place else ""
        self.example = self.example or f" the token after {behind} is drawn from {row}{place}, expected {own} = {ought}"
        return kept, [f"drew {token}{whose} (from {row}; expected {own} = {ought})"], p

    def _by_one_coin(self, text: Tokens, siblings: Sequence[int]) -> tuple[int | None, list[str], Any] | None:
        """Read the next draw of a round as one coin for all ``siblings``, which are tested after ``text``.

        Each of the siblings is certain under its q. The coin is compared with the sums of p of their tokens, from the
        first on, and the first larger sum accepts. Returns (accepted child or None, words, remaining residual). Returns
        None if the coin lies below the first sum, as in any test of the first child, or not between these sums.
        """
        item = self.items[0] if self.items and not self.items[0].is_lookup else None
        p_row = self.here.task.target(text)
        p = [float(mass) for mass in p_row.tolist()]
        sums = [*accumulate(p[self.draft.tokens[child]] for child in siblings), 1.0]
        are_certain = all(max(child_pmf(self.draft, child, p_row)) > 1 - NEAR for child in siblings)
        if len(siblings) < LEAST_OF_ONE_COIN or item is None or not are_certain:
            return None
        ends = enumerate(pairwise(sums), 1)
        place = next((i for i, sides in ends if same_row((item.low, item.high), sides, NEAR)), None)
        if place is None:
            return None
        self.items.pop(0)
        self.one_coin = True
        left: Any = p
        for child in siblings[:place]:
            left = list(excess(left, child_pmf(self.draft, child, p_row)))
        gone = " and ".join(f"#{child}" for child in siblings[:place])
        at = f", {item.place}" if item.place else ""
        said = [f"{gone} rejected by one coin (u >= {short(item.low)}{at})"]
        if place == len(siblings):
            return None, said, left
        kept = siblings[place]
        return kept, [*said, f"#{kept} accepted by it (u < {short(item.high)})"], left

    def _after_no_child(self, text: Tokens, parent: int, emitted: Tokens) -> list[str]:
        """Describe a round that goes on from another node although its last token is no child of node ``parent``.

        ``text`` is the text at the node, and ``emitted`` are the tokens of the round from there on. Returns [] if the
        round ends with this token, or if the next draw has the right row or none of the tree.
        """
        token, *others = emitted
        item = self.items[0] if self.items and self.items[0].is_lookup else None
        if not others or item is None or draws_from(item, self._p((*text, token)), others[0]):
            return []
        node = self._node_of_draw(item, others[0])
        if node is None:
            return []
        place = f" ({item.place})" if item.place else ""
        none = f"after token {token}, which no child of {f'#{parent}' if parent >= 0 else 'the root'} has"
        onward = f"{node_named(self.draft, node)}: the next token is drawn from p after #{node}{place}"
        self.example = self.example or f" {none}, the round goes on from {onward}"
        return [f"{none}, goes on from {onward}"]

    def _node_of_draw(self, item: PathDraw, token: int) -> int | None:
        """Return the first node of the tree after which p gives the draw ``item`` of ``token``; None if none does."""
        nodes = range(len(self.draft.tokens))
        return next((node for node in nodes if draws_from(item, self._row_after(node), token)), None)

    def _lacks_draws(self, emitted: int) -> bool:
        """Return whether fewer draws of tokens are left than the ``emitted`` tokens that the round still emits."""
        return sum(item.is_lookup for item in self.items) < emitted

    def _row_after(self, node: int) -> list[float]:
        """Return p after a node of the tree; -1 is the root."""
        return self._p(self.prefix + path_tokens(self.draft, node))

    def _p(self, text: Tokens) -> list[float]:
        return [float(mass) for mass in self.here.task.target(text).tolist()]

    def _level(
        self, text: Tokens, siblings: Sequence[int], token: int, emitted: int
    ) -> tuple[int | None, list[str], Any]:
        """Read the tests of the children ``siblings`` of one node, in a round that emits ``token`` after ``text``.

        ``emitted`` is the number of tokens that the round emits from here on. If more follow ``token``, a child with
        this token was accepted. Returns (accepted child or None, words, remaining residual).
        """
        p_row = self.here.task.target(text)
        p: list[float] = [float(mass) for mass in p_row.tolist()]
        left, said, rejected, passed = p, list[str](), list[int](), list[int]()
        rows = [[float(mass) for mass in child_pmf(self.draft, child, p_row).tolist()] for child in siblings]
        for child, q in zip(siblings, rows, strict=True):
            drafted = self.draft.tokens[child]
            bound = float(ratio(left[drafted], q[drafted]))
            with_p = float(ratio(p[drafted], q[drafted]))
            item = self.items[0] if self.items and not self.items[0].is_lookup else None
            seen = None if item is None else item.bound
            sure = bound > 1 - NEAR or bound < NEAR
            if bound < NEAR and seen is not None and self._may_be_of_later(child, siblings, seen, with_p):
                self.unsure = True
                passed.append(child)
            elif (
                item is not None
                and seen is not None
                and (
                    abs(seen - bound) < NEAR
                    or not sure
                    or abs(seen - with_p) < NEAR
                    or (bound > 1 - NEAR and self._is_test_of(item, seen, child, text, left, accepted=drafted == token))
                )
            ):
                self.items.pop(0)
                self.lines.add(item.place)
                accepted = item.low <= 0
                whose = " or ".join(f"#{other}" for other in (*passed, child))
                said.append(whose + self._test(child, drafted, item, seen, bound, with_p, rejected, accepted=accepted))
                passed.clear()
            else:
                undrawn = drafted == token and emitted > 1 and self._lacks_draws(emitted) and item is None and not sure
                accepted = drafted == token and (bound > 1 - NEAR or (bound < NEAR and with_p > 1 - NEAR) or undrawn)
                if undrawn:
                    said.append(f"#{child} accepted without a draw (expected with probability {short(bound)})")
                elif accepted and bound < NEAR:
                    said.append(f"#{child} accepted surely, as by p (expected: rejected)")
                    self._name(child, drafted, rejected, "surely accepted", _bound(bound))
                else:
                    said.append(f"#{child} {'accepted' if accepted else 'rejected'}")
            if child in passed:
                rejected.append(child)
                left = list(excess(left, q))
                continue
            took = item is not None and (not self.items or self.items[0] is not item)
            tested = seen if took and seen is not None else float(accepted)
            if abs(tested - bound) > NEAR and not self.example and not self.unsure:
                gone = "".join(
                    f" after #{other} (token {self.draft.tokens[other]}) is rejected," for other in rejected[-1:]
                )
                place = f" ({item.place})" if took and item is not None and item.place else ""
                does, ought = apart(tested, bound)
                verb = f"is tested with u < {does}{place}" if took else f"is {'' if accepted else 'not '}accepted"
                rule = f"u < {ought}" if took else _bound(bound)
                if accepted and not took and not sure:
                    verb, rule = "is accepted without a draw", f"with probability {ought}"
                self.example = f"{gone} child #{child} (token {drafted}) {verb}, expected {rule}"
                self.method = "recursive rejection"
            if accepted:
                return child, said, left
            rejected.append(child)
            left = list(excess(left, q))
        return None, said, left

    def _is_test_of(self, item: PathDraw, seen: float, child: int, text: Tokens, left: Row, *, accepted: bool) -> bool:
        """Return whether the coin ``item`` is the test of ``child``, although the rule surely accepts ``child``.

        The result of the coin must agree with ``accepted``, and an earlier test must have the same program line. If the
        coin may as well test another node, the result is False, and ``self.unsure`` is set: later deviations of the
        round are not reported.

        Args:
            item: The coin.
            seen: The bound of the coin.
            child: The node.
            text: The text at its parent.
            left: The residual before the test.
            accepted: Whether the token of ``child`` is emitted.
        """
        if item.place not in self.lines - {""} or accepted != (item.low <= 0):
            return False
        p_row = self.here.task.target(text)
        if not accepted:
            same = children(self.draft.parents, (self.draft.parents[child],))
            if not any(self._gives(seen, other, p_row, (p_row, left)) for other in same if other > child):
                return True
        elif below := children(self.draft.parents, (child,)):
            p_row = self.here.task.target((*text, self.draft.tokens[child]))
            if any(self._gives(seen, other, p_row, (p_row,)) for other in below):
                return False
        else:
            return True
        self.unsure = True
        return False

    def _may_be_of_later(self, child: int, siblings: Sequence[int], seen: float, with_p: float) -> bool:
        """Return whether a coin with the bound ``seen`` may test a later one of ``siblings`` with the same token.

        ``with_p`` is the bound of ``child`` with p in place of the residual, by which the coin would be its test.
        """
        token = self.draft.tokens[child]
        return abs(seen - with_p) < NEAR and any(
            self.draft.tokens[other] == token for other in siblings if other > child
        )

    def _gives(self, seen: float, child: int, p_row: Pmf, rows: Sequence[Row]) -> bool:
        """Return whether min(1, r/q) at the token of ``child`` equals ``seen``, for one of the rows r in ``rows``.

        ``seen`` is the bound of a coin, and q the row from which ``child`` was drawn. ``p_row`` is the row of p at the
        parent of ``child``.
        """
        drafted, q = self.draft.tokens[child], child_pmf(self.draft, child, p_row)
        return any(abs(float(ratio(row[drafted], q[drafted])) - seen) < NEAR for row in rows)

    def _test(
        self, child: int, token: int, item: PathDraw, seen: float, bound: float, with_p: float,
        rejected: Sequence[int], *, accepted: bool,
    ) -> str:  # fmt: skip
        """Describe the test of ``child``, whose token is ``token``, by the coin ``item`` with the bound ``seen``.

        The name of the child stands before the description.
        ``bound`` is the bound that the rule requires, and ``with_p`` the bound with p in place of the residual.
        ``rejected`` are the siblings that were rejected before. ``accepted`` is the result of the test.
        """
        word, sign = ("accepted", "<") if accepted else ("rejected", ">=")
        place = f", {item.place}" if item.place else ""
        if abs(seen - bound) < NEAR:
            return f" {word} (u {sign} {short(seen)}{place})"
        does, ought = apart(seen, bound)
        rule = "min(1, residual/q)" if rejected else "min(1, p/q)"
        by_p = " = p/q" if rejected and abs(seen - with_p) < NEAR else ""
        if by_p:
            at = f" ({item.place})" if item.place else ""
            self._name(child, token, rejected, f"u < {does}{at}", _bound(bound))
        return f" {word} (u {sign} {does}{by_p}{place}; expected {ought} = {rule})"

    def _name(self, child: int, token: int, rejected: Sequence[int], does: str, ought: str) -> None:
        gone = " and ".join(f"#{other}" for other in rejected)
        if self.unsure:
            return
        self.fault = self.fault or (
            f"after child {gone} is rejected, its sibling #{child} (token {token}) is tested with p: {does}, expected "
            f"with the residual norm(max(p - q, 0)): {ought}"
        )

    def _last(self, text: Tokens, token: int, left: Any, *, rejected: bool) -> str:
        """Describe the ``token`` after the last accepted node; ``text`` is the text at this node.

        If a child was ``rejected``, the rule draws the token from the residual ``left``, otherwise from p.
        """
        p = [float(mass) for mass in self.here.task.target(text).tolist()]
        rule = [float(mass) for mass in left] if rejected else p
        word, name = ("replaced by", "residual") if rejected else ("bonus", "p")
        is_token = 0 <= token < len(rule)
        item = self.items[0] if self.items and self.items[0].is_lookup else None
        only = self.items[0] if len(self.items) == 1 and is_token and not self.items[0].pmf else None
        if only is not None and self.one_coin and abs(only.high - only.low - rule[token]) > NEAR:
            by = "the residual" if rejected else "p"
            does, ought = apart(only.high - only.low, rule[token])
            self._name_last(text, f"is {token} with probability {does}", only, f"{ought} by {by}", rejected=rejected)
            self.last = f"with probability {does}; expected {name} = {ought}"
            return f"{word} {token} ({self.last})"
        if item is None or len(item.pmf) != len(rule) or same_row(item.pmf, rule, NEAR):
            return f"{word} {token} ({name} = {short(rule[token])})" if is_token else f"{word} {token}"
        does, ought = rows_apart(item.pmf, rule)
        row = f"p = {does}" if rejected and same_row(item.pmf, p, NEAR) else does
        expected = f"the residual {ought}" if rejected else f"p = {ought}"
        at = f", {item.place}" if item.place else ""
        self.last = f"drawn from {row}{at}; expected {expected}"
        self._name_last(text, f"is drawn from {row}", item, expected, rejected=rejected)
        return f"{word} {token} ({self.last})"

    def _name_last(self, text: Tokens, does: str, item: PathDraw, expected: str, *, rejected: bool) -> None:
        """Store the sentence that the last token, after ``text``, is wrong, unless a test before it is wrong too.

        ``does`` states the token, ``item`` is its draw, and ``expected`` is what the rule requires. ``rejected`` states
        whether a child was rejected before it.
        """
        node = words_of_tokens(text[len(self.prefix) :])
        behind = f"the rejection of the last child{' after ' * bool(node)}{node}" if rejected else node or "the root"
        place = f" ({item.place})" if item.place else ""
        if not self.example and not self.unsure:  # the tests follow the rule
            self.end = self.end or f"the token after {behind} {does}{place}, expected {expected}"


def words_of_tokens(accepted: Tokens) -> str:
    """Return words for accepted tokens, such as "the accepted token 1"; "" if there are none."""
    return f"the accepted token{'s' * (len(accepted) > 1)} {' '.join(map(str, accepted))}" if accepted else ""


def _bound(value: float) -> str:
    return "always rejected" if value < NEAR else "always accepted" if value > 1 - NEAR else f"u < {short(value)}"
