"""The names of observed rows and ratios, by the known rows that they equal, such as ``q`` or ``p after (0, 1)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specverify.base.positions import has_wrong_position
from specverify.checks.explaining.changed_rows import changed_row
from specverify.checks.explaining.round_rules import Row, excess, other_in_one_token, ratio, same_row
from specverify.checks.explaining.wording import listed, short, short_row
from specverify.reference import LanguageModel, Tokens

NEAR = 1e-6
CLOSE = 1e-5
"""Two factors of odds are taken for equal if their ratio differs from 1 by at most this number."""
LEAST_POSSIBLE = 2
"""The least number of possible tokens of a row whose proportions are compared."""
WITH_OTHER_ODDS = "p with "
"""The beginning of the words for a row that is described by its difference from p, and that may fit by chance."""
MOST_REPLACED = 4
"""The largest number of tokens, side by side, by which a wrong text is described as the right one with others."""
IN_PLACE = " (with token "
"""The beginning of a phrase about a text that differs in its last token."""
WRONG_POSITIONS = " (_: a position that is missing or occurs twice, or an entry of another text)"
"""The phrase about a text in which a forward pass has wrong positions."""


class RowNames:
    """The rows of p and q on one path of a program, and the names of rows that the program may use instead."""

    def __init__(
        self, p: LanguageModel, q: LanguageModel | None, prompt: Tokens, asked: Sequence[Tokens], size: int
    ) -> None:
        """Keep the models ``p`` and ``q`` of the path; ``q`` is None if the draft model is unknown.

        The path begins after ``prompt``. ``asked`` are the texts with which a model was queried, and ``size`` is the
        vocabulary size.
        """
        self._p, self._q, self._prompt, self._asked, self._size = p, q, prompt, asked, size
        self._rows: dict[tuple[str, Tokens], Row] = {}
        self._names: dict[tuple[tuple[Any, ...], Tokens, tuple[Tokens, ...]], str] = {}

    def p(self, text: Tokens) -> Row:
        """Return the row of the target after ``text``."""
        return self._row("p", self._p, text)

    def q(self, text: Tokens) -> Row:
        """Return the row of the draft model after ``text``; zeros if the draft model is not known."""
        return [0.0] * self._size if self._q is None else self._row("q", self._q, text)

    def _row(self, name: str, model: LanguageModel, text: Tokens) -> Row:
        if (name, text) not in self._rows:
            self._rows[name, text] = [float(mass) for mass in model(text).tolist()]
        return self._rows[name, text]

    def difference(self, text: Tokens, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
        """Return words for how ``text``, the text of a wrong row, differs from the right text ``here``.

        If only the last token differs, the words also state whether the last token of ``text`` is the argmax of p. Each
        of the texts ``rejected`` ends in a draft that an earlier round rejected.
        """
        said = text_difference(text, here, rejected)
        if not said.startswith(IN_PLACE):
            return said
        p = self.p(text[:-1])
        most = ", the argmax of p," if p[text[-1]] == max(p) < 1 - NEAR else ""
        return f"{IN_PLACE}{text[-1]}{most} in place of {here[-1]})"

    def ratio_name(self, seen: float, here: Tokens, token: int, rejected: tuple[Tokens, ...]) -> str:
        """Return the formula that gives the observed acceptance probability ``seen`` of a draft; "" if none fits.

        These formulas are tried: min(1, p/q) with p, q or both after another text, q/p, and p. ``here`` is the text
        before the draft ``token``. Each of the texts ``rejected`` ends in a draft that an earlier round rejected.
        """
        p, q = self.p(here), self.q(here)

        def gives(p_row: Row, q_row: Row) -> bool:
            return abs(float(ratio(p_row[token], q_row[token])) - seen) < NEAR

        others = [text for text in self.texts(here) if text != here]
        tries: list[tuple[str, Callable[[Tokens], tuple[Row, Row]]]] = [
            ("p", lambda text: (self.p(text), q)),
            ("q", lambda text: (p, self.q(text))),
            ("p and q", lambda text: (self.p(text), self.q(text))),
        ]
        for name, rows in tries:
            fitting = [text for text in others if gives(*rows(text))]
            if fitting:
                return f"{name} after {fitting[0]}{self.difference(fitting[0], here, rejected)}"
        return "q/p" if gives(q, p) else "p alone" if abs(p[token] - seen) < NEAR else ""

    def row_name(self, seen: Row, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
        """Format the row ``seen``, with the name of the known row that equals it, such as ``q`` or ``p after (0, 1)``.

        ``here`` is the text before the draw. Each of the texts ``rejected`` ends in a draft that an earlier round
        rejected.
        """
        key = tuple(seen), here, rejected
        if key not in self._names:
            self._names[key] = self._name_of_row(seen, here, rejected)
        return self._names[key]

    def _name_of_row(self, seen: Row, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
        p, q = self.p(here), self.q(here)
        shown = short_row(seen)
        if self._asked and here not in self._asked:  # its rows are not computed: they fit by chance
            for text in filter(has_wrong_position, self.texts(here)):
                if same_row(seen, self.p(text), NEAR):
                    return f"p after {text}{self.difference(text, here, rejected)} = {shown}"
        for name, row in (*named_rows(p, q), ("max(q - p, 0)", excess(q, p))):
            if same_row(seen, row, NEAR):
                return f"{name} = {shown}"
        rows = [(text, name, row) for text in self.texts(here) for name, row in self.rows_after(text, here)]
        fitting = [(text, name) for text, name, row in rows if same_row(seen, row, NEAR)]
        if max(seen) > 1 - NEAR and (not self._asked or here in self._asked):  # one token alone fits by chance
            fitting = []
        changed = changed_row(seen, {"p": p, "q": q, "norm(max(p - q, 0))": excess(p, q)}, NEAR)
        if changed and all(" with " in name for _, name in fitting):  # a residual of two texts fits by chance
            return f"{changed} = {shown}"
        for text, name in fitting:
            return f"{name} after {text}{self.difference(text, here, rejected)} = {shown}"
        changed = changed_odds(seen, p, here) or not_excluded(seen, p)
        return f"{WITH_OTHER_ODDS}{changed} = {shown}" if changed else shown

    def rows_after(self, text: Tokens, here: Tokens) -> tuple[tuple[str, Row], ...]:
        """Return (name, row) for the rows that a program may use if it works after ``text`` instead of ``here``.

        The rows are p, q and their residual after ``text``. If the texts differ, there are also the residuals with p
        after one and q after the other.
        """
        p, q = self.p(text), self.q(text)
        mixed = (
            ("norm(max(p - q, 0)) with q", excess(self.p(here), q)),
            ("norm(max(p - q, 0)) with p", excess(p, self.q(here))),
        )
        return (*named_rows(p, q), *(mixed if text != here else ()))

    def texts(self, here: Tokens) -> list[Tokens]:
        """Return texts whose rows a wrong program may use instead of those after ``here``, likely ones first."""
        asked = sorted(dict.fromkeys(self._asked), key=lambda text: abs(len(text) - len(here)))
        near = [here[:length] for length in range(len(here) - 1, len(self._prompt) - 1, -1)]
        return [text for text in dict.fromkeys([*asked, *near]) if text != here and len(text) > 0]


def named_rows(p: Row, q: Row) -> tuple[tuple[str, Row], ...]:
    """Return (name, row) for p, q and their residual."""
    return ("p", p), ("q", q), ("norm(max(p - q, 0))", excess(p, q))


def is_known_row(name: str) -> bool:
    """Return whether ``name``, the formatted row, is that of a row which a program may compute, and not of numbers."""
    return not name.startswith(("(", WITH_OTHER_ODDS))


def changed_odds(seen: Row, right: Row, text: Tokens) -> str:
    """Return words for the factor of the one token whose odds differ between the rows ``seen`` and ``right``.

    A penalty or a bias on one token gives such a row; a penalty may count a token of ``text`` too often, or not count
    it. Returns "" if more than one token differs, if a row excludes a token that the other allows, or if fewer than
    three tokens are possible: then the odds of one token always explain the difference.
    """
    used, ought = ([mass if mass > NEAR else 0.0 for mass in row] for row in (seen, right))
    token = other_in_one_token(used, ought, CLOSE)
    if token is None:
        return ""
    common = next(a / b for other, (a, b) in enumerate(zip(used, ought, strict=True)) if other != token and b > 0)
    factor = seen[token] / right[token] / common
    counted = "counted it too often" if factor < 1 else "did not count it"
    why = f", as if a penalty {counted}," if token in text else ""
    return f"{short(factor)} times the odds of token {token}{why}"


def not_excluded(seen: Row, right: Row) -> str:
    """Return words for the tokens that ``seen`` allows and ``right`` excludes, if the others are in proportion.

    A mask, top-k or top-p that is left out gives such a row. Returns "" if there is no such token, or if ``right``
    allows one token alone, which is in any proportion.
    """
    odds = [a / b for a, b in zip(seen, right, strict=True) if b > NEAR]
    more = [str(token) for token, (a, b) in enumerate(zip(seen, right, strict=True)) if a > NEAR >= b]
    if not more or len(odds) < LEAST_POSSIBLE or min(odds) <= NEAR or max(odds) / min(odds) > 1 + CLOSE:
        return ""
    return f"token{'s' * (len(more) > 1)} {listed(more)}, which no mask excludes,"


def replaced_tokens(text: Tokens, here: Tokens) -> tuple[int, str, str] | None:
    """Return where ``text`` has other tokens than ``here``, which is as long: the index of the first, and both parts.

    Returns None if the lengths differ, and if the part from the first to the last such token has more than
    ``MOST_REPLACED`` tokens.
    """
    differ = [i for i, pair in enumerate(zip(text, here, strict=False)) if pair[0] != pair[1]]
    if len(text) != len(here) or not differ or differ[-1] - differ[0] >= MOST_REPLACED:
        return None
    part = slice(differ[0], differ[-1] + 1)
    return differ[0], " ".join(map(str, text[part])), " ".join(map(str, here[part]))


def text_difference(text: Tokens, here: Tokens, rejected: tuple[Tokens, ...]) -> str:
    """Return words for how ``text``, the text of a wrong row, differs from the right text ``here``.

    ``text`` may have wrong positions, be shorter or longer, keep a rejected draft, have another last token, or be
    unrelated. Each of the texts ``rejected`` ends in a draft that an earlier round rejected. It is kept if the rest of
    ``text`` is the rest of ``here``, with the replacement or without it.
    """
    if has_wrong_position(text):
        return WRONG_POSITIONS
    kept = (
        other[-1]
        for other in rejected
        if text[: len(other)] == other and text[len(other) :] in {here[len(other) :], here[len(other) - 1 :]}
    )
    gone = next(kept, None)
    if gone is not None:
        return f" (which keeps the rejected draft token {gone})"
    apart_by = abs(len(here) - len(text))
    tokens = "token" if apart_by == 1 else f"{apart_by} tokens"
    if replaced := replaced_tokens(text, here):
        first, used, right = replaced
        return f"{IN_PLACE if first == len(here) - 1 else ' (which has '}{used} in place of {right})"
    if here[: len(text)] == text == here[apart_by:]:
        return f" (without the first or the last {tokens})"
    if text in {here[: len(text)], here[apart_by:]}:
        return f" (without the {'last' if here[: len(text)] == text else 'first'} {tokens})"
    return f" (with {apart_by} token{'s' * (apart_by > 1)} more)" if text[: len(here)] == here else " (another text)"
