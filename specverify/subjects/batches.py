"""One call of a verifier of batches: its rows, the neighbours that are certain, and the reading of its answer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reference import Draws, Tokens
from specverify.laws.paths import Undecided
from specverify.subjects.arrays import BareVerifier, arrays_of
from specverify.subjects.calls import Convert, called
from specverify.subjects.emitted import emitted_row, ends_left_open, left_open, type_and_shape
from specverify.subjects.remembered import answer_of
from specverify.subjects.subject import Context, UnusableSubject


class Row(NamedTuple):
    """One row of a batch."""

    p: Any
    """``[drafts + 1, vocabulary]``"""
    q: Any
    """``[drafts, vocabulary]``"""
    drafts: Tokens


def takes_lengths(verify: BareVerifier) -> bool:
    """Return whether it is told the number of drafts of each row: a parameter ``lengths``, or a fourth one it needs."""
    try:
        parameters = inspect.signature(verify).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    needed = [item for item in parameters if item.default is item.empty and item.kind in positional]
    return len(needed) > 3 or any(item.name == "lengths" for item in parameters)


def company_of(mine: Row, ragged: bool) -> tuple[Row, ...]:
    """Return the batch in which the row is examined; it is the third."""
    count, vocabulary = len(mine.drafts), mine.p.shape[1]
    before = accepted_whole(count + ragged, vocabulary), rejected_at_once(count, vocabulary)
    return (*before, mine, *((accepted_whole(0, vocabulary),) if ragged else ()))


def accepted_whole(count: int, vocabulary: int) -> Row:
    """Return a row whose drafts are accepted for certain, and whose next token is certain too."""
    first, last = _ends(vocabulary)
    return Row(
        np.array([*[last] * count, first]),
        _stacked([(first + last) / 2] * count, vocabulary),
        (vocabulary - 1,) * count,
    )


def rejected_at_once(count: int, vocabulary: int) -> Row:
    """Return a row whose drafts are rejected for certain, and replaced by a token that is certain."""
    first, last = _ends(vocabulary)
    return Row(np.array([last] * (count + 1)), _stacked([first] * count, vocabulary), (0,) * count)


def _ends(vocabulary: int) -> Any:
    """Return the point masses on the first and the last token."""
    found = np.zeros((2, vocabulary))
    found[0, 0] = found[1, -1] = 1.0
    return found


def _stacked(pmfs: list[Any], vocabulary: int) -> Any:
    return np.array(pmfs).reshape(len(pmfs), vocabulary)


def emitted(verify: BareVerifier, rows: Sequence[Row], draws: Draws, answered: Context) -> tuple[Tokens, ...]:
    """Return what ``verify`` emits for each row of one call, which is made inside ``answered(draws)``.

    Raises ``UnusableSubject`` unless it answers with one row of emitted tokens for each.
    """
    given, convert = _arrays(rows, takes_lengths(verify)), arrays_of(verify, _attempt)
    call = partial(called, convert, given, partial(invoked, verify), partial(_read, rows))
    found: tuple[Tokens, ...] = answer_of(draws, answered, verify, given, call)
    return found


def _read(rows: Sequence[Row], answer: Any) -> Any:
    if getattr(answer, "ndim", 2) != 2 or not hasattr(answer, "__len__"):
        raise UnusableSubject(
            f"it returned {type_and_shape(answer)}, expected [{len(rows)}, gamma + 1] or a list of rows"
        )
    if len(answer) != len(rows):
        raise UnusableSubject(f"it returned {len(answer)} rows for a batch of {len(rows)}, expected one for each")
    ends = [place for place, row in enumerate(rows) if left_open(answer[place], len(row.drafts) + 1)]
    with ends_left_open(len(ends) == 1):
        found = {
            place: emitted_row(answer[place], len(rows[place].drafts), f"row {place + 1} of {len(rows)}")
            for place in sorted(range(len(rows)), key=lambda place: place in ends)
        }
    return _together([found[place] for place in range(len(rows))])


def _together(found: Sequence[Any]) -> Any:
    """Return the rows of a batch, of which one at most was left open."""
    return next(
        (
            Undecided(tuple(((*found[:place], tokens, *found[place + 1 :]), mass) for tokens, mass in row.outcomes))
            for place, row in enumerate(found)
            if isinstance(row, Undecided)
        ),
        tuple(found),
    )


def invoked(verify: BareVerifier, *arrays: Any) -> Any:
    """Call it; lengths go by name where that is how it calls them."""
    if len(arrays) > 3 and "lengths" in inspect.signature(verify).parameters:
        return verify(*arrays[:3], lengths=arrays[3])
    return verify(*arrays)


def _arrays(rows: Sequence[Row], ragged: bool) -> dict[str, Any]:
    width, vocabulary = max(len(row.drafts) for row in rows), rows[0].p.shape[1]
    first, last = _ends(vocabulary)
    given = {
        "p": np.array([_padded(row.p, width + 1, first) for row in rows]),
        "q": np.array([_padded(row.q, width, 0.75 * first + 0.25 * last) for row in rows]),
        "draft_tokens": np.array([(*row.drafts, *(-1,) * (width - len(row.drafts))) for row in rows]),
    }
    return {**given, "lengths": np.array([len(row.drafts) for row in rows])} if ragged else given


def _padded(pmfs: Any, length: int, padding: Any) -> Any:
    missing = length - len(pmfs)
    return np.concatenate([pmfs, np.broadcast_to(padding, (missing, len(padding)))]) if missing else pmfs


def _attempt(verify: BareVerifier, convert: Convert) -> None:
    """Call it with three rows: one accepted, one rejected, one either."""
    either = Row(np.array([[2, 1], [1, 2]]) / 3, np.array([[1, 2]]) / 3, (1,))
    rows = (accepted_whole(1, 2), rejected_at_once(1, 2), either)
    _read(rows, invoked(verify, *convert(_arrays(rows, takes_lengths(verify)))))
