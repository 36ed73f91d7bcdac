"""Read a path as rounds: find which draws are drafts, tests, replacements and bonuses, if the models are known.

A path of an engine is a list of draws without roles. The rule of speculative sampling (2211.17192, Algorithm 1) gives
each role a probability: a draft comes from q, a test compares u with min(1, p/q), a rejected draft is replaced by a
draw from norm(max(p - q, 0)), a bonus comes from p. Of all readings of the draws as rounds, the one with the fewest
deviations from the rule is chosen. A deviation is named if a row of another text, or the row of another role, has
exactly the observed numbers.

Two facts exclude readings. The order of the model queries shows which text the engine works on at a draw, so a draw is
not assigned to a finished round. A line of the program has the roles that it has on most paths (``Models.roles``). This
explains a refutation and refutes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from specverify.checks.explaining.draft_tests import DraftTest
from specverify.checks.explaining.drawn_candidates import are_candidates
from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.readings import UNDRAFTED, UNDRAWN_WORDS, Models, Reading, ReadRound
from specverify.checks.explaining.round_rules import Row, excess, ratio, same_row
from specverify.checks.explaining.row_names import NEAR, RowNames, is_known_row, named_rows, text_difference
from specverify.checks.explaining.wording import short, short_row
from specverify.reference import Tokens

MOST_DRAWS = 24
MOST_DRAFTS = 5
MOST_READINGS = 6000
WORST = 8.0
"""A reading is discarded if its cost exceeds this number and also ``Models.of_each_draw`` times its draws."""
OTHER_DRAFT, OTHER_NUMBER, NO_TEST, LOST, DROPPED = 3.0, 2.0, 2.5, 1.5, 2.75
LIKE_A_COIN, UNDRAWN_TOKEN = 0.1, 3.0
FIRST_BOUND, TIE = 1.0, 1e-9
"""The first bound of the cost in the search for a reading; the largest rounding error of a cost."""
LEFT_OVER = 2.75
"""The cost of a draw after the last round; it exceeds that of a last token drawn from an unknown row."""
UNKNOWN_ROW, UNDRAWN = 0.5, 1.75
"""Costs of a reading: extra cost of a deviation that no known row explains; cost of a draft that is neither drawn nor
tested."""
LATE = 2.0
"""Cost of reading a draw into a round if the order of model queries contradicts it: a longer text was queried before,
or the round's own text was not queried yet."""
PASSED_TEST = 1.0
"""The extra cost of a draft without a test if the next draw is a coin with the probability of its test."""
OTHER_LINE = 1.0
"""The cost of a draw in a role that its line does not have on other paths."""
FROM_P = frozenset({"bonus", "plain"})
"""The roles of a token from p, after the last draft or without a draft; one line often draws both."""
PASSED_OVER = 0.75
"""The cost of a token without a draft although the draft model was queried."""
UNLIKELY = 0.25
"""The cost of a reading that follows the rule in an unusual order."""
LIKE_PLAIN = 2.5 * UNLIKELY
"""The cost of a draft that is drawn from p, if the draft model is unknown: a round without drafts costs less."""
OWN_REPLACEMENT = 3.0
"""The cost of a rejected draft that is its own replacement, without a draw: rather it was drawn to be emitted."""
CHOSEN_DRAFT = "draft {} ({}) is the argmax of q, without a draw, but is tested as if it were drawn from q"


class _DraftReading(NamedTuple):
    """Draws that are read as the drafts of a round.

    ``tokens`` are the drafts, ``q`` the rows that they are drawn from, and ``places`` the program lines of their draws.
    ``next`` is the index of the first draw after them. ``fault`` is the first deviation from the rule, or "". ``cost``
    is the sum of the costs of all deviations and unusual steps.
    """

    tokens: Tokens
    q: tuple[Row, ...]
    next: int
    cost: float = 0.0
    fault: str = ""
    places: tuple[str, ...] = ()
    drawn: bool = False
    """Whether the last draft was drawn, and did not have probability 1."""
    kept: bool = False
    """Whether the first draft is one that an earlier round rejected."""


class _RoundReading(NamedTuple):
    """A round whose last token is not read yet.

    ``text`` is the text before the round, ``drafted`` the drafts of the round, and ``accept`` the acceptance
    probabilities of the tested drafts. Each of the texts ``rejected`` ends in a draft that an earlier round rejected.
    ``cost`` is the sum of the costs of all deviations and unusual steps so far. The other fields become those of
    ``ReadRound``.
    """

    text: Tokens
    drafted: _DraftReading
    rejected: tuple[Tokens, ...]
    cost: float
    below: float
    """The round is discarded if its cost reaches this number."""
    words: tuple[str, ...] = ()
    fault: str = ""
    accept: tuple[float, ...] = ()
    places: tuple[tuple[str, int, str], ...] = ()
    out: Tokens = ()
    """The emitted tokens so far."""
    structure: str = ""
    dropped: int | None = None
    begin: int = 0

    def is_too_costly(self, more: float = 0.0) -> bool:
        """Return whether the round is discarded if its cost increases by ``more``."""
        return self.cost + more >= self.below

    def record(self, end: str, row: Row, place: str, fault: str) -> ReadRound:
        """Return this round as a finished ``ReadRound``, after its last token has been read.

        ``end`` is the role of the last token, ``row`` the row that this token is drawn from, and ``place`` the program
        line. ``fault`` is the first deviation from the rule, or "".
        """
        drafted = self.drafted
        places = (*self.places, *(("draft", i, at) for i, at in enumerate(drafted.places)))
        last = (end, len(self.accept) - (end == "replace"), place)
        shown = not drafted.kept or any(role == "test" and i == 0 for role, i, _ in self.places)
        return ReadRound(
            self.text, drafted.tokens, drafted.q, self.accept, (end, row), (*places, last), fault, self.structure,
            self.dropped, shown, self.begin,
        )  # fmt: skip


class _Alternative(NamedTuple):
    """One way to read the next draws of a path as a round.

    ``next`` is the index of the first draw after the round, and ``text`` the text after the round. ``words`` describe
    the round. ``cost`` is the sum of the costs of all its deviations from the rule and unusual steps. ``fault`` is the
    first of these deviations, or "". ``used`` are the texts after which the rows of p and q decide the round. ``ended``
    is True if the path has no further round. ``rejected`` has the text that ends in the draft which this round rejects,
    if there is one.
    """

    next: int
    text: Tokens
    words: str
    cost: float
    fault: str = ""
    used: tuple[Tokens, ...] = ()
    ended: bool = False
    rejected: tuple[Tokens, ...] = ()
    round: ReadRound | None = None


def reading_of(drawn: Sequence[PathDraw], models: Models, new: Tokens) -> Reading | None:
    """Read the draws ``drawn`` of a path as rounds that emit the tokens ``new``; None if there is no reading.

    ``models`` has the models and the queries of the path. Too many draws, and several candidates for one position, are
    not read.
    """
    items = [item for item in drawn if item.high - item.low < 1 - NEAR]
    if len(items) > MOST_DRAWS or any(not _is_readable(item) for item in items):
        return None
    moments = [at for at, _, _ in models.queries]
    if any(are_candidates(one, other, moments) for one, other in combinations(items, 2)):
        return None  # candidates for one position, and not a chain
    if _drafts_twice(items, models):
        return None
    return _PathReader(items, models, models.prompt + new).best_reading()


def _drafts_twice(items: Sequence[PathDraw], models: Models) -> bool:
    """Return whether two of the draws ``items`` are drafts for the same position, as in a program with several chains.

    Such draws have the same row, and before each the draft model is queried with the same text. ``models`` has the
    queries.
    """
    drafted: list[tuple[int, Tokens, Row]] = []
    for item in items:
        asked = (
            (i, text) for i, (at, name, text) in enumerate(models.queries) if name == "draft" and at <= len(item.before)
        )
        number, text = max(asked, default=(-1, ()))
        if number < 0 or not item.pmf or same_row(item.pmf, _floats(models.p(text)), NEAR):
            continue
        for i, other, row in drafted:
            if i != number and text == other and same_row(item.pmf, row, NEAR):
                return True
        drafted.append((number, text, item.pmf))
    return False


def _floats(row: Any) -> list[float]:
    return [float(mass) for mass in row.tolist()]


def _is_readable(item: PathDraw) -> bool:
    if item.together:
        return False
    if item.is_lookup:
        return (item.outcome is not None and len(item.pmf) > 1) or len(item.widths) > 1
    return item.low <= 0 or item.high >= 1 or len(item.widths) > 1


class _PathReader:
    """Search for the reading of one path that has the lowest cost.

    A reading divides the draws of the path into rounds, and gives each draw a role: draft, test, replacement or bonus.
    Each deviation from the rule of speculative sampling has a cost, and so has each unusual step. The cost of a reading
    is the sum of these costs.
    """

    def __init__(self, items: Sequence[PathDraw], models: Models, final: Tokens) -> None:
        """Prepare the search for readings of one path: descriptions of its draws as rounds, with a role for each draw.

        ``items`` are the draws of the path, without draws whose outcome is certain. ``models`` has the models and the
        queries to them. ``final`` is the text at the end of the path, with the prompt.
        """
        self.items, self.models, self.final = items, models, final
        self.readings = 0
        self.worst = max(WORST, models.of_each_draw * len(items))
        self._best: dict[tuple[int, Tokens, tuple[Tokens, ...]], tuple[float, Reading | None]] = {}
        self.end = len(models.prompt) + models.horizon
        self.size = len(models.p(models.prompt))
        self.rows = RowNames(models.p, models.q, models.prompt, models.asked, self.size)
        own = [query for query in models.queries if query[2][: len(models.prompt)] == models.prompt]
        self.without_coins = all(item.is_lookup for item in items)  # a draft may then be rejected without a test
        self.asks_draft = any(name == "draft" for _, name, _ in own)
        counted = [query for query in own if query[1] == "draft" or not self.asks_draft]
        starts = [len(item.before) for item in items]
        self.longest = [max((len(text) for at, _, text in counted if at <= start), default=0) for start in starts]
        self.first: dict[tuple[str, Tokens], int] = {}
        self.order: dict[tuple[str, Tokens], int] = {}
        self.of_target = [number for number, (_, name, _) in enumerate(own) if name == "target"]
        for number, (moment, name, text) in enumerate(own):
            self.first.setdefault((name, text), moment)
            self.order.setdefault((name, text), number)

    def best_reading(self) -> Reading | None:
        """Return the reading of the whole path that has the lowest cost; None if no reading is found.

        A reading describes the draws as rounds, and its cost is the sum of the costs of its deviations from the rule.
        At first only readings whose cost is less than a small bound are searched, because there are few. If none is
        found, the bound is doubled, unless there were more readings than could be searched.
        """
        below = min(FIRST_BOUND, self.worst)
        while True:
            self.readings = 0
            reading = self._read(0, self.models.prompt, (), below)
            if reading is not None or below >= self.worst or self.readings > MOST_READINGS:
                return reading
            below = min(2 * below, self.worst)

    def _read(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], below: float) -> Reading | None:
        """Return the reading of the draws from index ``at`` on, as rounds after ``text``, that has the lowest cost.

        ``text`` has the prompt and the tokens of the earlier rounds. Each of the texts ``rejected`` ends in a draft
        that an earlier round rejected. Returns None if no reading with a cost less than ``below`` is found. The cost of
        a reading is the sum of the costs of its deviations from the rule.
        """
        if len(text) >= len(self.final) and (at == len(self.items) or len(text) >= self.end):
            has_ended = self.models.eos is not None and self.final[-1:] == (self.models.eos,)
            short_of = len(self.final) < self.end and not has_ended
            said = "the text ends here" if short_of else ""
            left = len(self.items) - at
            return Reading((said,) if said else (), said, (), LOST * short_of + LEFT_OVER * left)
        key = at, text, rejected
        searched, best = self._best.get(key, (0.0, None))
        if best is None and searched < below:
            self._best[key] = math.inf, None  # a round that emits nothing cannot be read
            best = self._search(at, text, rejected, below)
            self._best[key] = below, best
        return best

    def _search(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], below: float) -> Reading | None:
        """Return the interpretation (reading) of the draws from index ``at`` on that has the lowest cost.

        All interpretations of the next round are tried, and the rest of the path after this round is read by ``_read``.
        The parameters and the result are those of ``_read``. The search ends early after ``MOST_READINGS`` rounds.
        """
        best: Reading | None = None
        for step in self._rounds(at, text, rejected, below):
            self.readings += 1
            if self.readings > MOST_READINGS:
                return best
            most = below if best is None else best.cost
            if step.cost >= most:
                continue
            rest = Reading((), "", (), 0.0)
            if not step.ended:
                following = self._read(step.next, step.text, rejected + step.rejected, most - step.cost + TIE)
                if following is None:
                    continue
                rest = following
            cost = step.cost + rest.cost
            if cost < most:
                rounds = (*filter(None, (step.round,)), *rest.rounds)
                used = step.used + rest.used
                best = Reading((step.words, *rest.words), step.fault or rest.fault, used, cost, rounds)
        return best

    def _next(self, at: int, *, lookup: bool) -> PathDraw | None:
        """Return draw ``at`` if it has the wanted kind, else None; also None after the last draw.

        The wanted kind is a choice of a token from a pmf if ``lookup`` is True, and a coin if it is False.
        """
        item = self.items[at] if at < len(self.items) else None
        return item if item is not None and item.is_lookup == lookup else None

    def _misfit(self, at: int, role: str, longest: int, asked: tuple[str, Tokens] | None = None) -> float:
        """Return the cost of giving draw ``at`` the role ``role``, such as ``draft``; 0 if nothing is unusual.

        The cost is positive if the program line of the draw has other roles on most paths. It is also positive if the
        order of the model queries contradicts the role: a text longer than ``longest`` tokens was queried before the
        draw, or the query ``asked`` was first made after the draw. ``longest`` is the length of the longest text that
        the round can query. ``asked`` is (model name, text), or None if no query must precede the draw.
        """
        if at >= len(self.items):
            return 0.0
        item = self.items[at]
        roles = self.models.roles.get(item.place or item.call)
        same = FROM_P if role in FROM_P else {role}
        cost = OTHER_LINE * bool(roles and not same & roles)
        if self.longest[at] > longest or (asked and self.first.get(asked, 0) > len(item.before)):
            cost += LATE
        return cost

    def _rounds(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], below: float) -> Iterator[_Alternative]:
        """Yield each way to interpret the draws from index ``at`` on as one round after ``text``.

        Each of the texts ``rejected`` ends in a draft that an earlier round rejected. Each deviation from the rule has
        a cost; ways with a total cost of ``below`` or more may be left out.
        """
        certain = UNLIKELY / 10 if _certain(self.rows.p(text)) is not None and not self.asks_draft else 2 * UNLIKELY
        if len(text) == self.end - 1:
            certain = 0.0  # a last token often has no draft, because no bonus could follow
        alone = _RoundReading(text, _DraftReading((), (), at), rejected, certain, below, begin=at)
        yield from self._without_draft(at, alone)
        for drafted in self._drafts(at, text, rejected, below):
            odd = drafted.fault if drafted.kept else ""
            now = _RoundReading(
                text, drafted, rejected, drafted.cost, below, fault=drafted.fault, structure=odd, begin=at
            )
            yield from self._decided(drafted.next, now)
            if drafted.drawn:
                yield from self._dropped(drafted, now)

    def _without_draft(self, at: int, now: _RoundReading) -> Iterator[_Alternative]:
        """Yield each way to interpret draw ``at`` as a token that is drawn from p in a round without drafts.

        ``now`` is the round as far as it is read.
        """
        text = now.text
        if now.is_too_costly():
            return
        for token, after, cost, said, place in self._token(at, text, self.rows.p(text), "p", now):
            drawn = after > at
            if token == now.dropped and not drawn:
                continue  # then the token comes from the draw that was left out
            more = self._misfit(at, "plain", len(text), ("target", text)) if drawn else 0.0
            more += PASSED_OVER * (("draft", text) in self.first and now.dropped is None)
            fault = now.fault or (said and f"{self._plain_token(now)} is {said}{_in_parentheses(place)}")
            shown = said or f"p = {short(self.rows.p(text)[token])}{place}"
            words = ", ".join([*now.words, f"{UNDRAFTED}{token} ({shown})"])
            row = self._drawn_from(at, text, self.rows.p(text)) if drawn else _sure(token, self.size)
            record = now.record("plain", row, place[2:] if drawn else "", fault)
            yield from self._emitted(
                after, text, (token,), words, now.cost + cost + more, fault, (text,), None, (), record
            )

    def _plain_token(self, now: _RoundReading) -> str:
        """Return the words for the token of round ``now``, which has no drafts: its number and what was rejected.

        If other tokens are between the last rejected draft and this token, the number of the draft is stated.
        """
        prompt = len(self.models.prompt)
        number = len(now.text) - prompt + 1
        if not now.rejected:
            return f"new token {number}"
        last = len(now.rejected[-1]) - prompt
        at = f"at new token {last}" if last < number - 1 else ""
        if len(now.rejected) == 1:
            return f"new token {number}, after a rejected draft{at and f' {at}'},"
        return f"new token {number}, after {len(now.rejected)} rejected drafts{at and f', the last {at}'},"

    def _dropped(self, drafted: _DraftReading, kept: _RoundReading) -> Iterator[_Alternative]:
        """Yield each way to interpret a round in which the last draft of ``drafted`` is discarded without a test.

        ``drafted`` are the drafts of the round. ``kept`` is the same round if this draft is not discarded.
        """
        if kept.is_too_costly(DROPPED) or self._may_be_candidate(drafted, kept.text):
            return
        token, number = drafted.tokens[-1], len(drafted.tokens)
        place = f", {drafted.places[-1]}" if drafted.places[-1] else ""
        said = f"drafted {token} (q = {short(drafted.q[-1][token])}{place}), left out without a test"
        wrong = f"draft {number} ({token}) is drawn and left out without a test"
        rest = drafted._replace(tokens=drafted.tokens[:-1], q=drafted.q[:-1], places=drafted.places[:-1])
        fault = drafted.fault or wrong
        now = _RoundReading(
            kept.text, rest, kept.rejected, drafted.cost + DROPPED, kept.below, (said,), fault, structure=wrong,
            dropped=token, begin=kept.begin,
        )  # fmt: skip
        now = now._replace(places=(("draft", number - 1, drafted.places[-1]),))
        if rest.tokens:
            yield from self._decided(drafted.next, now)
        else:
            yield from self._without_draft(drafted.next, now)

    def _may_be_candidate(self, drafted: _DraftReading, text: Tokens) -> bool:
        """Return whether the last draft of ``drafted`` may be one of several candidates for one position.

        A round after ``text`` rightly leaves such a candidate without a test if it accepts another one. The draw before
        or after it is one from the same row, and no query shows that one is drawn after the other.
        """
        row, at = drafted.q[-1], drafted.next
        asked = (text + drafted.tokens[:-1], text + drafted.tokens)
        pairs = zip((at - 2, at), asked, (at - 1, at), strict=True)
        return max(row) < 1 and any(
            0 <= other < len(self.items)
            and self.items[other].is_lookup
            and same_row(self.items[other].pmf, row, NEAR)
            and not self._is_drafted(before, self.items[later])
            for other, before, later in pairs
        )

    def _drafts(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], below: float) -> Iterator[_DraftReading]:
        """Yield each way to interpret the draws from index ``at`` on as the drafts of a round after ``text``.

        Each of the texts ``rejected`` ends in a draft that an earlier round rejected. A program with a fault may use
        the last of these drafts as the first draft of this round. Each deviation from speculative sampling has a cost;
        only interpretations with a total cost less than ``below`` are yielded.
        """
        open_ones = [_DraftReading((), (), at), *self._kept_draft(at, text, rejected)]
        while open_ones:
            drafted = open_ones.pop(0)
            if drafted.cost >= below:
                continue
            if drafted.tokens:
                yield drafted
            if len(drafted.tokens) < MOST_DRAFTS:
                open_ones += self._one_more(drafted, text)

    def _kept_draft(self, at: int, text: Tokens, rejected: tuple[Tokens, ...]) -> Iterator[_DraftReading]:
        """Yield the first draft of a round after ``text``, read as one that an earlier round produced.

        The draft is either the last rejected one, or was chosen after a text that keeps a rejected draft, where q gives
        it probability 1. No draw produced this draft. Nothing is yielded if no queries are recorded, if q is certain,
        or if draw ``at`` can be a draft. Each of the texts ``rejected`` ends in a draft that an earlier round rejected.
        """
        if not rejected or not self.models.unshown or self.models.q is None or ("draft", text) not in self.first:
            return
        row, token = self.rows.q(text), rejected[-1][-1]
        item = self.items[at] if at < len(self.items) else None
        if _certain(row) is not None or (item and item.token_from(row, NEAR) is not None):
            return
        ahead = {
            made: other for other in self._drafted_after(rejected) if (made := _certain(self.rows.q(other))) is not None
        }
        for made, other in ahead.items():
            whose, does = text_difference(other, text, rejected), short_row(self.rows.q(other))
            said = f"draft 1 is drawn from q after {other}{whose} = {does}, expected q = {short_row(row)}"
            yield _DraftReading((made,), (row,), at, OTHER_NUMBER, said, ("",))
        if token in ahead or not row[token] > 0:
            return
        number, before = (len(one) - len(self.models.prompt) for one in ((*text, token), rejected[-1]))
        said = f"the draft at new token {number} is {token}, which was rejected at new token {before} and kept: it is "
        said += "not drawn from q again"
        yield _DraftReading((token,), (row,), at, OTHER_NUMBER, said, ("",), kept=True)

    def _drafted_after(self, rejected: tuple[Tokens, ...]) -> Iterator[Tokens]:
        """Yield the texts that begin with one of the texts ``rejected`` and with which the draft model is queried."""
        for name, text in self.first:
            if name == "draft" and any(text[: len(other)] == other for other in rejected):
                yield text

    def _one_more(self, drafted: _DraftReading, text: Tokens) -> Iterator[_DraftReading]:
        """Yield the ways to add one draft to the drafts ``drafted`` of a round; ``text`` is the text before the round.

        The added draft is the next draw of the path, or a token that no draw produced.
        """
        here, at = text + drafted.tokens, drafted.next
        item = self.items[at] if at < len(self.items) else None
        known = self.models.q is not None
        row = self.rows.q(here)
        sure = _certain(row) if known else None
        late = LATE if self._is_behind_target(text, here) else 0.0
        if sure is not None and (not self.asks_draft or ("draft", here) in self.first):
            yield self._with(drafted, sure, row, at, late)
        elif item is not None and (token := item.token_from(row, NEAR)) is not None and known:
            cost = self._misfit(at, "draft", len(here), ("draft", here)) + LIKE_A_COIN * (not item.is_lookup) + late
            yield self._with(drafted, token, row, at + 1, cost, place=item.place, drawn=True)
        elif item is not None and item.is_lookup and item.outcome is not None:
            cost = self._misfit(at, "draft", len(here), ("draft", here))
            if not known:
                cost += LATE * self._is_before_last_token(item, text)
                other = here in self.models.learned and not same_row(item.pmf, self.models.learned[here], NEAR)
                like_p = same_row(item.pmf, self.rows.p(here), NEAR)
                cost += OTHER_DRAFT * (other or self._is_no_draft(item, here)) + LIKE_PLAIN * like_p
                yield self._with(drafted, item.outcome, item.pmf, at + 1, cost, place=item.place, drawn=True)
            elif not drafted.fault and drafted.cost < OTHER_DRAFT:
                named = self.rows.row_name(item.pmf, here, ())
                said = f"draft {len(drafted.tokens) + 1} is drawn from {named}, expected q = {short_row(row)}"
                more = cost + OTHER_DRAFT
                yield self._with(drafted, item.outcome, row, at + 1, more, said, item.place, drawn=True)
        elif item is not None and not known and self._may_draw(item):
            cost = LIKE_A_COIN + OTHER_DRAFT * (
                here in self.models.learned and not same_row(item.widths, self.models.learned[here], NEAR)
            )
            cost += self._misfit(at, "draft", len(here), ("draft", here))
            yield self._with(drafted, item.interval, item.widths, at + 1, cost, place=item.place, drawn=True)
        if item is not None and not item.is_lookup and known and self._is_ahead_of_target(item, here):
            yield from self._verified_guess(drafted, here, row, item)
        if not self.asks_draft:
            yield from self._guesses(drafted, here)
        elif known and self.models.greedy and ("draft", here) in self.first and sure is None:
            token = max(range(len(row)), key=row.__getitem__)
            yield self._with(drafted, token, _sure(token, self.size), at, late + UNLIKELY)
            said = f"{CHOSEN_DRAFT.format(len(drafted.tokens) + 1, token)} (q = {short(row[token])}), expected q = 1"
            yield self._with(drafted, token, row, at, late + OTHER_NUMBER, said)

    def _is_ahead_of_target(self, item: PathDraw, here: Tokens) -> bool:
        """Return whether the draft model is queried with ``here`` before the draw ``item``, and the target later."""
        made = len(item.before)
        return self.first.get(("draft", here), made + 1) <= made < self.first.get(("target", here), -1)

    def _verified_guess(
        self, drafted: _DraftReading, here: Tokens, row: Row, coin: PathDraw
    ) -> Iterator[_DraftReading]:
        """Yield the drafts ``drafted`` with one more, which is a guess that the draft model verifies, or replaces.

        A cascade of drafters makes such drafts. A guess, such as an n-gram's, has no draw, so ``coin`` accepts it with
        its probability in ``row``, the pmf q after ``here``. If it is rejected, the draft is drawn from the rest of
        ``row``.
        """
        test = DraftTest(coin, upside_down=False)
        number, after = len(drafted.tokens) + 1, drafted.next + 1
        for guess, mass in enumerate(row):
            if not NEAR < mass < 1 - NEAR or abs(mass - test.probability) > NEAR:
                continue
            if test.accepts:
                yield self._with(drafted, guess, row, after, UNLIKELY, place=coin.place, drawn=True)
                continue
            left: Row = tuple(0.0 if token == guess else other / (1 - mass) for token, other in enumerate(row))
            sure, item = _certain(left), self._next(after, lookup=True)
            if sure is not None:
                yield self._with(drafted, sure, row, after, UNLIKELY, place=coin.place, drawn=True)
            elif item is not None and item.outcome is not None:
                fits = same_row(item.pmf, left, NEAR)
                said = (
                    f"draft {number} is drawn from {self.rows.row_name(item.pmf, here, ())} after the guess {guess} is "
                    f"rejected (u >= q = {short(mass)}{f', {coin.place}' if coin.place else ''}), expected the rest of "
                    f"q = {short_row(left)}"
                )
                cost, fault = (UNLIKELY, "") if fits else (UNLIKELY + OTHER_DRAFT, said)
                yield self._with(drafted, item.outcome, row, after + 1, cost, fault, item.place, drawn=True)

    def _is_no_draft(self, item: PathDraw, here: Tokens) -> bool:
        """Return whether the draw ``item`` of the last token, after ``here``, is no draft.

        No path tests such a token, although one of its outcomes is more probable in the row than in p.
        """
        outcomes = self.models.last_draws.get((item.place, item.before), ()) if len(here) == self.end - 1 else ()
        p = self.rows.p(here) if outcomes else ()
        return any(item.pmf[token] > p[token] + NEAR for token in outcomes)

    def _is_before_last_token(self, item: PathDraw, text: Tokens) -> bool:
        """Return whether the row of the last token of ``text`` is computed after the draw ``item``.

        If so, the program cannot draw a draft after ``text`` by ``item``, because it does not have this token yet.
        """
        return len(text) > len(self.models.prompt) and self.first.get(("target", text[:-1]), 0) > len(item.before)

    def _may_draw(self, item: PathDraw) -> bool:
        """Return whether the comparison ``item`` of a uniform may be a draw of one of two tokens, not a test.

        Returns False if queries are recorded, because they distinguish a draw from a test.
        """
        return not self.models.queries and item.outcome is None and len(item.widths) == self.size

    def _is_behind_target(self, text: Tokens, here: Tokens) -> bool:
        """Return whether the target was queried between two drafts of a round.

        ``text`` is the text before the round, and ``here`` the text before the later draft. The result is True if three
        queries were first made in this order: draft model with ``text``, target with ``text``, draft model with
        ``here``.
        """
        first, target, this = (self.order.get(key, -1) for key in (("draft", text), ("target", text), ("draft", here)))
        return 0 <= first < target < this

    def _is_chained(self, text: Tokens, here: Tokens) -> bool:
        """Return whether the draft model is queried with ``text`` and later with ``here``, without the target between.

        If so, the token after ``here`` is a draft of the round that begins after ``text``. The first query with each
        text counts.
        """
        begin, end = (self.order.get(("draft", asked), -1) for asked in (text, here))
        return 0 <= begin < end and not any(begin < number < end for number in self.of_target)

    def _guesses(self, drafted: _DraftReading, here: Tokens) -> Iterator[_DraftReading]:
        """Yield the drafts ``drafted`` of a round with one more draft, a token that no draw produced.

        ``here`` is the text before the added draft. A draft without a draw has q = 1, so the rule accepts it with
        probability p. If a coin tests the added draft, the target may have been queried with the draft before. If not,
        each token whose p equals the bound of this coin may be the draft. The next token of the final text may be the
        draft too.
        """
        if not self.models.guesses or any(max(row) < 1 for row in drafted.q):
            return
        coin = self._next(drafted.next + self._number_of_tests(drafted, here), lookup=False)
        fitting: list[int] = []
        p = self.rows.p(here)
        if coin is None and _certain(p) is not None:
            return  # as a token of the target would be
        if coin is not None:
            seen = DraftTest(coin, self.models.upside_down).probability
            fitting = [token for token, mass in enumerate(p) if abs(mass - seen) < NEAR]
        queried = () if coin is None else self._queried_after(here, len(coin.before))
        for token in queried or dict.fromkeys((*fitting, *self.final[len(here) : len(here) + 1])):
            yield self._with(drafted, token, _sure(token, self.size), drafted.next, UNLIKELY * (1 + (coin is None)))

    def _number_of_tests(self, drafted: _DraftReading, here: Tokens) -> int:
        """Return how many of the drafts ``drafted`` need a draw for their test; ``here`` is the text after them."""
        begin = len(here) - len(drafted.tokens)
        bounds = (
            float(ratio(self.rows.p(here[: begin + i])[token], drafted.q[i][token]))
            for i, token in enumerate(drafted.tokens)
        )
        return sum(NEAR < bound < 1 - NEAR for bound in bounds)

    def _queried_after(self, here: Tokens, made: int) -> list[int]:
        """Return each token that follows ``here`` in a text with which the target is queried before draw ``made``."""
        longer = {
            text[len(here)]: None
            for (name, text), moment in self.first.items()
            if name == "target" and moment <= made and len(text) > len(here) and text[: len(here)] == here
        }
        return list(longer)

    def _with(
        self, drafted: _DraftReading, token: int, row: Row, after: int, cost: float, fault: str = "", place: str = "",
        *, drawn: bool = False,
    ) -> _DraftReading:  # fmt: skip
        """Return ``drafted`` with the draft ``token`` added; ``cost`` and ``fault`` are those of this draft.

        ``row`` is the row that the draft is drawn from, and ``place`` the program line of its draw. ``after`` is the
        index of the next draw. ``drawn`` states whether a draw produced the draft.
        """
        return _DraftReading(
            (*drafted.tokens, token), (*drafted.q, row), after, drafted.cost + cost, drafted.fault or fault,
            (*drafted.places, place), drawn, drafted.kept,
        )  # fmt: skip

    def _decided(self, at: int, now: _RoundReading) -> Iterator[_Alternative]:
        """Yield each way to interpret the remaining tests and the last token of a round, from draw ``at`` on.

        ``now`` is the round as far as it is read.
        """
        if now.is_too_costly():
            return
        drafted, i, text = now.drafted, len(now.accept), now.text
        if i == len(drafted.tokens):
            yield from self._bonus(at, now)
            return
        here = text + drafted.tokens[:i]
        p, q, token = self.rows.p(here), drafted.q[i], drafted.tokens[i]
        bound = float(ratio(p[token], q[token]))
        line = drafted.places[i]
        inside = f"q = {short(q[token])}{f', {line}' if line else ''}" if q[token] < 1 - NEAR else ""
        word = f"{'kept draft' if drafted.kept and i == 0 else 'drafted'} {token}" + (f" ({inside})" if inside else "")
        if len(text) + i >= self.end:
            test = self._next(at, lookup=False)  # behind the end: what it decides is cut off
            fits = test is None or abs(DraftTest(test, self.models.upside_down).probability - bound) < NEAR
            cost = 0.0 if fits else OTHER_NUMBER
            accepts = [(at + (test is not None), True, cost, "", "", bound)]
        else:
            accepts = list(self._tests(at, here, token, q, now))
        for after, accepted, cost, told, wrong, value in accepts:
            drawn = after > at and len(text) + i < self.end
            begun = ("draft", text)
            more = cost + (self._misfit(at, "test", len(text) + len(drafted.tokens), begun) if after > at else 0.0)
            said = f"{word}, {'accepted' if accepted else 'rejected'}{f' ({told})' if told else ''}"
            first = now.fault or (f"draft {i + 1} ({token}) is {wrong}" if wrong else "")
            places = (*now.places, ("test", i, self.items[at].place)) if drawn else now.places
            then = now._replace(
                cost=now.cost + more, words=(*now.words, said), fault=first, accept=(*now.accept, value), places=places
            )
            if not accepted and after > at and self._is_drafted(text + drafted.tokens, self.items[at]):
                then = then._replace(cost=then.cost + UNLIKELY / 5)
            if accepted:
                then = then._replace(out=(*now.out, token))
            yield from self._decided(after, then) if accepted else self._replaced(after, then, p, q)

    def _is_drafted(self, text: Tokens, test: PathDraw) -> bool:
        """Return whether the draft model is queried with ``text`` before the draw ``test``.

        If so, the token after ``text`` is one more draft of the round.
        """
        return self.first.get(("draft", text), len(test.before) + 1) <= len(test.before)

    def _replaced(self, at: int, now: _RoundReading, p: Row, q: Row) -> Iterator[_Alternative]:
        """Yield each way to interpret draw ``at`` as the token that replaces the rejected draft of a round.

        ``now`` is the round as far as it is read. ``p`` and ``q`` are the rows of the target and the draft model for
        the rejected draft.
        """
        text, drafts, i = now.text, now.drafted.tokens, len(now.accept) - 1
        here, gone = text + drafts[:i], ((*text, *drafts[: i + 1]),)
        for new, last, cost, row, place in self._token(at, here, excess(p, q), "norm(max(p - q, 0))", now):
            drawn = last > at
            itself = OWN_REPLACEMENT if new == drafts[i] else 0.0
            more = self._misfit(at, "replace", len(text) + len(drafts)) if drawn else itself
            shown = f"replaced by {new}" + (f" ({row})" if row else f" ({place[2:]})" if place else "")
            fault = now.fault or (row and f"a rejected draft is replaced by a token {row}{_in_parentheses(place)}")
            used = tuple(text + drafts[:k] for k in range(i + 1))
            seen = self._drawn_from(at, here, excess(p, q)) if drawn else self._certainly(new, at)
            then = now._replace(cost=now.cost + cost + more, words=(*now.words, shown), fault=fault)
            record = then.record("replace", seen, place[2:], fault)
            words = ", ".join(then.words)
            yield from self._emitted(last, text, (*now.out, new), words, then.cost, fault, used, None, gone, record)
            if now.structure:
                continue
            kept = f"the rejected draft {i + 1} ({drafts[i]}) is emitted, and its replacement after it"
            emitted = (*now.out, drafts[i], new)
            words, fault, more = f"{words}, but {drafts[i]} is emitted too", now.fault or kept, then.cost + DROPPED
            inside = len(text) + len(emitted) <= self.end
            seen_in_text = inside or (drawn and bool(self.models.queries))  # else its draw may be another token's
            record = record._replace(fault=fault, structure=kept, shown=seen_in_text)
            if seen_in_text or (self.models.unshown and not drawn):
                yield from self._emitted(last, text, emitted, words, more, fault, used, None, gone, record)
            if i + 1 < len(drafts):
                line = next((at for role, k, at in now.places if (role, k) == ("test", i)), "")
                wrong = (
                    f"the round goes on with draft {i + 2} (token {drafts[i + 1]}) after draft {i + 1} (token "
                    f"{drafts[i]}) was rejected{f' ({line})' if line else ''}"
                )
                on = then._replace(out=(*now.out, new), structure=wrong, fault=now.fault or wrong)
                yield from self._decided(last, on._replace(cost=then.cost + DROPPED))

    def _tests(
        self, at: int, here: Tokens, token: int, q: Row, now: _RoundReading
    ) -> Iterator[tuple[int, bool, float, str, str, float]]:
        """Yield each way to interpret draw ``at`` as the test of a draft, and those without a test of the draft.

        A yielded tuple is (index after the test, whether it accepts, cost, words, fault, P(accept)).

        Args:
            at: The index of the draw.
            here: The text before the draft.
            token: The draft.
            q: The row that the draft is drawn from.
            now: The round as far as it is read. A way that makes the round too costly is left out.
        """
        item, bound = self._next(at, lookup=False), float(ratio(self.rows.p(here)[token], q[token]))
        if item is not None and self._is_before_queries(item, now.text):
            item = None
        fits = False
        if item is not None:
            compared = DraftTest(item, self.models.upside_down)
            seen, late = compared.probability, LATE * self._is_ahead_of_target(item, here)
            if fits := abs(seen - bound) < NEAR:
                yield at + 1, compared.accepts, late, compared.words(), "", seen
            elif not now.is_too_costly(OTHER_NUMBER + late):
                by = self.rows.ratio_name(seen, here, token, now.rejected)
                does, ought = compared.bounds(bound)
                wanted, where = compared.wanted, compared.where
                rows = f"tested with {by}; expected the rows after {here}: {wanted}{does} instead of {ought}{where}"
                plain = f"tested with {wanted}{does}, expected {wanted}{ought} = {compared.rule}{where}"
                told = f"{compared.words(bound)}{f'; this is {by}' if by else ''}"
                cost = late + OTHER_NUMBER + UNKNOWN_ROW * (not by)
                yield at + 1, compared.accepts, cost, told, rows if by else plain, seen
        if bound > 1 - NEAR or bound < NEAR:
            yield at, bound > NEAR, 0.0, "surely" if bound < NEAR else "", "", bound
        elif not now.is_too_costly(min(UNDRAWN, NO_TEST)):
            by = self.rows.ratio_name(1.0, here, token, now.rejected)
            as_by = f", as by {by}" if " after " in by else ""
            guessed = max(q) == 1  # a test that passes surely leaves no draw
            how = "surely, whatever is drawn" if guessed else "with probability 1"
            with_one = " with q = 1, as the draft is certain" if guessed else ""
            expected = f"{how}{as_by}; expected u < {short(bound)} = min(1, p/q){with_one}"
            cost = (UNDRAWN if guessed else NO_TEST) + PASSED_TEST * fits
            yield at, True, cost, expected, f"accepted {expected}", 1.0
            if not guessed and self.without_coins and self.final[len(here) : len(here) + 1] != (token,):
                never = f"with probability 1; expected u < {short(bound)} = min(1, p/q)"
                yield at, False, NO_TEST, never, f"rejected {never}", 0.0

    def _is_before_queries(self, test: PathDraw, text: Tokens) -> bool:
        """Return whether both models are first queried with ``text``, the text before a round, after the draw ``test``.

        If so, the draw tests no draft of the round: neither p nor q of a draft is known before.
        """
        made = len(test.before)
        return all(self.first.get((model, text), made) > made for model in ("target", "draft"))

    def _bonus(self, at: int, now: _RoundReading) -> Iterator[_Alternative]:
        """Yield each way to interpret the end of a round whose drafts are all tested: with a bonus token, and without.

        ``at`` is the index of the next draw, and ``now`` is the round as far as it is read.
        """
        text, drafts = now.text, now.drafted.tokens
        here, words = text + drafts, ", ".join(now.words)
        used = tuple(text + drafts[:k] for k in range(len(drafts)))
        if now.out != drafts:  # one was rejected, and those behind it tested all the same
            record = now.record("", (), "", now.fault)
            yield from self._emitted(at, text, now.out, words, now.cost, now.fault, used, None, (), record)
            return
        inside = len(here) < self.end
        none = UNLIKELY if inside and (("draft", here) not in self.first or self._is_chained(text, here)) else 0.0
        alone = now.record("", (), "", now.fault)
        yield from self._emitted(at, text, drafts, words, now.cost + none, now.fault, used, drafts, (), alone)
        for new, after, cost, row, place in self._token(at, here, self.rows.p(here), "p", now):
            more = self._misfit(at, "bonus", len(here)) if after > at else 0.0
            more += PASSED_OVER * (("draft", here) in self.first)
            if not inside:  # behind the end: it is cut off
                more += now.cost + cost
                yield from self._emitted(after, text, drafts, words, more, now.fault, used, None, (), alone)
                continue
            shown = f"bonus {new} ({row or f'p = {short(self.rows.p(here)[new])}{place}'})"
            first = now.fault or (row and f"the bonus token is {row}{_in_parentheses(place)}")
            seen = self._drawn_from(at, here, self.rows.p(here)) if after > at else self._certainly(new, at)
            record = now.record("bonus", seen, place[2:], first)
            yield from self._emitted(
                after, text, (*drafts, new), f"{words}, {shown}", now.cost + cost + more, first, (*used, here), None,
                (), record,
            )  # fmt: skip

    def _token(
        self, at: int, here: Tokens, rule: Row, name: str, now: _RoundReading
    ) -> Iterator[tuple[int, int, float, str, str]]:
        """Yield each way to interpret the token after ``here``: as the outcome of draw ``at``, or without a draw.

        A yielded tuple is (token, index of the next draw, cost, sentence about a wrong row or "", program line).

        Args:
            at: The index of the draw.
            here: The text before the token.
            rule: The row from which the token should be drawn.
            name: The name of this row in sentences.
            now: The round as far as it is read. A way that makes the round too costly is left out.
        """
        rejected = now.rejected
        yield from self._undrawn_token(at, here, rule, name, now)
        item, sure = self.items[at].emitted() if at < len(self.items) else None, _certain(rule)
        if item is None:
            return
        place = f", {item.place}" if item.place else ""
        token = item.token_from(rule, NEAR)
        if token is not None:
            if sure is None:
                yield token, at + 1, LIKE_A_COIN * (not item.is_lookup), "", place
        elif item.is_lookup and len(here) >= self.end:
            yield item.outcome or 0, at + 1, 0.0, "", place
        elif now.is_too_costly(OTHER_NUMBER):
            return
        elif item.outcome is None and (item.is_lookup or self._may_draw(item)):
            yield from self._by_widths(item, at, here, rule, name, rejected)
        elif item.is_lookup and item.outcome is not None:
            named = self.rows.row_name(item.pmf, here, rejected)
            cost = OTHER_NUMBER + UNKNOWN_ROW * (not is_known_row(named))
            yield item.outcome, at + 1, cost, f"drawn from {named}, expected {name} = {short_row(rule)}", place

    def _certain_row_of(self, token: int, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
        """Return the name of the wrong row that explains ``token``, which no draw produced; "" if not exactly one does.

        The wrong row is p after another text than ``here``, the right text, and gives ``token`` probability 1. If not
        exactly one p does so, it is q after a text that the draft model was queried for, and that is not a beginning of
        the final text. Returns "" also if ``token`` is certain in q or in the residual after ``here``. Each of the
        texts ``rejected`` ends in a draft that an earlier round rejected.
        """
        if token in {_certain(self.rows.q(here)), _certain(excess(self.rows.p(here), self.rows.q(here)))}:
            return ""

        def strange(model: str, texts: Sequence[Tokens]) -> list[Tokens]:
            return [text for text in texts if (model, text) in self.first and text != self.final[: len(text)]]

        texts = self.rows.texts(here)
        by_p, by_q = ([text for text in texts if _certain(row(text)) == token] for row in (self.rows.p, self.rows.q))
        for name, fitting in (("p", strange("target", by_p)), ("p", by_p), ("q", strange("draft", by_q))):
            if len(fitting) == 1:
                return f"{name} after {fitting[0]}{self.rows.difference(fitting[0], here, rejected)}"
        return ""

    def _undrawn_token(
        self, at: int, here: Tokens, rule: Row, name: str, now: _RoundReading
    ) -> Iterator[tuple[int, int, float, str, str]]:
        """Yield each way to interpret the token after the text ``here`` as a token that no draw produced.

        Three cases are distinguished: p or the residual gives the token probability 1; it is the last token of the
        path, whose draw the program need not read; or the program chooses it without a draw, which is a deviation. The
        parameters and the yielded tuples are those of ``_token``.
        """
        sure = _certain(rule)
        emitted = self.final[len(here)] if len(here) < len(self.final) else None
        if sure is not None:
            yield sure, at, 0.0, "", ""
            if emitted is not None and emitted != sure and not now.is_too_costly(UNDRAWN_TOKEN):
                row = self._certain_row_of(emitted, here, now.rejected)
                after = f" after {here}" if row and name == "p" else ""
                said = f"drawn from {row or 'another row'}, expected {name}{after} = {short_row(rule)}"
                yield emitted, at, UNDRAWN_TOKEN, said, ""
        elif at == len(self.items) and self.models.open_end and len(here) >= len(self.final) - 1:
            token = emitted if emitted is not None else max(range(len(rule)), key=rule.__getitem__)
            yield token, at, 0.0, "", ""
        elif emitted is not None:
            yield emitted, at, UNDRAWN_TOKEN, f"{UNDRAWN_WORDS}, expected {name} = {short_row(rule)}", ""

    def _drawn_from(self, at: int, here: Tokens, rule: Row) -> Row:
        """Return the row from which draw ``at`` takes its token; () if it is not known.

        If the pmf of the draw is known, it is this row. Otherwise the row is the first known one that fits the
        intervals of the uniform. ``rule``, the right row after ``here``, is compared first.
        """
        item = self.items[at].emitted()
        if item.pmf:
            return item.pmf
        rows = [
            rule,
            *(
                row
                for text in [here, *self.rows.texts(here)]
                for _, row in named_rows(self.rows.p(text), self.rows.q(text))
            ),
        ]
        return next((row for row in rows if item.token_from(row, NEAR) is not None), ())

    def _certainly(self, token: int, at: int) -> Row:
        """Return the one-hot row of ``token``, which seems to have no draw; () if an unread draw may have produced it.

        This is possible only for the last token of a path. ``at`` is the index of the next draw.
        """
        return _sure(token, self.size) if at < len(self.items) or not self.models.open_end else ()

    def _by_widths(
        self, item: PathDraw, at: int, here: Tokens, rule: Row, name: str, rejected: tuple[Tokens, ...]
    ) -> Iterator[tuple[int, int, float, str, str]]:
        """Yield one way to interpret ``item``, a draw without a known pmf, as a draw from a wrong row.

        ``rule`` is the right row. The wrong row is the first known one that fits the intervals of the uniform. If none
        fits, the sentence states the lengths of these intervals. The other parameters and the yielded tuple are those
        of ``_token``.
        """
        place, ought = f", {item.place}" if item.place else "", f"expected {name} = {short_row(rule)}"
        for text in [here, *self.rows.texts(here)]:
            for row_name, row in self.rows.rows_after(text, here):
                token = item.token_from(row, NEAR)
                if token is not None:
                    whose = "" if text == here else f" after {text}{self.rows.difference(text, here, rejected)}"
                    said = f"drawn from {row_name}{whose} = {short_row(row)}, {ought}"
                    yield token, at + 1, OTHER_NUMBER, said, place
                    return
        token = self.final[len(here)] if len(here) < len(self.final) else 0
        whole = len(item.widths) == self.size  # else tokens without an interval are left out
        seen = short_row(item.widths) if whole else f"{', '.join(map(short, item.widths))} of the possible tokens"
        said = f"drawn with the probabilities {seen}, {ought}"
        yield token, at + 1, OTHER_NUMBER + UNKNOWN_ROW, said, place

    def _emitted(
        self, at: int, text: Tokens, new: Tokens, words: str, cost: float, fault: str,
        used: tuple[Tokens, ...], all_accepted: Tokens | None, rejected: tuple[Tokens, ...], record: ReadRound,
    ) -> Iterator[_Alternative]:  # fmt: skip
        """Yield a round that emits ``new`` after ``text``; nothing if the path has other tokens there.

        There is one exception: if the text of the path ends just before the last draft, a last round that accepts all
        drafts is yielded too, as a deviation. ``all_accepted`` are the drafts if all are accepted, else None. ``at`` is
        the index of the next draw. The other parameters become fields of ``_Alternative``.
        """
        after = text + new
        kept = after[: len(self.final)]
        fits = self.final[: len(after)] == kept
        if fits and (len(after) <= len(self.final) or len(self.final) >= self.end):
            yield _Alternative(at, after, words, cost, fault, used, rejected=rejected, round=record)
        elif all_accepted and self.final == after[:-1] and at == len(self.items):
            said = f"the last accepted draft, {after[-1]}, is missing"
            first = fault or f"all drafts of a round are accepted and {said}"
            yield _Alternative(
                at, self.final, f"{words}, but {said}", cost + LOST, first, used, ended=True, round=record
            )


def _in_parentheses(place: str) -> str:
    """Return ``place``, a text like ", file:line", as " (file:line)"; "" stays ""."""
    return f" ({place[2:]})" if place else ""


def _sure(token: int, size: int) -> Row:
    return [float(other == token) for other in range(size)]


def _certain(row: Row) -> int | None:
    most = max(range(len(row)), key=lambda token: row[token])
    return most if row[most] > 1 - NEAR else None
