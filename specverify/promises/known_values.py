"""Values that an engine returns with its tokens: what is promised and known of them, and what a wrong one is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from specverify.checks.explaining.wording import short, short_row
from specverify.reference import Tokens
from specverify.subjects.answering import Facts, Value
from specverify.subjects.beside import Answer, Ranked

RAW, PROCESSED, PLAIN = "raw", "processed", "plain"
Kind = str | Callable[[Tokens], Any] | None
"""The promise about a value: "raw" (of the unprocessed row of the model), "processed" (of the row from which the token
is drawn), "plain" (equal to that of the call without speculation), a function of the new tokens, or None (not stated).
"""
KINDS: Final = (RAW, PROCESSED, PLAIN)
OF_ROWS: Final = frozenset({"logprobs", "top_logprobs", "cumulative_logprob", "scores", "logits"})
"""Values that consist of logarithms of probabilities."""
FORBIDDEN = 1e-6
"""Largest probability that may be returned for a token of probability 0, for example if a finite logit stands for -inf.
"""


class WrongValue(NamedTuple):
    """A returned value that differs from the promised one.

    ``because`` are further lines of the message, which show why.
    """

    fault: str
    """A sentence about what is wrong."""
    because: tuple[str, ...] = ()
    undecided: bool = False
    """Whether rounding may explain the difference."""
    named: bool = True
    """Whether the sentence tells where the value comes from, or could with this value; else another case may tell."""


class KnownValues(NamedTuple):
    """What is known about the values that an engine should return for one request.

    ``promises`` maps the name of each value to its promise, and ``facts`` has the models, or is None. The other fields
    have the values that the call without speculation returns.
    """

    facts: Facts | None
    promises: Mapping[str, Kind]
    plain: Mapping[Tokens, Mapping[str, Value]]
    """New tokens -> the values that the call without speculation returns with them."""
    prefixes: Mapping[str, Mapping[Tokens, Any]]
    """The values with one element per token, from the call without speculation. ``prefixes[name][tokens]`` is the
    element of the value ``name`` at the last of the new tokens ``tokens``."""


def kind_of(name: str, kind: Kind, known: KnownValues) -> Kind:
    """Return ``kind``, the promise about the value ``name``; if it is None, the default promise.

    The default is "plain" if the call without speculation returns the value too (``known.plain``), else "processed".
    """
    if kind is None:
        return PLAIN if known.plain and any(name in values for values in known.plain.values()) else PROCESSED
    return kind


def are_alike(one: Any, other: Any, spacing: float) -> bool:
    """Return whether the values ``one`` and ``other`` are equal, up to the rounding of floats with this spacing."""
    if isinstance(one, float) and isinstance(other, int | float):
        return (
            one == other or (one < math.log(FORBIDDEN) and other == -math.inf) or abs(one - other) <= math.sqrt(spacing)
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(are_alike(one[key], other[key], spacing) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(are_alike(a, b, spacing) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def shown_value(value: Any) -> str:
    """Return ``value`` as it is shown in messages: rounded, and cut off after 100 characters."""
    if isinstance(value, float):
        return short(value, 6)
    if isinstance(value, Ranked):
        return str(dict(zip(value.tokens, (round(v, 6) for v in value.logprobs), strict=True)))
    if isinstance(value, tuple) and value and all(isinstance(item, float) for item in value):
        return short_row(value)
    text = repr(value)
    return text if len(text) < 100 else f"{text[:97]}..."


def compare_plain(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of ``value``, which a call with speculation returns as ``name``; None if it is as expected.

    ``kind`` is what is promised of the value. If it is a function, the expected value is ``kind(new tokens)``.
    Otherwise it is the value ``name`` that the call without speculation returns with the same tokens; ``known`` has the
    values of that call. Returns None also if no value is expected, or if ``answer`` has more tokens than the call may
    return.
    """
    if callable(kind):
        expected = kind(answer.new)
    else:
        given = known.plain.get(answer.new, {}).get(name)
        if given is None:
            return None
        expected = given.value
    if answer.length != len(answer.new) or are_alike(value.value, expected, value.spacing):
        return None
    return WrongValue(f"{name} = {shown_value(value.value)}, expected {shown_value(expected)} for these tokens")
