"""Explain the law of the first wrong token of an engine by the row and the draws that the token comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from specverify.checks.explaining.counterexample_parts import NEAR, NEAR_LAW, or_none
from specverify.checks.explaining.engine_paths import (
    KeptPaths,
    PathDraw,
    describe_draws,
    draw_that_decides,
    drawn_together,
    is_drawn_from_q,
    is_test_of,
    with_pmfs,
)
from specverify.checks.explaining.engine_rounds import model_of_law
from specverify.checks.explaining.first_difference import CERTAIN, END, Difference
from specverify.checks.explaining.round_rules import other_in_one_token, same_row
from specverify.checks.explaining.row_names import not_excluded
from specverify.checks.explaining.token_rules import name_of_token
from specverify.checks.explaining.wording import after_new, ends_of, short_row
from specverify.laws.draws import Decision
from specverify.reference import Pmf, Tokens
from specverify.subjects.subject import Trace

_MOST_TEXTS = 500
"""The largest number of texts at which an observed row is compared with the expected one."""


class HeaviestPaths(NamedTuple):
    """The most probable paths of an engine (``engine``), with the decisions and the draws on each of them.

    ``expected`` is the right law of the new tokens. ``cells`` is a cache of the intervals in which uniforms lie.
    """

    engine: KeptPaths
    expected: Mapping[Tokens, Any]
    """The expected law of the new tokens."""
    decisions: Sequence[Sequence[Decision]]
    """For each path, its decisions in order: outcomes of draws, and answers to comparisons."""
    drawn: Sequence[Sequence[PathDraw]]
    """For each path, its draws in order. All comparisons of one uniform are merged into one draw."""
    cells: dict[tuple[int, ...], Any]
    """Outcomes before a draw -> intervals in which its uniform can lie; filled by the first ``with_pmfs``."""


def explain_token(
    difference: Difference, rows: Mapping[Tokens, Mapping[str, Pmf]], heaviest: HeaviestPaths, size: int, read: str
) -> str:
    """Return the sentence that explains the law of the first wrong token; "" if no explanation fits.

    A wrong rule that gives this law comes first, then the sentence ``read``, then the row that the token is drawn from.
    If q is not known, the sentence may also state that draws are missing.

    Args:
        difference: The observed and the expected law of the token.
        rows: Text -> {"p": row, "q": row}. Of a text whose p equals the expected law, the row of q is used.
        heaviest: The most probable paths.
        size: The vocabulary size.
        read: A sentence about the first deviation from the rule on these paths, or "".
    """
    seen, p = ([law.get(token, 0) for token in range(size)] for law in (difference.seen, difference.expected))
    if not size or END in difference.seen or not any(seen):
        return read
    firsts = [items[0].pmf for items in heaviest.drawn if items and items[0].pmf]
    q: Sequence[Any] = firsts[0] if firsts and not difference.before else ()
    known = False
    for text, row in rows.items():
        if difference.before == text[len(text) - len(difference.before) :] and same_row(row["p"].tolist(), p, NEAR):
            q, known = row["q"].tolist(), True
            break
    named = name_of_token(seen, p, q) if q else ""
    if named or read:
        return named or read
    by_row = _row_of_token(heaviest, difference.before, seen, p)
    return by_row or ("" if known or q else _too_few_draws(heaviest, difference.before, seen, p))


def _row_of_token(heaviest: HeaviestPaths, before: Tokens, seen: Sequence[Any], p: Sequence[Any]) -> str:
    """Return a sentence that names the row from which the token after ``before`` is drawn; the expected row is ``p``.

    ``seen`` is the observed law of the token. Returns "" if the row has no name, or if ``quoted_row`` finds no draw.
    """
    said = _quoted(heaviest, before, seen, p)
    if said and _is_from_q(heaviest, seen, p):
        at = _place_of(heaviest, before, seen, p)
        from_q = f"the token after accepted drafts, new token {len(before) + 1}, is drawn from q = {short_row(seen)}"
        return f"{from_q} at {at}, expected p = {short_row(p)}"
    other = other_in_one_token(seen, p, NEAR_LAW) if said else None
    odds = ""
    if other in before:
        counted = "counted it too often" if seen[other] < p[other] else "did not count it"
        odds = f": other odds of token {other} alone, which is new token {before.index(other) + 1}, as if a penalty "
        odds += counted
    more = not_excluded(seen, p) if said else ""
    return f"{said}{odds}" + (f": p with {more.rstrip(',')}" if more else "") if odds or more else ""


def quoted_row(difference: Difference, heaviest: HeaviestPaths, size: int) -> str:
    """Return the sentence with the row from which the first wrong token is drawn, and the line of the draw.

    It names no cause. Returns "" if no draw on the paths ``heaviest`` has the observed law of the token, or if the
    token is certain, because too many draws have such a law. ``size`` is the vocabulary size.
    """
    seen, p = ([law.get(token, 0) for token in range(size)] for law in (difference.seen, difference.expected))
    return _quoted(heaviest, difference.before, seen, p) if any(seen) and END not in difference.seen else ""


def _quoted(heaviest: HeaviestPaths, before: Tokens, seen: Sequence[Any], p: Sequence[Any]) -> str:
    at = _place_of(heaviest, before, seen, p) if max(seen) < CERTAIN else ""
    other = _other_text(heaviest.expected, before, seen) if at else None
    row = short_row(seen) if other is None else f"{short_row(seen)} = p {after_new(other) or 'after the prompt'}"
    said = f"new token {len(before) + 1} is drawn from {row} at {at}, expected p = {short_row(p)}"
    return said if at else ""


def _other_text(expected: Mapping[Tokens, Any], before: Tokens, seen: Sequence[Any]) -> Tokens | None:
    """Return the new tokens other than ``before`` after which the expected law of the next token is ``seen``.

    None if there are none, or several. Of several, those are taken that are as many as ``before``, if they are the only
    ones. ``expected`` is the expected law of texts.
    """
    model = model_of_law(expected, len(seen))
    texts = {text[:length] for text in islice(expected, _MOST_TEXTS) for length in range(len(text))} - {before}
    fitting = [text for text in texts if same_row(model(text).tolist(), seen, NEAR_LAW)]
    alike = [text for text in fitting if len(text) == len(before)]
    found = alike if len(alike) == 1 else fitting
    return found[0] if len(found) == 1 else None


def _place_of(heaviest: HeaviestPaths, before: Tokens, seen: Sequence[Any], p: Sequence[Any]) -> str:
    """Return the program line of the draw from the row ``seen`` that decides the token after ``before``.

    Returns "" if on any of the paths another draw decides this token, such as the coin of a draft, or if this one is
    the draw of a draft, tested with p/q; ``p`` is the expected row.
    """
    places = []
    for decisions, items in zip(heaviest.decisions, heaviest.drawn, strict=True):
        at = draw_that_decides(heaviest.engine, decisions, len(before) + 1)
        if at is None or not same_row(items[at].pmf, seen, NEAR):
            return ""
        if any(is_test_of(test, items[at], p) for test in items[at + 1 : at + 2]):
            return ""
        places.append(items[at].place)
    return next(filter(None, places), "")


def draft_of_other_text(difference: Difference, trace: Trace, drawn: Sequence[PathDraw]) -> str:
    """Return the sentence that the first wrong token is drawn from q after another text; "" if this is not shown.

    The path with the queries ``trace`` and the draws ``drawn`` must have the wrong token and one draw alone that gives
    it. The row of this draw must be that of q after one queried text, as long as the right one.
    """
    prompt, new = trace.texts[0]
    text = prompt + difference.before
    excess = {token: mass - difference.expected.get(token, 0) for token, mass in difference.seen.items()}
    token = max(excess, key=excess.__getitem__, default=END)
    draws = [item for item in drawn if item.outcome == token and item.pmf and max(item.pmf) < CERTAIN]
    if trace.draft is None or new[: len(difference.before) + 1] != (*difference.before, token) or len(draws) != 1:
        return ""
    fitting = {
        asked
        for asked in trace.asked("draft")
        if len(asked) == len(text) and same_row(draws[0].pmf, trace.draft(asked).tolist(), NEAR)
    }
    if len(fitting) != 1 or text in fitting or max(difference.expected.values()) >= CERTAIN:
        return ""
    at = f" ({draws[0].place})" if draws[0].place else ""
    said = (
        f"new token {len(difference.before) + 1} is a draft that is drawn from q after ({ends_of(fitting.pop())}){at}"
    )
    return f"{said}, but it follows ({ends_of(text)})"


def _is_from_q(heaviest: HeaviestPaths, seen: Sequence[Any], p: Sequence[Any]) -> bool:
    return bool(or_none(is_drawn_from_q, heaviest.engine, seen, p, heaviest.cells))


def _too_few_draws(heaviest: HeaviestPaths, before: Tokens, seen: Sequence[Any], p: Sequence[Any]) -> str:
    """Return the sentence that a program makes too few draws for its first tokens; "" if it makes enough.

    The tokens are ``before`` and the one after them, which is the first wrong one; ``seen`` and ``p`` are its observed
    and its expected law. A token that is certain in the expected law, given those before it, needs no draw, and each
    other token needs one. Only the first path of ``heaviest`` is examined.
    """
    number = len(before) + 1
    needed = sum(_is_open(heaviest.expected, before[:i]) for i in range(number))
    for decisions in heaviest.decisions[:1] if max(p) < CERTAIN else ():
        items = or_none(drawn_together, heaviest.engine, decisions, number) or ()
        count = sum(item.is_lookup for item in items)
        if not 0 < count < needed:
            continue
        if max(seen) >= CERTAIN:
            token = seen.index(max(seen))
            return f"new token {number} is {token} without a draw, expected a draw from p = {short_row(p)}"
        with_rows = with_pmfs(heaviest.engine, items, len(p), heaviest.cells)
        draws = f"{count} token{'s' * (count > 1)} ({describe_draws(with_rows)})"
        wanted = "a draw for each" if needed == number else f"{needed}, as the others are certain"
        return f"{number} new tokens come from the draws of {draws}, expected {wanted}"
    return ""


def _is_open(law: Mapping[Tokens, Any], before: Tokens) -> bool:
    """Return whether ``law``, a law of texts, has several possible next tokens or ends after ``before``."""
    at = len(before)
    return len({text[at : at + 1] for text, mass in law.items() if mass and text[:at] == before}) > 1
