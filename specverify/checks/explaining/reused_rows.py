"""Explain a wrong token of a greedy engine by a row of p that the engine computed after another text.

Such an engine stores rows under a key of the text, for example the length and the last tokens. If two texts have the
same key, the second text gets the row of the first. The recorded queries show for which texts no row was computed. A
key is an explanation if it gives the emitted token after each of these texts. The key itself is not named, because
other keys may fit as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from specverify.base.prefixes import begins, common_length
from specverify.checks.explaining.wording import SHOWN_TOKENS, ends_of, listed
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.subject import Trace

REUSED = "a row of p is used "
"""The beginning of a sentence about a row that was computed after another text."""
LONGEST_KEY = 16
"""The largest number of last tokens in a key."""
LEAST_TEXTS = 3
"""The number of texts without a query that must agree with a key before the key is named."""

Key = Callable[[Tokens], Hashable]


def _keys() -> Sequence[Key]:
    keys: list[Key] = [len]
    for count in range(1, LONGEST_KEY + 1):
        keys.append(lambda text, count=count: text[-count:])  # type: ignore[misc]
        keys.append(lambda text, count=count: (len(text), text[-count:]))  # type: ignore[misc]
    return keys


KEYS = _keys()
"""Keys by which an engine may find a stored row."""


def reused_row(trace: Trace, index: int, wrong: int) -> str:
    """Return the sentence that new token ``wrong`` of request ``index`` comes from a row of p of another text.

    ``wrong`` is the index of the token. Returns "" if the engine computed p for this token, or computed p after a text
    that belongs to no request. Otherwise the engine may have stored its rows of p under a key, such as the last tokens
    of a text, and used the row of another text with the same key. Each of ``KEYS`` is tried as this key. The sentence
    names the other text only if all keys that reproduce the emitted tokens select the same text. Otherwise it states
    that p is not computed for the token. ``trace`` has the texts and the model queries of the run.
    """
    prompt, new = trace.texts[index]
    asked = list(dict.fromkeys(trace.asked("target")))
    text = prompt + new[:wrong]
    if trace.target is None or text in asked or not asked:
        return ""
    if not all(any(begins(other, first) for first, _ in trace.texts) for other in asked):
        return ""  # p is computed after texts that belong to no request
    missing = {prompt + new[:i]: token for i, token in enumerate(new) if prompt + new[:i] not in asked}
    hits = {_hit(key, asked, text) for key in KEYS if _explains(key, asked, missing, trace.target)}
    other = hits.pop() if len(hits) == 1 else None
    if other is None or len(missing) < LEAST_TEXTS:
        return f"p is not computed after ({ends_of(text)})"
    owners = [i for i, (first, _) in enumerate(trace.texts) if begins(other, first)]
    whose = f" of request {owners[0] + 1}" if len(owners) == 1 and owners[0] != index else ""
    shown = ends_of if ends_of(text) != ends_of(other) else _start
    fact = f"its choice after ({shown(other)}){whose}, {_alike(text, other)}, is this token"
    return f"{REUSED}that was computed after another text: p is not computed after ({shown(text)}); {fact}"


def _alike(text: Tokens, other: Tokens) -> str:
    count = common_length(text[::-1], other[::-1])
    ends = [f"last {count} tokens"] if count else []
    return f"which has the same {listed([*ends, 'length'] if len(text) == len(other) else ends)}"


def _start(tokens: Tokens) -> str:
    return f"{' '.join(map(str, tokens[:SHOWN_TOKENS]))} ..."


def _hit(key: Key, asked: Sequence[Tokens], text: Tokens) -> Tokens | None:
    """Return the text whose row of p a wrong engine would use for ``text``; None if there is none.

    Such an engine stores rows under the key ``key`` of a text, for example its last tokens. The result is the first of
    the queried texts ``asked`` that has the same key as ``text``.
    """
    return next((other for other in asked if key(other) == key(text)), None)


def _explains(key: Key, asked: Sequence[Tokens], missing: Mapping[Tokens, int], target: LanguageModel) -> bool:
    """Return whether an engine that stores rows of p under the key ``key`` would emit the tokens in ``missing``.

    ``asked`` are the queried texts, which must have different keys. ``missing`` maps other texts to the token emitted
    after them: the argmax of ``target`` after the queried text with the same key.
    """
    keys: set[Any] = {key(text) for text in asked}
    if len(keys) < len(asked):
        return False
    for text, token in missing.items():
        other = _hit(key, asked, text)
        if other is None:
            return False
        row = target(other).tolist()
        if row.index(max(row)) != token:
            return False
    return True
