"""Calls of a verifier on arguments that the user chose, prepared for the checks.

Each call is a function of draws, with its rows of p and q. Its vocabulary, number of drafts and batch are the user's
(``recorded_calls``).
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.base.arguments import argument_error
from specverify.base.callables import first_line, told_apart
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic.large import at_large
from specverify.laws.call_paths import Ending
from specverify.laws.rounding import FLOAT32, spacing
from specverify.reference import Claim, Draws, Tokens
from specverify.subjects.answer_conventions import with_rows
from specverify.subjects.array_kinds import BareVerifier, takes_tensors
from specverify.subjects.batch_answers import check_rows
from specverify.subjects.batch_call import accepted_whole, invoked, rejected_at_once
from specverify.subjects.forms import BATCHED, LOGITS, ROW
from specverify.subjects.found_order import in_found_order
from specverify.subjects.open_rows import ending_of
from specverify.subjects.recorded_calls import AnyCall, BatchedCall, Call, LogitsCall, batch_rows, dtype_of, rows_of
from specverify.subjects.subject import GivenCall, OpenedCall, Subject


def calls_subject(verify: BareVerifier, name: str, calls: Sequence[Any]) -> Subject:
    """Return the subject ``name`` of the verifier ``verify``, to be examined by the user's ``calls`` only.

    ``given_calls`` describes the accepted calls.
    """
    kinds = {type(call) for call in calls}
    form = BATCHED if BatchedCall in kinds else LOGITS if LogitsCall in kinds else ROW
    ordered = in_found_order(verify, lambda _: form)
    return Subject(
        name=name,
        summary=first_line(verify, "a verifier"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        situations=(*given_calls(told_apart(ordered.verify), calls),),
        notes=ordered.notes,
    )


def given_calls(verify: BareVerifier, calls: Sequence[Any]) -> tuple[GivenCall, ...]:
    """Return the rows of ``calls`` to examine, each as a call of ``verify`` in which only this row is random.

    A call is one of ``recorded_calls``, or an object with a ``name`` and a method ``call()`` that generates one. Of a
    batch, the first, the middle and the last row are examined, unless they have no drafts. Raises ``ValueError`` for an
    invalid call.
    """
    result = []
    for call in calls:
        if isinstance(call, BatchedCall):
            rows = batch_rows(call)
            places = sorted({0, len(rows) // 2, len(rows) - 1})
            result += [
                GivenCall(f"{call.name}, {rows[place].name}", partial(_of_batch, verify, call, rows, place))
                for place in places
                if len(rows[place].draft_tokens)
            ]
            for place in places:
                rows_of(rows[place])
        elif isinstance(call, (Call, LogitsCall)):
            rows_of(call)
            result.append(GivenCall(call.name, partial(_of_row, verify, call)))
        elif callable(getattr(call, "call", None)):
            result.append(GivenCall(call.name, partial(_made, verify, call)))
        else:
            raise argument_error("a case", call, "a Call, a LogitsCall, a BatchedCall or one of hard_calls")
    return tuple(result)


def _made(verify: BareVerifier, spec: Any) -> OpenedCall:
    call = spec.call()
    return given_calls(verify, [call])[0].open()


def _of_row(verify: BareVerifier, call: Call | LogitsCall) -> OpenedCall:
    rows, dtype = rows_of(call), dtype_of(call[0])
    named = _parameters(verify, call) if isinstance(call, LogitsCall) else {}
    form = LOGITS if isinstance(call, LogitsCall) else ROW
    invoke = partial(with_rows(verify, form, now=True), **named)
    run = partial(_run, invoke, _Arrays(invoke, call[:3]), partial(ending_of, drafts=len(rows.drafts)))
    return OpenedCall(run, rows, dtype, partial(_alike, verify, call))


def _alike(verify: BareVerifier, like: AnyCall, p: Any, q: Any, drafts: Tokens) -> OpenedCall:
    """Return a call of ``verify`` on the rows ``p``, ``q`` and ``drafts``, given in float64.

    The call has the form (one row, logits or batch), the array library and the dtype of the call ``like``.
    """
    tensors = sys.modules["torch"] if hasattr(like[0], "detach") else None

    def stored(array: Any) -> Any:
        return tensors.from_numpy(array).to(like[0].dtype) if tensors else array.astype(like[0].dtype)

    def whole(numbers: Any) -> Any:
        return tensors.tensor(numbers) if tensors else np.array(numbers)

    if isinstance(like, LogitsCall):
        with np.errstate(divide="ignore"):
            return _of_row(verify, LogitsCall(stored(np.log(p)), stored(np.log(q)), whole(drafts)))
    if isinstance(like, Call):
        return _of_row(verify, Call(stored(p), stored(q), whole(drafts)))
    lengths = None if like.lengths is None else whole([len(drafts)])
    batch = BatchedCall(stored(p[None]), stored(q[None]), whole([drafts]), lengths)
    return _of_batch(verify, batch, batch_rows(batch), 0)


def _run(
    verify: BareVerifier, arrays: _Arrays, read: Callable[[Any], Ending], draws: Draws, boundary: Boundary | None = None
) -> Ending:
    """Call ``verify`` on ``arrays`` with intercepted draws, and return ``read(result)``, the emitted tokens.

    The last token may stay symbolic (without a value). ``boundary`` sets random numbers to values near an end of their
    range; if it is None, they are symbolic too.
    """
    given = arrays.fresh()
    with warnings.catch_warnings(), at_large(short=arrays.short), answered_everywhere(draws, boundary):
        warnings.simplefilter("ignore")  # a division by zero that is warned of is not yet wrong
        return read(verify(*given))


class _Arrays:
    """The arguments of a verifier's call, in the array library of the verifier.

    They are restored to their original values before every call, because a verifier may write into them.
    """

    def __init__(self, verify: BareVerifier, given: Sequence[Any]) -> None:
        self._given = tuple(map(_owned, given))
        in_numpy = not any(hasattr(array, "detach") for array in self._given)
        if in_numpy and takes_tensors(verify, self._given):
            self._given = tuple(sys.modules["torch"].from_numpy(array) for array in self._given)
        self._handed = tuple(map(_copied, self._given))

    @property
    def short(self) -> bool:
        """Return whether the rows have a 16-bit float dtype."""
        return any(spacing(array.dtype) > FLOAT32 for array in self._given[:2])

    def fresh(self) -> tuple[Any, ...]:
        """Return the arguments; an argument that a call has written to is replaced by a new copy."""
        pairs = zip(self._handed, self._given, strict=True)
        self._handed = tuple(array if _equal(array, before) else _copied(before) for array, before in pairs)
        return self._handed


def _owned(array: Any) -> Any:
    return array.detach() if hasattr(array, "detach") else np.asarray(array)


def _copied(array: Any) -> Any:
    return array.clone() if hasattr(array, "detach") else array.copy()


def _equal(one: Any, other: Any) -> bool:
    return one.shape == other.shape and np.array_equal(_bits(one), _bits(other))


def _bits(array: Any) -> Any:
    """Return the memory of an array as 16-bit integers, several for each element of a wider dtype.

    It serves to compare arrays bit by bit, so that 0.0 and -0.0 differ.
    """
    if hasattr(array, "detach"):
        array = array.cpu().contiguous().view(sys.modules["torch"].int16).numpy()
    return np.ascontiguousarray(array).view(np.int16)


def _parameters(verify: BareVerifier, call: LogitsCall) -> dict[str, Any]:
    """Return the value of every sampling parameter that the verifier ``verify`` takes, by name.

    A parameter that ``call`` does not set has its neutral value. Raises ``ValueError`` if the call sets a parameter
    that the verifier does not take.
    """
    taken = set(inspect.signature(verify).parameters)
    neutral = {"temperature": 1.0, "top_k": call.target_logits.shape[-1], "top_p": 1.0, "min_p": 0.0}
    result = {}
    for name, otherwise in neutral.items():
        value = getattr(call, name)
        if name in taken:
            result[name] = otherwise if value is None else value
        elif value not in {None, otherwise}:
            raise ValueError(f"the call has {name}={value}, expected a verifier with a parameter {name}")
    return result


def _of_batch(verify: BareVerifier, call: BatchedCall, rows: Sequence[Call], place: int) -> OpenedCall:
    """Return a call of ``verify`` on the batch ``call`` in which only row ``place`` is random.

    All other rows are replaced by rows with certain outcomes and as many drafts. ``rows`` are the rows of ``call``.
    """
    mine = rows_of(rows[place])
    p, q, drafts = (_copied(_owned(array)) for array in (call.p, call.q, call.draft_tokens))
    for row in range(len(rows)):
        if row != place:
            count = len(rows[row].draft_tokens)
            certain = (accepted_whole, rejected_at_once)[row % 2](count, mine.vocabulary)
            _put(p[row], certain.p)
            _put(q[row], certain.q)
            _put(drafts[row], np.array(certain.drafts, dtype=np.int64))
    lengths = () if call.lengths is None else (call.lengths,)
    names = ("p", "q", "draft_tokens", "lengths")[: 3 + len(lengths)]
    invoke = partial(invoked, with_rows(verify, BATCHED, now=True), {}, names)
    arrays = _Arrays(invoke, (p, q, drafts, *map(_copied, map(_owned, lengths))))

    def read(answer: Any) -> Ending:
        check_rows(answer, len(rows))
        return ending_of(answer[place], len(mine.drafts), f"row {place + 1} of {len(rows)}")

    return OpenedCall(partial(_run, invoke, arrays, read), mine, dtype_of(call.p), partial(_alike, verify, call))


def _put(array: Any, values: Any) -> None:
    if hasattr(array, "detach"):
        values = sys.modules["torch"].from_numpy(values).to(array.dtype)
    array[: len(values)] = values
