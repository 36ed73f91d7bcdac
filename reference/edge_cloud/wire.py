"""Messages as one line of JSON, and back. ``SCHEMA`` is the published JSON schema (draft 2020-12) of every message.

Probabilities are preserved: a ``Fraction`` is sent as the string "a/b", a float as its shortest repr, which is read as
the same float64. A tuple and a ``SparsePmf`` become arrays. ``decode`` validates everything, because a row that is no
pmf would bias the output without an error. Both directions are cached, since long samples repeat their rows and
messages. 1.0 and ``Fraction(1)`` are equal but are written differently, so the caches distinguish number types.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from .messages import KINDS, LARGEST_SEED, REASONS, EdgeRequest, Open, Reply, SparsePmf, is_seed

SCHEMA = Path(__file__).with_name("schema.json")
_NAMES = {kind: name for name, kind in KINDS.items()}


def encode(message: EdgeRequest | Reply) -> str:
    """Return the message as one line of compact JSON. Raises ``ValueError`` for a probability that is NaN."""
    fields = {"kind": _NAMES[type(message)], **message._asdict()}
    return "{" + ",".join(f'"{name}":{_text(value)}' for name, value in fields.items()) + "}"


def _text(value: Any) -> str:
    if isinstance(value, SparsePmf):
        return _text_of_row(value, tuple(map(type, (*value.tokens, *value.masses))))
    if isinstance(value, tuple) and any(isinstance(part, SparsePmf) for part in value):
        return "[" + ",".join(map(_text, value)) + "]"
    return _encoder.encode(value)


@lru_cache(maxsize=256)
def _text_of_row(row: SparsePmf, _: tuple[type, ...]) -> str:
    return _encoder.encode(row)


@lru_cache(maxsize=4096)
def decode(text: str) -> Any:
    """Return the message that ``text`` encodes. Raises ``ValueError``, in one sentence, for any other text."""
    body = json.loads(text)
    kind = KINDS.get(str(body.get("kind"))) if isinstance(body, dict) else None
    if kind is None or body.keys() != {"kind", *kind._fields}:
        raise ValueError(f"{text[:60]!r} is not a message, expected one of {', '.join(KINDS)} with exactly its fields")
    message = kind(*(_READERS[name](body[name], name) for name in kind._fields))
    if isinstance(message, Open) and not 0 < message.known == len(message.tokens):
        raise ValueError(
            f"known is {message.known} with {len(message.tokens)} tokens, expected their number, at least 1"
        )
    return message


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_fraction)


def _checked(legal: Callable[[Any], bool], wanted: str, value: Any, name: str) -> Any:
    if not legal(value):
        raise ValueError(f"{name} is {value!r}, expected {wanted}")
    return value


def _mass(value: Any, name: str) -> Any:
    exact = isinstance(value, str) and len(parts := value.split("/")) == 2 and all(p.isdecimal() for p in parts)
    mass = Fraction(value) if exact and int(parts[1]) else value
    return _checked(
        lambda m: isinstance(m, (float, Fraction)) and 0 < m < 1.001, 'a float or "a/b" in (0, 1]', mass, name
    )


def _row(value: Any, name: str) -> SparsePmf:
    _checked(lambda row: isinstance(row, list) and len(row) == 3, f"a list {SparsePmf._fields}", value, name)
    row = SparsePmf(*(_READERS[key](part, key) for key, part in zip(SparsePmf._fields, value, strict=True)))
    fits = len(row.tokens) == len(row.masses) and list(row.tokens) == sorted(set(row.tokens) & set(range(row.size)))
    if not fits or abs(sum(row.masses) - 1) > (0 if all(isinstance(m, Fraction) for m in row.masses) else 1e-4):
        raise ValueError(f"{name} is no pmf over {row.size} tokens, expected increasing ids and masses that sum to 1")
    return row


_word = partial(_checked, lambda value: isinstance(value, str), "a string")
_natural = partial(_checked, lambda value: type(value) is int and value >= 0, "an integer >= 0")


def _many(read: Callable[[Any, str], Any], values: Any, name: str) -> tuple[Any, ...]:
    return tuple(read(value, name) for value in _checked(lambda v: isinstance(v, list), "a list", values, name))


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("epoch", "known", "position", "accepted", "token", "size"), _natural),
    **dict.fromkeys(("tokens", "draft", "eos"), partial(_many, _natural)),
    **dict.fromkeys(("session", "mode"), _word),
    "masses": partial(_many, _mass),
    "row": _row,
    "rows": partial(_many, _row),
    "seed": partial(
        _checked,
        lambda value: value is None or is_seed(value),
        f"null or an integer in 0..{LARGEST_SEED}",
    ),
    "reason": partial(_checked, lambda value: value in REASONS, f"one of {REASONS}"),
}
