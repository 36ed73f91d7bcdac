"""A path read as rounds: which draw is a draft, a test, a replacement or a bonus, where the models are known.

A path of an engine is a list of draws without roles. The rule of speculative sampling (2211.17192, Algorithm 1) gives
each role a probability: a draft comes from q, a test compares u with min(1, p/q), a rejected draft is replaced by a
draw from norm(max(p - q, 0)), a bonus comes from p. Of all ways to read the draws as rounds, the one with the fewest
deviations from the rule is taken. A deviation is named if a row of another text, or the row of another role, has
exactly the numbers that were seen.

This explains a refutation and refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_rules import Row, excess, ratio, same_row
from specverify.checks.explaining.wording import apart, short, short_row
from specverify.laws.draws import Decision
from specverify.reference import LanguageModel, Tokens

NEAR = 1e-6
MOST_DRAWS = 24
MOST_DRAFTS = 5
MOST_READINGS = 20_000
WORST = 5.0
"""A reading that deviates more than this says nothing."""
OTHER_DRAFT, OTHER_NUMBER, NO_TEST, LOST = 3.0, 2.0, 2.5, 1.5
UNLIKELY = 0.25
"""A reading that follows the rule, but is not how rounds usually go."""


class Models(NamedTuple):
    """What a path is read with."""

    p: LanguageModel
    q: LanguageModel
    prompt: Tokens
    horizon: int
    asked: tuple[Tokens, ...] = ()
    """The texts that a model was asked about: rows that may have been used in the place of others."""


class Reading(NamedTuple):
    """A path in the words of decoding."""

    words: tuple[str, ...]
    fault: str
    """The first deviation from the rule, or nothing."""
    used: tuple[Tokens, ...]
    """The texts whose rows decide."""
    cost: float


class _Alternative(NamedTuple):
    """A way to read some draws: what follows from the next one on."""

    next: int
    text: Tokens
    words: str
    cost: float
    fault: str = ""
    used: tuple[Tokens, ...] = ()
    ended: bool = False
    rejected: tuple[Tokens, ...] = ()


def items_of_decisions(decisions: Sequence[Decision]) -> list[PathDraw]:
    """Return the draws of a decoder that names them: its flips as coins, the others with their pmfs."""
    items = []
    for number, decision in enumerate(decisions):
        weights = tuple(float(weight) for weight in decision.weights)
        before = tuple(other.outcome for other in decisions[:number])
        name = str(decision.site[0] if decision.site else "a draw")
        if name == "accept" and len(weights) == 2:
            low, high = (0.0, weights[0]) if decision.outcome == 0 else (weights[0], 1.0)
            items.append(PathDraw(name, "", low, high, None, before))
        else:
            items.append(PathDraw(name, "", 0.0, weights[decision.outcome], decision.outcome, before, weights))
    return items


def reading_of(drawn: Sequence[PathDraw], models: Models, new: Tokens) -> Reading | None:
    """Return a path that emits ``new`` as rounds, or None where the draws cannot be read so."""
    items = [item for item in drawn if item.high - item.low < 1 - NEAR]
    if len(items) > MOST_DRAWS or any(not _is_readable(item) for item in items):
        return None
    reader = _PathReader(items, models, models.prompt + new)
    result = reader.read(0, models.prompt, (), 1)
    return result if result is not None and result.cost < WORST else None


def _is_readable(item: PathDraw) -> bool:
    if item.together:
        return False
    if item.is_lookup:
        return item.outcome is not None and len(item.pmf) > 1
    return item.low <= 0 or item.high >= 1


class _PathReader:
    """Reads one path."""

    def __init__(self, items: Sequence[PathDraw], models: Models, final: Tokens) -> None:
        self.items, self.models, self.final = items, models, final
        self.readings = 0
        self._rows: dict[tuple[str, Tokens], Row] = {}
        self._best: dict[tuple[int, Tokens, tuple[Tokens, ...]], Reading | None] = {}
        self.end = len(models.prompt) + models.horizon

    def p(self, text: Tokens) -> Row:
        """Return the row of the target after a text."""
        return self._row("p", self.models.p, text)

    def q(self, text: Tokens) -> Row:
        """Return the row of the draft model after a text."""
        return self._row("q", self.models.q, text)

    def _row(self, name: str, model: LanguageModel, text: Tokens) -> Row:
        if (name, text) not in self._rows:
            self._rows[name, text] = [float(mass) for mass in model(text).tolist()]
        return self._rows[name, text]

    def read(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], number: int) -> Reading | None:
        """Return the best reading of the draws from ``at`` on, ``text`` being what was emitted so far."""
        if len(text) >= len(self.final) and (at == len(self.items) or len(text) >= self.end):
            short_of = len(self.final) < self.end
            said = "the text ends here" if short_of else ""
            left = len(self.items) - at
            return Reading((said,) if said else (), said, (), LOST * short_of + NO_TEST * left)
        key = at, text, rejected
        if key not in self._best:
            self._best[key] = None  # a round that emits nothing cannot be read
            self._best[key] = self._read(at, text, rejected, number)
        return self._best[key]

    def _read(self, at: int, text: Tokens, rejected: tuple[Tokens, ...], number: int) -> Reading | None:
        best: Reading | None = None
        for step in self._rounds(at, text, rejected):
            self.readings += 1
            if self.readings > MOST_READINGS:
                return best
            if best is not None and step.cost >= best.cost:
                continue
            rest = Reading((), "", (), 0.0)
            if not step.ended:
                following = self.read(step.next, step.text, rejected + step.rejected, number + 1)
                if following is None:
                    continue
                rest = following
            cost = step.cost + rest.cost
            if cost < WORST and (best is None or cost < best.cost):
                best = Reading((step.words, *rest.words), step.fault or rest.fault, step.used + rest.used, cost)
        return best

    def _next(self, at: int, *, lookup: bool) -> PathDraw | None:
        item = self.items[at] if at < len(self.items) else None
        return item if item is not None and item.is_lookup == lookup else None

    def _rounds(self, at: int, text: Tokens, rejected: tuple[Tokens, ...]) -> Iterator[_Alternative]:
        """Yield every way to read the next draws as one round."""
        for token, after, cost, said, _ in self._token(at, text, self.p(text), "p", rejected):
            yield from self._emitted(
                after, text, (token,), f"next token {token} ({said or f'p = {short(self.p(text)[token])}'})",
                cost + 2 * UNLIKELY, said and f"a token is drawn without a draft, {said}", (text,), None, (),
            )  # fmt: skip
        for drafts, after, cost, fault in self._drafts(at, text):
            yield from self._decided(after, text, drafts, 0, rejected, cost, [], fault)

    def _drafts(self, at: int, text: Tokens) -> Iterator[tuple[Tokens, int, float, str]]:
        """Yield the drafts that the next draws may be, with the draw behind them."""
        open_ones: list[tuple[Tokens, int, float, str]] = [((), at, 0.0, "")]
        while open_ones:
            drafts, here, cost, fault = open_ones.pop(0)
            if drafts:
                yield drafts, here, cost, fault
            if len(drafts) == MOST_DRAFTS:
                continue
            row = self.q(text + drafts)
            sure = _certain(row)
            if sure is not None:
                open_ones.append(((*drafts, sure), here, cost, fault))
            elif (item := self._next(here, lookup=True)) is not None and item.outcome is not None:
                if same_row(item.pmf, row, NEAR):
                    open_ones.append(((*drafts, item.outcome), here + 1, cost, fault))
                elif not fault and cost == 0:
                    named = self._named_row(item.pmf, text + drafts, ())
                    said = f"draft {len(drafts) + 1} is drawn from {named}, expected q = {short_row(row)}"
                    open_ones.append(((*drafts, item.outcome), here + 1, cost + OTHER_DRAFT, said))

    def _decided(
        self, at: int, text: Tokens, drafts: Tokens, i: int, rejected: tuple[Tokens, ...],
        cost: float, words: list[str], fault: str,
    ) -> Iterator[_Alternative]:  # fmt: skip
        """Yield every way to read the tests from that of draft i on."""
        if cost >= WORST:
            return
        if i == len(drafts):
            yield from self._bonus(at, text, drafts, rejected, cost, words, fault)
            return
        here = text + drafts[:i]
        p, q = self.p(here), self.q(here)
        token, bound = drafts[i], ratio(p[drafts[i]], q[drafts[i]])
        drafted = f"drafted {token}" + (f" (q = {short(q[token])})" if q[token] < 1 - NEAR else "")
        if len(text) + i >= self.end:
            accepts = [(at + (self._next(at, lookup=False) is not None), True, 0.0, "", "")]
        else:
            accepts = list(self._tests(at, here, token, bound, rejected))
        for after, accepted, more, told, wrong in accepts:
            word = "accepted" if accepted else "rejected"
            said = [*words, f"{drafted}, {word}{f' ({told})' if told else ''}"]
            first = fault or (f"draft {i + 1} ({token}) is {wrong}" if wrong else "")
            if accepted:
                yield from self._decided(after, text, drafts, i + 1, rejected, cost + more, said, first)
                continue
            rule, name = excess(p, q), "norm(max(p - q, 0))"
            gone = ((*here, token),)
            for new, last, dearer, row, place in self._token(after, here, rule, name, rejected):
                shown = f"replaced by {new}" + (f" ({row})" if row else "")
                second = first or (row and f"a rejected draft is replaced by a token {row}{place}")
                used = tuple(text + drafts[:k] for k in range(i + 1))
                yield from self._emitted(
                    last, text, (*drafts[:i], new), ", ".join([*said, shown]), cost + more + dearer, second, used, None,
                    gone,
                )  # fmt: skip

    def _tests(
        self, at: int, here: Tokens, token: int, bound: float, rejected: tuple[Tokens, ...]
    ) -> Iterator[tuple[int, bool, float, str, str]]:
        """Yield the draw behind the test, whether it accepts, its cost, its words, and what is wrong with it."""
        item = self._next(at, lookup=False)
        if item is not None:
            accepted = item.low <= 0
            seen, sign = (item.high, "<") if accepted else (item.low, ">=")
            at_place = f", {item.place}" if item.place else ""
            if abs(seen - bound) < NEAR:
                yield at + 1, accepted, 0.0, f"u {sign} {short(seen)}{at_place}", ""
            else:
                does, ought = apart(seen, bound)
                by = self._named_ratio(seen, here, token, rejected)
                told = f"u {sign} {does}{at_place}; expected {ought} = min(1, p/q){f'; this is {by}' if by else ''}"
                where = f" ({item.place})" if item.place else ""
                rows = f"tested with {by}; expected the rows after {here}: u < {does} instead of {ought}{where}"
                plain = f"tested with u < {does}, expected u < {ought} = min(1, p/q){where}"
                yield at + 1, accepted, OTHER_NUMBER, told, rows if by else plain
        if bound > 1 - NEAR or bound < NEAR:
            yield at, bound > NEAR, 0.0, "surely" if bound < NEAR else "", ""
        else:
            by = self._named_ratio(1.0, here, token, rejected)
            as_by = f", as by {by}" if " after " in by else ""
            expected = f"without a test{as_by}; expected u < {short(bound)} = min(1, p/q)"
            yield at, True, NO_TEST, expected, f"accepted {expected}"

    def _bonus(
        self, at: int, text: Tokens, drafts: Tokens, rejected: tuple[Tokens, ...],
        cost: float, words: list[str], fault: str,
    ) -> Iterator[_Alternative]:  # fmt: skip
        """Yield the ways to go on where every draft was accepted."""
        here = text + drafts
        used = tuple(text + drafts[:k] for k in range(len(drafts)))
        inside = len(here) < self.end
        none = UNLIKELY if inside else 0.0
        yield from self._emitted(at, text, drafts, ", ".join(words), cost + none, fault, used, drafts, ())
        for new, after, more, row, place in self._token(at, here, self.p(here), "p", rejected):
            if not inside:  # behind the end: it is cut off
                yield from self._emitted(after, text, drafts, ", ".join(words), cost, fault, used, None, ())
                continue
            shown = f"bonus {new}" + (f" ({row})" if row else f" (p = {short(self.p(here)[new])})")
            first = fault or (row and f"the bonus token is {row}{place}")
            yield from self._emitted(
                after, text, (*drafts, new), ", ".join([*words, shown]), cost + more, first, (*used, here), None, ()
            )

    def _token(
        self, at: int, here: Tokens, rule: Row, name: str, rejected: tuple[Tokens, ...]
    ) -> Iterator[tuple[int, int, float, str, str]]:
        """Yield the token that is drawn next, the draw behind it, the cost, what is wrong with its row, and a place."""
        sure = _certain(rule)
        if sure is not None:
            yield sure, at, 0.0, "", ""
            other = self.final[len(here)] if len(here) < len(self.final) else sure
            if other != sure:
                yield other, at, OTHER_NUMBER, f"drawn from another row, expected {name} = {short_row(rule)}", ""
        elif at == len(self.items):  # the last token of a path need not be looked at
            token = (
                self.final[len(here)] if len(here) < len(self.final) else max(range(len(rule)), key=rule.__getitem__)
            )
            yield token, at, 0.0, "", ""
        item = self._next(at, lookup=True)
        if item is None or item.outcome is None:
            return
        if same_row(item.pmf, rule, NEAR):
            if sure is None:
                yield item.outcome, at + 1, 0.0, "", ""
            return
        if len(here) >= self.end:
            yield item.outcome, at + 1, 0.0, "", ""
            return
        named = self._named_row(item.pmf, here, rejected)
        place = f" ({item.place})" if item.place else ""
        yield item.outcome, at + 1, OTHER_NUMBER, f"drawn from {named}, expected {name} = {short_row(rule)}", place

    def _emitted(
        self, at: int, text: Tokens, new: Tokens, words: str, cost: float, fault: str,
        used: tuple[Tokens, ...], all_accepted: Tokens | None, rejected: tuple[Tokens, ...],
    ) -> Iterator[_Alternative]:  # fmt: skip
        """Yield what is emitted, if the final text has it; a last accepted draft may be missing there."""
        after = text + new
        kept = after[: len(self.final)]
        fits = self.final[: len(after)] == kept
        if fits and (len(after) <= len(self.final) or len(self.final) >= self.end):
            yield _Alternative(at, after, words, cost, fault, used, rejected=rejected)
        elif all_accepted and self.final == after[:-1] and at == len(self.items):
            said = f"the last accepted draft, {after[-1]}, is missing"
            first = fault or f"all drafts of a round are accepted and {said}"
            yield _Alternative(at, self.final, f"{words}, but {said}", cost + LOST, first, used, ended=True)

    def _named_ratio(self, seen: float, here: Tokens, token: int, rejected: tuple[Tokens, ...]) -> str:
        """Return which other rows give this threshold, or nothing; one model's row alone is other, if that does it."""
        p, q = self.p(here), self.q(here)

        def gives(p_row: Row, q_row: Row) -> bool:
            return abs(float(ratio(p_row[token], q_row[token])) - seen) < NEAR

        others = [text for text in self._texts(here) if text != here]
        tries: list[tuple[str, Callable[[Tokens], tuple[Row, Row]]]] = [
            ("p", lambda text: (self.p(text), q)),
            ("q", lambda text: (p, self.q(text))),
            ("p and q", lambda text: (self.p(text), self.q(text))),
        ]
        for name, rows in tries:
            fitting = [text for text in others if gives(*rows(text))]
            if fitting:
                return f"{name} after {fitting[0]}{_whose(fitting[0], here, rejected)}"
        return "q/p" if gives(q, p) else "p alone" if abs(p[token] - seen) < NEAR else ""

    def _named_row(self, seen: Row, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
        """Return a row with the name of what it is, where it is a known one."""
        p, q = self.p(here), self.q(here)
        shown = short_row(seen)
        for name, row in (*_named_rows(p, q), ("max(q - p, 0)", excess(q, p))):
            if same_row(seen, row, NEAR):
                return f"{name} = {shown}"
        for text in self._texts(here):
            for name, row in _named_rows(self.p(text), self.q(text)):
                if same_row(seen, row, NEAR):
                    return f"{name} after {text}{_whose(text, here, rejected)} = {shown}"
        return shown

    def _texts(self, here: Tokens) -> list[Tokens]:
        """Return the texts whose rows may stand for the row after ``here``, the likeliest first."""
        asked = sorted(dict.fromkeys(self.models.asked), key=lambda text: abs(len(text) - len(here)))
        near = [here[:length] for length in range(len(here) - 1, len(self.models.prompt) - 1, -1)]
        return [text for text in dict.fromkeys([*asked, *near]) if text != here and len(text) > 0]


def _named_rows(p: Row, q: Row) -> tuple[tuple[str, Row], ...]:
    return ("p", p), ("q", q), ("norm(max(p - q, 0))", excess(p, q))


def _whose(text: Tokens, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
    """Return what another text is to this one."""
    gone = next((other for other in rejected if text[: len(other)] == other), None)
    if gone is not None:
        return f" (which keeps the rejected draft {gone[-1]})"
    if here[: len(text)] == text:
        return " (an earlier position)"
    return " (a later position)" if text[: len(here)] == here else " (another text)"


def _certain(row: Row) -> int | None:
    most = max(range(len(row)), key=lambda token: row[token])
    return most if row[most] > 1 - NEAR else None
