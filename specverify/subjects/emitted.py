"""Read the tokens that a verifier emitted, and describe faults of its result in a sentence.

Tokens are integers of any type. Floats with integer values are accepted, because float64 and float32 buffers hold every
token id below 2**24 exactly. Not accepted: bools, which are no tokens, and 16-bit floats, which round ids above 2048
(float16) or 256 (bfloat16) and would look right with the small vocabularies here. A number that is not an integer, or
is outside the vocabulary, is passed on unchanged, so that the checks of laws and supports refute it with a
counterexample.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.run import mode
from specverify.intercept.symbolic.deferred import (
    Categorical,
    Deferred,
    Law,
    OutcomeNumber,
    chosen,
    is_open,
    known,
    outcome_in,
)
from specverify.laws import rounding
from specverify.laws.paths import Undecided
from specverify.reference import Draws, Tokens, check_pmf
from specverify.reference.validation import shown
from specverify.subjects.subject import UnusableSubject

NOT_TOKENS = {
    "bool": "bools, expected token ids: a mask is no row of tokens",
    "float16": "float16, expected a type that holds every token id: it rounds those above 2048",
    "bfloat16": "bfloat16, expected a type that holds every token id: it rounds those above 256",
}


_LEFT_OPEN: ContextVar[int] = ContextVar("ends left open", default=0)


@contextmanager
def ends_left_open(least: int = 1) -> Iterator[None]:
    """In the ``with`` block, let the last token of a row have no value (stay symbolic) if the verifier never read it.

    Such a row is returned as ``Undecided``: all possible rows, with their probabilities. In rows of fewer than
    ``least`` tokens the last token gets a value as usual. With ``least=0`` it does so in all rows.
    """
    token = _LEFT_OPEN.set(least)
    try:
        yield
    finally:
        _LEFT_OPEN.reset(token)


def emitted_row(answer: Any, drafts: int, who: str = "it") -> Any:
    """Return the emitted tokens in ``answer``, a verifier's result for one row with ``drafts`` drafts.

    Tokens without a value (symbolic ones) get a value. If the last token may stay symbolic (``ends_left_open``), all
    possible rows are returned, with their probabilities (``Undecided``). Numbers outside the vocabulary are returned
    unchanged. Raise ``UnusableSubject``, naming the row as ``who``, unless the row is 1 to ``drafts + 1`` numbers
    followed only by negative placeholders.
    """
    return open_end(answer, drafts + 1) or _row(answer, 1, drafts + 1, "accepted drafts and one more", who)


def accepted_row(answer: Any, drafts: int, who: str = "it") -> Tokens:
    """Return the accepted tokens in ``answer``, a verifier's result for one row with ``drafts`` drafts.

    The verifier leaves the draw of the last token to its caller. Raises ``UnusableSubject``, naming the row as ``who``,
    unless there are 0 to ``drafts`` tokens.
    """
    return _row(answer, 0, drafts, "accepted drafts", who)


def _row(answer: Any, least: int, most: int, what: str, who: str) -> Tokens:
    check_type(answer, who)
    if not _is_row(answer):
        raise not_a_row(answer, who)
    try:
        row = _flat(answer).tolist() if hasattr(answer, "reshape") else in_order(answer)
        tokens = [number_of(known(token), who) for token in row]
    except TypeError:
        raise not_a_row(answer, who) from None
    end = next((index for index, token in enumerate(tokens) if token < 0 and token == int(token)), len(tokens))
    if max(tokens[end:], default=-1) >= 0:
        raise tokens_behind_negative(tokens, who)
    if not least <= end <= most:
        raise UnusableSubject(f"{who} emitted {end} tokens, expected {least} to {most}: {what}{in_16_bits(tokens)}")
    return tuple(tokens[:end])


def tokens_behind_negative(row: list[Any], who: str) -> UnusableSubject:
    """Return the error that ``row``, emitted by the verifier ``who``, has tokens behind a negative number."""
    said = f"{who} emitted {row}, expected nothing but placeholders after the first negative one"
    return UnusableSubject(said + in_16_bits(row))


def in_16_bits(row: list[Any]) -> str:
    """Return the clause that a negative number in ``row`` is a token id that 16 bits do not hold; "" without one.

    Placeholders, such as -1 or -100, are above -256; only the token ids just below 65536 become such numbers.
    """
    cut = next((token for token in row if -(2**15) <= token < -(2**8)), None)
    return "" if cut is None else f" ({cut} is token {cut + 2**16} in 16 bits: use int32 or int64)"


def not_a_row(answer: Any, who: str) -> UnusableSubject:
    """Return the error that ``answer``, the result of the verifier ``who``, is no row of tokens.

    If the answer has several parts, such as a tuple, the message states how to return the part with the tokens.
    """
    several = isinstance(answer, (tuple, Mapping)) or hasattr(answer, "_fields")
    way_out = ": return the part with all emitted tokens alone, or name it, as in {'tokens': [2, 0]}" if several else ""
    return UnusableSubject(f"{who} returned {type_and_answer(answer)}, expected a row of integer tokens{way_out}")


def no_token(token: Any, vocabulary: int) -> str | None:
    """Describe why ``token`` is no token of the vocabulary; None if it is one."""
    if token != int(token):
        return f"{token} is not a whole number"
    return None if 0 <= token < vocabulary else f"{token} is outside the vocabulary of {vocabulary}"


def type_and_shape(answer: Any) -> str:
    """Return the type and shape of an answer as text."""
    shape = getattr(answer, "shape", None)
    return type(answer).__name__ + ("" if shape is None else f" of shape {list(shape)}")


def in_order(answer: Any) -> Any:
    """Return ``answer``; raise ``TypeError`` if its order of iteration is arbitrary (sets, mappings)."""
    if isinstance(answer, _UNORDERED):
        raise TypeError
    return answer


_UNORDERED = (Mapping, AbstractSet)
_INTEGERS = frozenset({int, np.int64, np.int32})


def type_and_answer(answer: Any) -> str:
    """Return the type of an answer as text, with the answer itself if it is short."""
    readable = isinstance(answer, (str, list, tuple, *_UNORDERED))
    return f"{type_and_shape(answer)} {shown(answer)}" if readable else type_and_shape(answer)


def number_of(token: Any, who: str) -> Any:
    """Return ``token``, an emitted number, as an int if it is integral; else unchanged.

    Raises ``TypeError`` for anything that is no number, and ``UnusableSubject``, naming ``who``, for a number that is
    not finite.
    """
    if type(token) in _INTEGERS:
        return int(token)
    check_type(token, who)
    if math.prod(getattr(token, "shape", ())) != 1:  # a row within a row, or nothing
        raise TypeError
    value = token.item() if hasattr(token, "item") else token
    if isinstance(value, bool):
        raise UnusableSubject(f"{who} emitted {value}, one of {NOT_TOKENS['bool']}")
    if not isinstance(value, Real):
        raise TypeError
    if not math.isfinite(value):
        raise UnusableSubject(f"{who} emitted {value}, expected whole numbers")
    whole = int(value)  # type: ignore[call-overload]  # mypy knows of no integer part of a real number
    return whole if value == whole else value


def check_type(answer: Any, who: str) -> None:
    """Raise ``UnusableSubject`` if ``answer`` has numbers of a type that cannot hold tokens, or is a coroutine.

    ``who`` names the verifier or the row in the message.
    """
    if inspect.iscoroutine(answer):
        answer.close()
        raise UnusableSubject(f"{who} returned a coroutine, expected the tokens: call it through asyncio.run")
    if (kind := _kind(answer)) in NOT_TOKENS:
        raise UnusableSubject(f"{who} emitted {NOT_TOKENS[kind]}")


def _kind(answer: Any) -> str:
    """Return the name of the dtype of the array ``answer``, such as "bool" or "float16"; "" if it is no array."""
    dtype = getattr(answer, "dtype", None)
    return "" if dtype is None else _name_of_type(dtype)


@cache
def _name_of_type(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def drawn_row(draws: Draws, pmf: Any) -> Any:
    """Draw one token from ``pmf`` and return it as a row of one token.

    Inside ``ends_left_open``, where the last token of a row may stay symbolic, no token is drawn: return all possible
    rows, with their probabilities (``Undecided``).
    """
    if _LEFT_OPEN.get() != 1 or mode().coupled is not None:
        return (draws.categorical(pmf, ("bonus",)),)
    law = [(token, mass) for token, mass in enumerate(pmf.tolist()) if mass > 0]
    rounding.drew(len(law), pmf.dtype)
    return Undecided(tuple(((token,), mass) for token, mass in law))


def open_end(answer: Any, most: int) -> Undecided | None:
    """Return the possible rows, with their probabilities, if the last token of the row ``answer`` has no value yet.

    A token has no value (is symbolic) until the verifier reads it. Returns None if all tokens have values, or if the
    last token must have one. ``most`` is the largest number of tokens of the row.
    """
    if (result := left_open(answer, most)) is None:
        return None
    rounding.drew(len(result.law), result.dtype)
    return Undecided(tuple(((*result.tokens, token), mass) for token, mass in result.law))


class OpenEnd(NamedTuple):
    """A row of emitted tokens whose last token has no value yet (is symbolic), because the verifier never read it."""

    tokens: Tokens
    """The tokens before the last one."""
    law: Law
    """Pairs of each possible last token and its probability."""
    dtype: Any
    """The dtype of the pmf that the last token is drawn from; None if there is no pmf."""


def left_open(answer: Any, most: int) -> OpenEnd | None:
    """Return the tokens of the row ``answer`` and the law of its last token, if this token has no value yet, or None.

    The last token may stay without a value (symbolic) inside ``ends_left_open`` if it is no placeholder, was never
    read, and is decided by a single draw. All tokens before it get a value. Otherwise the result is None. ``most`` is
    the largest number of tokens of the row. In a coupled run (``checks.coupled_runs``) the law is compared with the
    draw of the token, and None is returned.
    """
    may_be_row = _is_row(answer) and (hasattr(answer, "reshape") or isinstance(answer, (list, tuple)))
    if not (least := _LEFT_OPEN.get()) or not may_be_row:
        return None
    items = items_of(answer)
    if any(_kind(item) in NOT_TOKENS for item in items):
        return None
    elements = [chosen(element) for item in items for element in elements_of(item)]
    while elements and _is_number(elements[-1]) and elements[-1] < 0:
        del elements[-1]
    *before, last = elements or [None]
    if not isinstance(last, Deferred) or not is_open(last) or not least <= len(elements) <= most:
        return None
    tokens = [known(token) if isinstance(token, Deferred) else token for token in before]
    if not all(_is_number(token) and token >= 0 and token == int(token) for token in tokens):
        return None
    law, pmf = last.law(), last.pmf if isinstance(last, Categorical) else None
    with suppress(ValueError):  # who looks at it says what is wrong with it
        dtype = None if pmf is None else check_pmf(pmf, "the last draw").dtype
        if law is not None and mode().coupled is None:
            return OpenEnd(tuple(map(int, tokens)), law, dtype)
        if law is not None:
            mode().coupled.open_end(last, law)
    return None


def _is_row(answer: Any) -> bool:
    """Return whether ``answer`` has one axis of tokens; further axes may have length 1. True if it is no array."""
    shape = getattr(answer, "shape", (1,))
    return len(shape) > 0 and sum(length != 1 for length in shape) <= 1


def items_of(answer: Any) -> Any:
    """Return the elements of ``answer``, a verifier's result for one row: tokens, or arrays with one token each."""
    return [_flat(answer)] if hasattr(answer, "reshape") else list(answer)


def _flat(array: Any) -> Any:
    return array if getattr(array, "ndim", None) == 1 else array.reshape(-1)


def elements_of(item: Any) -> list[Any]:
    """Return the numbers in ``item``, an element of ``items_of``, as a list; symbolic ones (without value) stay so."""
    if type(item) is OutcomeNumber:
        return [outcome_in(item)]
    if hasattr(item, "held"):
        return list(item.held().ravel())
    return _flat(item).tolist() if hasattr(item, "reshape") else [item]


def _is_number(element: Any) -> bool:
    return isinstance(element, int | float) and not isinstance(element, bool)
