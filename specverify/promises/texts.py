"""Compare the text that an engine returns with its tokens, whole or in a stream, and the reason why it ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from specverify.promises.known_values import PLAIN, Kind, KnownValues, WrongValue, compare_plain
from specverify.subjects.answering import Value
from specverify.subjects.beside import Answer

SAME_REASONS: Final = (
    frozenset({"stop", "eos", "eos_token", "end"}),
    frozenset({"length", "max_tokens", "max_length"}),
)
_TEXTS: Final = ("text", "chunks", "snapshots")


def _last(snapshots: Any) -> Any:
    if not isinstance(snapshots, list | tuple):
        return snapshots
    return snapshots[-1] if snapshots else ""


WHOLE_TEXT_OF: Final[Mapping[str, Callable[[Any], Any]]] = {
    "chunks": lambda chunks: "".join(map(str, chunks)),
    "snapshots": _last,
}
"""Name of a stream's value -> the function that returns its whole text, wherever the stream is cut."""


def _text_of(answer: Answer, known: KnownValues, names: Sequence[str]) -> str | None:
    """Return the right text of an answer, or None if it is not known.

    ``names`` are values that contain the text, such as "text" and "chunks". If the promise for one of them is a
    function, this function computes the text from the tokens. Otherwise the text is the first of these values that the
    call without speculation returns with the same tokens.
    """
    for name in names:
        kind = known.promises.get(name)
        if callable(kind):
            return str(kind(answer.new))
    values = known.plain.get(answer.new, {})
    for name in names:
        if name in values and values[name].value is not None:
            given = values[name].value
            return given if isinstance(given, str) else "".join(given) if name == "chunks" else given[-1]
    return None


def compare_text(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of ``value``, the text of an answer or its parts; None if there is none.

    ``name`` is "text", "chunks" of a stream, or "snapshots", each of which must extend the one before. The value must
    give the right text, from ``known`` or from the returned text. If no right text is known, only snapshots are
    examined. Return None if the answer goes on beyond the horizon. ``kind``, the promise, is not used.
    """
    if answer.length != len(answer.new):
        return None  # it goes on behind the horizon
    if name == "snapshots":
        for before, after in itertools.pairwise(value.value):
            if not after.startswith(before):
                return WrongValue(f"the stream withdraws text that it has sent: {before!r} is followed by {after!r}")
    result = WHOLE_TEXT_OF[name](value.value) if name in WHOLE_TEXT_OF else value.value
    wanted = _text_of(answer, known, (name, *_TEXTS))
    if wanted is None and name != "text" and "text" in answer.values:
        wanted = answer.values["text"].value
    if wanted is None or result == wanted:
        return None
    what = {"text": "the text is", "chunks": "the chunks of the stream add up to", "snapshots": "the stream ends with"}
    return WrongValue(f"{what[name]} {result!r}, expected {wanted!r}: {_part_that_differs(result, wanted)}")


def _part_that_differs(found: str, wanted: str) -> str:
    if wanted.startswith(found):
        return f"the end {wanted[len(found) :]!r} is lost"
    if found.startswith(wanted):
        return f"{found[len(wanted) :]!r} is after its end"
    at = next(i for i, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other)
    return f"they differ from character {at + 1} on"


def compare_finish(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of ``value``, the reason why the text of ``answer`` ends; None if there is none.

    If no reason is promised by a function or known from the call without speculation (``known``), the reason follows
    from the tokens: the text ends with an end-of-sequence token, or it has the requested length. If both are so, any
    reason is right. ``kind`` is the promise about the value called ``name``.
    """
    if callable(kind) or kind == PLAIN or known.plain.get(answer.new, {}).get(name):
        return compare_plain(name, kind, value, answer, known)
    facts = known.facts
    if facts is None or not facts.horizon:
        return None
    ended, full = bool(set(answer.new) & set(facts.ends)), len(answer.new) >= facts.horizon
    if ended == full:
        return None  # both are so
    expected = SAME_REASONS[0 if ended else 1]
    if str(value.value).lower() in expected:
        return None
    why = (
        f"ends with the end-of-sequence token {answer.new[-1]}"
        if ended
        else f"has the {facts.horizon} requested tokens"
    )
    return WrongValue(
        f"the finish reason is {value.value!r}, and the text {why}: expected {min(expected, key=len)!r} or the like"
    )
