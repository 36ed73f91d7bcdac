"""Read the emitted tokens of one row of a verifier's result; a last token that was never read gets no value."""

from __future__ import annotations

from typing import Any

from specverify.intercept.run import mode
from specverify.intercept.symbolic.deferred import known
from specverify.intercept.symbolic.large import Wide, resolved
from specverify.laws.call_paths import Ending
from specverify.subjects.emitted import (
    check_type,
    elements_of,
    in_16_bits,
    items_of,
    not_a_row,
    number_of,
    tokens_behind_negative,
)
from specverify.subjects.subject import UnusableSubject


def ending_of(answer: Any, drafts: int, who: str = "it") -> Ending:
    """Return the emitted tokens in ``answer``, a verifier's result for one row with ``drafts`` drafts.

    The result has the known tokens, and the law of the last token if it has no value yet. Raises ``UnusableSubject``,
    naming the row as ``who``, unless the row is 1 to ``drafts + 1`` numbers followed only by negative placeholders.
    """
    try:
        check_type(answer, who)
        elements = [element for item in items_of(answer) for element in elements_of(item)]
    except TypeError:
        raise not_a_row(answer, who) from None
    tokens: list[Any] = []
    last: Wide | None = None
    for place, element in enumerate(elements):
        result = resolved(element)
        if isinstance(result, Wide) and _end_here(elements[place + 1 :]):
            last = result
            break
        number = number_of(known(result), who)
        if number < 0 and number == int(number):
            _check_end(elements[place:], tokens, who)
            break
        tokens.append(number)
    count = len(tokens) + (last is not None)
    if not 1 <= count <= drafts + 1:
        plain = in_16_bits([element for element in elements if isinstance(element, int | float)])
        expected = f"expected 1 to {drafts + 1}: accepted drafts and one more"
        raise UnusableSubject(f"{who} emitted {count} tokens, {expected}{plain}")
    if last is None:
        return Ending(tuple(tokens))
    if mode().coupled is not None:  # the plain run has a value
        return Ending((*tokens, number_of(known(last), who)))
    return Ending(tuple(tokens), last.values, last.drawn.masses())


def _end_here(rest: list[Any]) -> bool:
    """Return whether all elements of ``rest``, the end of a row, are negative placeholders."""
    for element in rest:
        result = resolved(element)
        if isinstance(result, Wide):
            if (result.values >= 0).any():
                return False
        elif not (isinstance(result, int | float) and result < 0):
            return False
    return True


def _check_end(rest: list[Any], tokens: list[Any], who: str) -> None:
    if not _end_here(rest):
        result = [*tokens, *(known(element) for element in rest)]
        raise tokens_behind_negative(result, who)
