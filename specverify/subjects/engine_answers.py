"""The accepted forms of an engine's result: the names under which an object may contain token ids, and their reader.

One text is a row of token ids: a list, a tuple, an array, a tensor, the pieces of a generator, or an array ``[1, n]``.
Several texts are rows: a list or tuple of rows, or an array ``[B, n]``. Both may be contained in an object: a mapping,
a named tuple, a data class or any other object with one of the names in ``TOKENS``. The object may also contain the
``LENGTHS`` of the rows, a mask (``MASKS``) of the same shape, or the id that pads them (``PADS``).

Padding is removed where it cannot be text: negative ids at an end of a row, positions excluded by a mask or a length,
and the declared pad id after an end token. Nothing else counts as padding. A result with two possible readings is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from specverify.intercept.symbolic.deferred import known, outcome_in
from specverify.reference import Tokens
from specverify.reference.validation import shown
from specverify.subjects.awaited import Stream, awaited
from specverify.subjects.emitted import check_type, in_order, number_of
from specverify.subjects.named_parts import TOKENS, value_at
from specverify.subjects.subject import UnusableSubject

LENGTHS: Final = ("lengths", "length", "num_tokens", "n_tokens", "output_lengths", "sequence_lengths", "seq_lens")
"""Names of the number of ids of each row that are text, from its start."""
MASKS: Final = ("attention_mask", "mask", "token_mask", "output_mask")
"""Names of a mask: 1 at text and 0 at padding."""
PADS: Final = ("pad_token_id", "pad_id", "pad_token", "pad")
"""Names of the token id that pads rows."""
EXPECTED = "expected a sequence of new token ids, each a whole number"


def expected_rows(number: int | None) -> str:
    """Return the part of an error message that describes the expected result of a call.

    ``number`` is the number of prompts of the call; None for a call without a list of prompts, which returns one text.
    """
    if number is None:
        return EXPECTED
    return f"expected a row of new token ids for each of {number} prompt{'s' * (number != 1)}"


class AnswerRows(NamedTuple):
    """The texts that a call returned (``rows``): each is a list of ids, some perhaps symbolic, or a tensor ``[n]``."""

    rows: list[Any]
    several: bool
    """Whether the result has rows; else it is one text."""
    pad: int | None = None
    """The id that pads rows; None if the result does not contain it."""
    counted: bool = False
    """Whether the rows were cut by lengths in the result, and ids that may be tokens were cut off."""


def read_answer_rows(answer: Any, number: int | None = None) -> AnswerRows:
    """Return the texts in ``answer``, the result of a call: one text or several.

    ``number`` is the number of prompts of the call, None if the call takes no list of prompts. It is used to decide
    between readings, and is not checked. Raises ``UnusableSubject`` for a result in no accepted form, or with two
    possible readings.
    """
    answer = without_beside(awaited(answer))
    check_type(answer, "it")
    if not _is_object(answer):
        return _plain_rows(answer, number)
    tokens = _tokens_of_object(answer)
    result = _plain_rows(tokens, number)
    pad = _first_of(answer, PADS)
    lengths, mask = _first_of(answer, LENGTHS), _first_of(answer, MASKS)
    rows, counted = result.rows, False
    if mask is not None:
        rows = _masked(rows, mask, several=result.several)
    elif lengths is not None:
        rows, counted = _cut(rows, lengths)
    return AnswerRows(
        rows, result.several, None if pad is None else number_of(pad, "the padding id of its answer"), counted
    )


def without_beside(answer: Any) -> Any:
    """Return the tokens of ``answer``, which may be a pair (tokens, mapping of other values).

    Any other value is returned unchanged.
    """
    if type(answer) is tuple and len(answer) == 2 and isinstance(answer[1], Mapping) and answer[1]:
        first, beside = answer
        named = all(isinstance(key, str) for key in beside) and not any(value_at(beside, path) for path in TOKENS)
        return first if named and (isinstance(first, list | tuple) or hasattr(first, "ndim")) else answer
    return answer


def elements_of_row(row: Any) -> list[Any]:
    """Return the token ids of a row as a list; symbolic ids (without a value yet) stay so."""
    if hasattr(row, "detach"):
        from specverify.intercept.torch.tensors import elements_of  # noqa: PLC0415 - it is a tensor

        return list(elements_of(row).ravel())
    if hasattr(row, "held"):
        return list(row.held().ravel())
    return row.tolist() if hasattr(row, "tolist") else list(map(outcome_in, row))


def grows(answer: Any) -> bool:
    """Return whether ``answer`` is a stream of at least two pieces, each of which extends the piece before it."""
    if not isinstance(answer, Stream) or len(answer.pieces) < 2:
        return False
    pieces = [_numbers(_piece(piece)) for piece in answer.pieces]
    return all(len(b) > len(a) and b[: len(a)] == a for a, b in pairwise(pieces))


def refuse_growing(growing: Sequence[bool]) -> None:
    """Raise ``UnusableSubject`` for an engine all of whose streams repeat the whole text so far in each piece.

    ``growing`` has one entry for each stream of the engine: whether it does so. An empty ``growing`` raises nothing.
    """
    if growing and all(growing):
        raise UnusableSubject(
            "it yields the whole text so far in each piece, expected the new tokens of each step alone: yield those, "
            "or return the last piece"
        )


def without_padding(row: list[Any], *, left: bool) -> list[Any]:
    """Return a row without the negative ids at its end; with ``left``, also without those at its beginning."""
    begin, end = 0, len(row)
    while end and _is_negative(row[end - 1]):
        end -= 1
    while left and begin < end and _is_negative(row[begin]):
        begin += 1
    return row[begin:end]


def _is_negative(element: Any) -> bool:
    value = element.item() if getattr(element, "shape", None) == () and hasattr(element, "item") else element
    return isinstance(value, int | float) and type(value) in {int, float} and value < 0


def _plain_rows(answer: Any, number: int | None) -> AnswerRows:
    """Return the texts in ``answer``, a result without field names: one text, or several if it is a list of rows.

    ``number`` is the number of prompts of the call, or None if the call takes no list of prompts. It decides about
    results that could be one text or several:

    * A stream (``Stream``) has the items that a generator of the engine yielded, its pieces. With as many pieces as
      prompts, each piece is the text of one prompt. Otherwise the pieces, joined, are one text.
    * A list of arrays with one element each is one text if the call takes no list of prompts. Otherwise each array is
      the text of one prompt.

    Raises ``UnusableSubject`` for a result of another form.
    """
    if isinstance(answer, Stream):
        if number is not None and len(answer.pieces) == number:
            return AnswerRows([_row_in_entry(piece) for piece in answer.pieces], several=True)
        return AnswerRows([[element for piece in answer.pieces for element in _piece(piece)]], several=False)
    if isinstance(answer, str | bytes) or not (hasattr(answer, "__len__") or hasattr(answer, "__getitem__")):
        raise UnusableSubject(f"it returned {shown(answer)}, {expected_rows(number)}")
    return _rows_of_list(answer, number) if _dimensions(answer) is None else _rows_of_array(answer, number)


def _rows_of_array(answer: Any, number: int | None) -> AnswerRows:
    if getattr(getattr(answer, "device", None), "type", "") == "meta":
        raise UnusableSubject("it returned a tensor on meta, which holds no numbers, expected new token ids")
    if answer.ndim not in {1, 2}:
        shape = f"{type(answer).__name__} of shape {tuple(answer.shape)}"
        raise UnusableSubject(f"it returned {shape}, {expected_rows(number)}")
    several = answer.ndim == 2
    return AnswerRows([answer[place] for place in range(len(answer))] if several else [answer], several)


def _rows_of_list(answer: Any, number: int | None) -> AnswerRows:
    try:
        items = answer.tolist() if hasattr(answer, "tolist") else list(in_order(answer))
    except TypeError:
        raise UnusableSubject(f"it returned {shown(answer)}, {expected_rows(number)}") from None
    if items and all(map(_is_row, items)) and (number is not None or not all(map(_is_single, items))):
        return AnswerRows([_row_in_entry(item) for item in items], several=True)
    return AnswerRows([items], several=False)


def _dimensions(value: Any) -> int | None:
    result: int | None = getattr(value, "ndim", None)
    return result


def _row_in_entry(item: Any) -> Any:
    """Return the row of token ids in ``item``, the entry of one request in the result for a batch.

    ``item`` is the row itself, or an object that contains it. Raises ``UnusableSubject`` if ``item`` contains no row,
    or more than one.
    """
    result = read_answer_rows(item)
    if len(result.rows) != 1:
        raise UnusableSubject(f"one of its rows is {shown(item)}, {EXPECTED}")
    return result.rows[0]


def _piece(piece: Any) -> list[Any]:
    """Return the token ids in ``piece``, one item that an engine yields: one token, or a chunk of new tokens."""
    if _is_row(piece) and not _is_single(piece):
        return elements_of_row(_row_in_entry(piece))
    return [piece]


def _is_row(item: Any) -> bool:
    if _dimensions(item) == 0 or isinstance(item, str | bytes):
        return False
    return isinstance(item, list | tuple) or _dimensions(item) is not None or _is_object(item)


def _is_single(item: Any) -> bool:
    """Return whether ``item`` is an array of one number, which is read as that number."""
    return _dimensions(item) is not None and item.ndim > 0 and sum(item.shape) == len(item.shape)


def _is_object(answer: Any) -> bool:
    """Return whether an answer has a field or key that holds token ids."""
    if isinstance(answer, str | bytes | int | float) or hasattr(answer, "ndim"):
        return False
    return any(value_at(answer, path) is not None for path in TOKENS) or value_at(answer, "outputs") is not None


def _tokens_of_object(answer: Any) -> Any:
    result = [(path, value) for path in TOKENS if (value := value_at(answer, path)) is not None]
    outputs = value_at(answer, "outputs")
    if isinstance(outputs, list | tuple) and len(outputs) != 1 and (not result or result[-1][0] == TOKENS[-1]):
        raise UnusableSubject(f"it returned {len(outputs)} outputs for one prompt, expected one: sample once (n=1)")
    if not result:
        raise UnusableSubject(f"it returned {shown(answer)}, expected token ids under one of {', '.join(TOKENS)}")
    (first, value), *others = result
    for path, other in others:
        if not _alike(value, other):
            raise UnusableSubject(
                f"it returned a {type(answer).__name__} whose {first} and {path} differ, expected token ids under one "
                "name: return the new tokens alone"
            )
    return value


def _alike(one: Any, other: Any) -> bool:
    first, second = read_answer_rows(one), read_answer_rows(other)
    return [_numbers(row) for row in first.rows] == [_numbers(row) for row in second.rows]


def _numbers(row: Any) -> list[Any]:
    return [number_of(known(element), "it") for element in elements_of_row(row)]


def _first_of(answer: Any, names: Sequence[str]) -> Any:
    return next((value for name in names if (value := value_at(answer, name)) is not None), None)


def _masked(rows: list[Any], mask: Any, *, several: bool) -> list[Any]:
    masks = [mask[place] for place in range(len(mask))] if several or _dimensions(mask) == 2 else [mask]
    kept = []
    for row, own in zip(map(elements_of_row, rows), _checked(masks, rows, "mask"), strict=True):
        marks = [bool(known(mark)) for mark in elements_of_row(own)]
        if len(marks) != len(row):
            raise UnusableSubject(f"its mask has {len(marks)} places for a row of {len(row)}, expected one for each id")
        places = [place for place, mark in enumerate(marks) if mark]
        if places != list(range(places[0], places[-1] + 1) if places else ()):
            raise UnusableSubject(f"its mask {marks} leaves out ids between others, expected padding at the ends")
        kept.append([row[place] for place in places])
    return kept


def _cut(rows: list[Any], lengths: Any) -> tuple[list[Any], bool]:
    """Return ``rows`` cut at ``lengths``, and whether a non-negative id was cut off, which may be a token.

    If only negative ids, which are padding, are cut off, the lengths certainly count the tokens of the rows. Raises
    ``UnusableSubject`` for an impossible length, and if different ids follow the end of a row.
    """
    counts = elements_of_row(lengths) if hasattr(lengths, "__len__") and _dimensions(lengths) != 0 else [lengths]
    kept, uncertain = [], False
    for row, count in zip(map(elements_of_row, rows), _checked(counts, rows, "lengths"), strict=True):
        length = number_of(known(count), "the lengths of its answer")
        if not isinstance(length, int) or not 0 <= length <= len(row):
            raise UnusableSubject(f"its lengths hold {length} for a row of {len(row)} ids, expected 0 to {len(row)}")
        behind = {number_of(known(element), "it") for element in row[length:]}
        if len(behind) > 1:
            raise UnusableSubject(
                f"its lengths hold {length} for a row that continues after that with {sorted(behind)}, expected the "
                "number of its new tokens, then a single padding id"
            )
        kept.append(row[:length])
        uncertain = uncertain or max(behind, default=-1) >= 0
    return kept, uncertain


def _checked(given: list[Any], rows: list[Any], what: str) -> list[Any]:
    if len(given) != len(rows):
        raise UnusableSubject(f"its {what} {'are' if what == 'lengths' else 'is'} of {len(given)} rows, and its token "
                              f"ids are of {len(rows)}, expected as many")  # fmt: skip
    return given


def new_tokens(
    found: AnswerRows, prompts: Sequence[Tokens], *, in_front: bool = False, horizon: int = 0, eos: Tokens = ()
) -> list[Any]:
    """Return the new tokens of each row of ``found``, without padding and without the prompt.

    ``prompts`` are the prompts of the rows. ``in_front`` states that rows begin with their prompt. ``horizon`` is the
    requested number of tokens, and ``eos`` are the end tokens. Raises ``UnusableSubject`` if the result contains
    lengths and it is not certain which tokens they count.
    """
    if not in_front:
        open_left = found.several and any(not _is_negative(row[0]) for row in map(elements_of_row, found.rows) if row)
        rows = [_trimmed(row, left=open_left) for row in found.rows]
    elif found.counted:
        raise UnusableSubject(
            "its lengths stand beside rows that begin with the prompt, and may count it or not: return the new tokens "
            "alone, or an attention mask of the whole rows"
        )
    else:
        longest = max(map(len, prompts))
        rows = [_behind_prompt(row, prompt, longest) for row, prompt in zip(found.rows, prompts, strict=True)]
    for row in rows if found.counted else ():
        _check_complete(_numbers(row), horizon, eos)
    return rows if found.pad is None else [_ended(row, found.pad, eos) for row in rows]


def is_complete(tokens: list[Any], horizon: int, eos: Tokens) -> bool:
    """Return whether a text has the requested number ``horizon`` of tokens, or ends with an end token (in ``eos``)."""
    end = next((at for at, token in enumerate(tokens, 1) if token in eos), None)
    return len(tokens) >= horizon if end is None else end == len(tokens) or end >= horizon


def _check_complete(tokens: list[Any], horizon: int, eos: Tokens) -> None:
    if not is_complete(tokens, horizon, eos):
        raise UnusableSubject(
            f"its lengths leave {tokens} of a row, where {horizon} tokens were wanted{' or the end' if eos else ''}: "
            "are they the number of its new tokens, and of nothing else?"
        )


def _trimmed(row: Any, *, left: bool) -> Any:
    elements = elements_of_row(row)
    kept = without_padding(elements, left=left)
    return row if len(kept) == len(elements) else kept


def _behind_prompt(row: Any, prompt: Tokens, longest: int) -> list[Any]:
    elements = without_padding(elements_of_row(row), left=True)
    result = prompt_end(elements, prompt, longest)
    if result is None:
        raise UnusableSubject(
            f"its answer {shown(_numbers(elements))} does not begin with the prompt {prompt}, and answers before did: "
            "return the new tokens alone, in every call"
        )
    return elements[result:]


def prompt_end(elements: list[Any], prompt: Tokens, longest: int) -> int | None:
    """Return the position after the prompt at the beginning of a row; None if the row does not begin with it.

    ``elements`` are the tokens of the row. Padding may precede the prompt: copies of one id. Padding and prompt
    together then have ``longest`` tokens, the length of the longest prompt of the call.
    """
    size = len(prompt)
    for begin in dict.fromkeys((0, longest - size)):
        padding, head = elements[:begin], elements[begin : begin + size]
        if len(head) == size and _numbers(head) == list(prompt) and len({*_numbers(padding)}) <= 1:
            return begin + size
    return None


def _ended(row: Any, pad: int, eos: Tokens) -> Any:
    """Return a row cut after its first end token (one of ``eos``) if only the padding id ``pad`` follows.

    Any other row is returned unchanged.
    """
    if not eos:
        return row
    numbers = _numbers(row)
    end = next((at for at, token in enumerate(numbers, 1) if token in eos), len(numbers))
    return elements_of_row(row)[:end] if set(numbers[end:]) <= {pad} else row


def has_tokens(wanted: int, pieces: list[Any]) -> bool:
    """Return whether the pieces of a stream have at least ``wanted`` tokens."""
    return sum(len(_piece(piece)) for piece in pieces) >= wanted
