"""Verifiers that return several parts: their convention is found by two calls with certain rows.

The parts are those of a tuple, or of a mapping, a named tuple or a data class in which none is named as the tokens.

Usual conventions are (all emitted tokens, number of accepted drafts), (accepted drafts, next token), (number of
accepted drafts, next token) and (mask of accepted drafts, next token). In both calls all rows are one-hot, there are
two drafts, and every token that can occur is at least 3. So a number of the answer is a count if it is at most 2 in
both calls, and a token if it is at least 3 in both. This holds for wrong verifiers too. In every later call the emitted
tokens are put together from the parts.

A number beside a row is used only if the row is an array of constant length: if the right tokens are its beginning in
both calls, and the number tells how many. Beside any other row of all emitted tokens it is not examined.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, wraps
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np

from specverify.base.callables import innermost
from specverify.subjects.array_kinds import BareVerifier, conversions
from specverify.subjects.batch_call import BatchRow, arguments_of, arrays_of_rows, invoked, takes_lengths
from specverify.subjects.forms import Form
from specverify.subjects.named_parts import has_parts, parts_of
from specverify.subjects.seeded import seeded

SIZE, LEAST = 8, 3
DRAFTS = (3, 4)
CERTAIN = ((5, 6, 6), (*DRAFTS, 7))
"""The tokens to which p gives probability 1: the first draft is rejected in one call, all are accepted in the other."""
SEED = 20211


class _Convention(NamedTuple):
    """The index at which the tuple that a verifier returns has each of these parts; None: it does not have the part."""

    row: int | None = None
    """A row of tokens: all emitted ones if the answer has no ``token``, else the accepted drafts."""
    token: int | None = None
    """The token after the accepted drafts."""
    number: int | None = None
    """The number of accepted drafts."""
    mask: int | None = None
    """For each draft whether it is accepted."""
    end: int | None = None
    """The number of emitted tokens at the beginning of ``row``, or of accepted drafts among them (see ``behind``)."""
    behind: int = 0
    """How many tokens more than the number at ``end`` are emitted."""


def with_rows(verify: BareVerifier, form: Form, *, now: bool = False) -> BareVerifier:
    """Return a function that calls ``verify`` and returns all emitted tokens: a row, or one row for each of a batch.

    Returns ``verify`` unchanged if its source has no statement that returns several parts. Their convention is searched
    in the first call, or ``now``, which calls ``verify``. It must not be searched while random calls are intercepted.
    If none is found, results are returned as they are. ``form`` is the form of the arguments of ``verify``, with a
    chain of drafts.
    """
    if not _returns_parts(verify):
        return verify
    if now:
        _convention_of(verify, form)

    @wraps(verify)
    def emitting(p: Any, q: Any, draft_tokens: Any, *others: Any, **named: Any) -> Any:
        convention = _convention_of(verify, form)
        answer = verify(p, q, draft_tokens, *others, **named)
        parts = None if convention is None else parts_of(answer)
        if convention is None or parts is None:
            return answer
        if convention.token is None and convention.end is None:
            return parts[convention.row or 0]
        if not form.batched:
            return _emitted(parts, convention, draft_tokens)
        rows = zip(zip(*parts, strict=True), draft_tokens, strict=True)
        return [_emitted(row, convention, drafts) for row, drafts in rows]

    return emitting


def _returns_parts(verify: BareVerifier) -> bool:
    """Return whether the source of ``verify`` has a statement such as ``return tokens, count``; False without source.

    The statement may also return a dictionary, or call a named tuple or a data class by its name. The source of an
    object is that of its method ``forward`` or ``__call__``.
    """
    function = innermost(verify)
    if not inspect.isroutine(function):
        function = getattr(type(function), "forward", type(function).__call__)
    with suppress(OSError, TypeError, SyntaxError, ValueError):
        tree = ast.parse(dedent(inspect.getsource(function)))
        ends = (node.value if isinstance(node, ast.Return) else getattr(node, "body", None) for node in ast.walk(tree))
        known = inspect.getclosurevars(function)
        names = {**known.builtins, **known.globals, **known.nonlocals}
        return any(isinstance(end, ast.Tuple | ast.Dict) or _calls_class_with_parts(end, names) for end in ends)
    return False


def _calls_class_with_parts(end: ast.AST | None, names: Mapping[str, Any]) -> bool:
    """Return whether ``end``, a returned expression, calls a named tuple or a data class that ``names`` holds."""
    called = end.func if isinstance(end, ast.Call) else None
    kind = names.get(called.id) if isinstance(called, ast.Name) else None
    return isinstance(kind, type) and has_parts(kind)


@lru_cache(maxsize=256)
def _convention_of(verify: BareVerifier, form: Form) -> _Convention | None:
    """Return the convention of the results of ``verify``, which have several parts; None if it is not found.

    ``form`` is the form of the arguments. The convention is read from the first of ``certain_answers`` that allows it.
    """
    for answers in certain_answers(verify, form):
        with suppress(Exception):
            parts = [parts for answer in answers if (parts := parts_of(answer))]
            if len(parts) < len(answers):
                return None
            return _read(list(zip(*parts[0], strict=True)) if form.batched else parts)
    return None


def certain_answers(verify: BareVerifier, form: Form) -> Iterator[list[Any]]:
    """Call ``verify`` with the rows of ``CERTAIN``, and yield its results, for the arrays of each library in turn.

    ``form`` is the form of its arguments. The results are those of two calls, or of one call with two rows if it takes
    batches. A library with whose arrays a call raises is left out.
    """
    arguments = arguments_of(verify, form)
    one_hot = arguments.of_pmfs(np.eye(SIZE))
    rows = [BatchRow(one_hot[list(certain)], one_hot[list(DRAFTS)], DRAFTS) for certain in CERTAIN]
    calls = [rows] if form.batched else [[row] for row in rows]
    for convert in conversions(verify):
        answers = None
        with suppress(Exception), seeded(SEED):
            given = [arrays_of_rows(called, takes_lengths(verify), arguments) for called in calls]
            told = arguments.in_common(SIZE)
            answers = [invoked(verify, told, tuple(arrays), *convert(arrays)) for arrays in given]
        if answers is not None:
            yield answers


def _read(answers: Sequence[Any]) -> _Convention | None:
    """Return the convention that both of ``answers``, the results for two rows, follow; None if it is not clear."""
    if len({len(answer) for answer in answers}) != 1:
        return None
    if (cut := _cut_row(answers)) is not None:
        return cut
    kinds: dict[str, list[int]] = {"row": [], "token": [], "number": [], "mask": []}
    for index, parts in enumerate(zip(*answers, strict=True)):
        if (kind := _same_kind({_kind(part) for part in parts})) in kinds:
            kinds[kind].append(index)
    row, token, number, mask = (found[0] if len(found) == 1 else None for found in kinds.values())
    if row is not None:
        rows = [_numbers(answer[row]) or [] for answer in answers]
        if token is None or all(ids[-1:] == _numbers(answer[token]) for ids, answer in zip(rows, answers, strict=True)):
            return _Convention(row=row) if all(rows) else None
    if token is None or (row is None and number is None and mask is None):
        return None
    return _Convention(row, token, number, mask)


def _cut_row(answers: Sequence[Any]) -> _Convention | None:
    """Return the convention of an array of constant length, of which a number tells how many tokens are emitted.

    Returns None unless ``answers`` follow it: the right tokens are the beginning of the array in each, they are not all
    of it, and the number is theirs.
    """
    parts, right = list(zip(*answers, strict=True)), list(map(_right, CERTAIN))
    for row, arrays in enumerate(parts):
        if any(isinstance(array, list | tuple) or np.ndim(array) != 1 for array in arrays):
            continue
        rows = [_numbers(array) or [] for array in arrays]
        begins = [tokens[: len(begin)] for tokens, begin in zip(rows, right, strict=True)]
        if len(set(map(len, arrays))) > 1 or rows == right or begins != right:
            continue
        for end, part in enumerate(parts):
            for behind in (0, 1):
                if list(map(_numbers, part)) == [[len(begin) - behind] for begin in right]:
                    return _Convention(row=row, end=end, behind=behind)
    return None


def _right(certain: Sequence[int]) -> list[int]:
    """Return the tokens that a right verifier emits if p is certain of the tokens ``certain``."""
    accepted = next((place for place, token in enumerate(DRAFTS) if token != certain[place]), len(DRAFTS))
    return [*DRAFTS[:accepted], certain[accepted]]


def _same_kind(kinds: set[str]) -> str:
    """Return the kind of a part ("row", "token", "number" or "mask") from its ``kinds`` in several answers.

    "single", "empty" and "absent" (see ``_kind``) agree with other kinds. Returns "" if two other kinds occur.
    """
    if kinds == {"empty"}:
        return "row"
    known = kinds - {"absent", "empty"}
    if "row" in known:
        known -= {"single"}
    return "token" if known == {"single"} else known.pop() if len(known) == 1 else ""


def _kind(part: Any) -> str:
    """Return what a part of one answer may be: "row", "token", "number", "mask", or "" if it is none of these.

    An array of one token is "single", a row or a token. A row without tokens is "empty", and None is "absent".
    """
    numbers = _numbers(part)
    if numbers is None:
        return ""
    if not numbers:
        return "absent" if part is None else "empty"
    if min(numbers) < LEAST:
        return "mask" if _is_mask(part) else "number" if np.ndim(part) == 0 or len(part) == 1 else ""
    if np.ndim(part) == 0:
        return "token"
    return "row" if isinstance(part, list | tuple) or len(part) > 1 else "single"


def _is_mask(part: Any) -> bool:
    """Return whether ``part`` states for each draft whether it is accepted."""
    numbers = _numbers(part) or []
    return len(numbers) == len(DRAFTS) and max(numbers) <= 1


def _numbers(part: Any) -> list[int] | None:
    """Return the numbers in ``part``, a part of a verifier's result, without negative placeholders.

    Returns None for a part that is no number and no row of numbers.
    """
    if part is None:
        return []
    if isinstance(part, bool | str | Mapping) or np.ndim(part) > 1:
        return None
    flat = np.asarray(part).reshape(-1).tolist()
    numbers = [int(number) for number in flat if isinstance(number, int | float) and number == int(number)]
    return [number for number in numbers if number >= 0] if len(numbers) == len(flat) else None


def _emitted(answer: tuple[Any, ...], convention: _Convention, draft_tokens: Any) -> Any:
    """Return the emitted tokens of one row, put together from the parts of the verifier's result ``answer``.

    ``convention`` has the meaning of each part. An array with a number out of its range is returned whole.
    ``draft_tokens`` are the drafts of the row, from which the accepted
    ones are taken if the answer has only their number or a mask.
    """
    if convention.row is not None and convention.end is not None:
        tokens, end = answer[convention.row], int(answer[convention.end]) + convention.behind
        return tokens[:end] if 0 <= end <= len(tokens) else tokens
    row, token, number, mask = (None if index is None else answer[index] for index in convention[:4])
    last = [] if token is None else [token] if np.ndim(token) == 0 else list(token)
    if row is not None:
        return [*(accepted for accepted in row if int(accepted) >= 0), *last]
    drafts = draft_tokens.tolist() if hasattr(draft_tokens, "tolist") else list(draft_tokens)
    if number is None and mask is not None:
        number = next((place for place, accepted in enumerate(mask) if not accepted), len(drafts))
    return [*drafts[: int(number or 0)], *last]
