"""One call of a verifier at the size that its user needs: p, q and drafts, recorded from a model or generated.

    Call(p, q, draft_tokens)
    LogitsCall(target_logits, draft_logits, draft_tokens, temperature=0.8, top_p=0.95)
    BatchedCall(p, q, draft_tokens, lengths)

Shapes are those of ``verifier``, ``logits_verifier`` and ``batched_verifier``. Arrays are NumPy's or torch's, in
float64, float32, float16 or (torch) bfloat16. Calls are validated before anything runs: ``ValueError`` describes the
fault in one sentence.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.base.arguments import argument_error
from specverify.laws.call_rule import PmfRow, Rows
from specverify.laws.rounding import spacing
from specverify.reference import Tokens
from specverify.reference.warpers import check_min_p, check_temperature, check_top_k, check_top_p
from specverify.subjects.processed_rows import processed_row

TOLERANCES = {"float64": 1e-6, "float32": 1e-3, "float16": 2e-2, "bfloat16": 2e-2}
"""How far from 1 a row of probabilities may sum, by dtype: the rounding of its entries, and of one softmax."""


class Call(NamedTuple):
    """One call of a verifier for one request: the rows of p and q, and the drafts.

    ``name`` is its name in reports.
    """

    p: Any
    """Probabilities ``[gamma + 1, vocabulary]``."""
    q: Any
    """Probabilities ``[gamma, vocabulary]``."""
    draft_tokens: Any
    """Drafted token ids ``[gamma]``."""
    name: str = "recorded"


class LogitsCall(NamedTuple):
    """One call of a verifier of logits for one request, with the sampling parameters passed to the verifier.

    ``temperature``, ``top_k``, ``top_p`` and ``min_p`` are these parameters (None: no truncation). ``name`` is the name
    of the call in reports.
    """

    target_logits: Any
    """Logits of the target ``[gamma + 1, vocabulary]``; minus infinity forbids a token."""
    draft_logits: Any
    """Logits of the draft model ``[gamma, vocabulary]``."""
    draft_tokens: Any
    """Drafted token ids ``[gamma]``."""
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    name: str = "recorded"


class BatchedCall(NamedTuple):
    """One call of a verifier for a batch of several requests, each with its own rows of p and q and its own drafts.

    ``name`` is its name in reports.
    """

    p: Any
    """Probabilities ``[rows, gamma + 1, vocabulary]``."""
    q: Any
    """Probabilities ``[rows, gamma, vocabulary]``."""
    draft_tokens: Any
    """Drafted token ids ``[rows, gamma]``."""
    lengths: Any = None
    """``[rows]``: the number of drafts of each row; None if all rows have gamma drafts."""
    name: str = "recorded"


AnyCall: TypeAlias = Call | LogitsCall | BatchedCall


def rows_of(call: Call | LogitsCall) -> Rows:
    """Return the rows of p and q, in float64, and the drafts of a call that verifies one request (no batch).

    Raises ``ValueError`` for an invalid call.
    """
    if isinstance(call, LogitsCall):
        p_name, q_name, p, q = "target_logits", "draft_logits", call.target_logits, call.draft_logits
    else:
        p_name, q_name, p, q = "p", "q", call.p, call.q
    p, q, drafts = _of_shape(p, p_name, 2), _of_shape(q, q_name, 2), _drafts(call.draft_tokens)
    gamma, vocabulary = len(drafts), p.shape[1]
    if p.shape[0] != gamma + 1:
        raise ValueError(f"{p_name} has {p.shape[0]} rows for {gamma} drafts, expected one more than drafts")
    if q.shape[0] != gamma:
        raise ValueError(f"{q_name} has {q.shape[0]} rows for {gamma} drafts, expected one for each")
    if q.shape[1] != vocabulary:
        raise ValueError(f"{p_name} has {vocabulary} tokens and {q_name} has {q.shape[1]}, expected one vocabulary")
    if isinstance(call, LogitsCall):
        target = tuple(_of_logits(row, call, f"{p_name}[{i}]") for i, row in enumerate(p))
        drafter = tuple(_of_logits(row, call, f"{q_name}[{i}]") for i, row in enumerate(q))
    else:
        target = tuple(PmfRow(_pmf(row, f"p[{i}]", dtype_of(call.p))) for i, row in enumerate(p))
        drafter = tuple(PmfRow(_pmf(row, f"q[{i}]", dtype_of(call.q))) for i, row in enumerate(q))
    _check_drafts(drafts, drafter, q_name)
    return Rows(target, drafter, drafts)


def _of_shape(array: Any, name: str, dimensions: int) -> Any:
    """Return ``array`` in float64.

    Raises ``ValueError``, calling the array ``name``, unless it is a float array of NumPy or torch with this number of
    dimensions, without NaN.
    """
    wanted = {2: "[rows, vocabulary]", 3: "[batch, rows, vocabulary]"}[dimensions]
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise ValueError(f"{name} is a {type(array).__name__}, expected an array of NumPy or torch {wanted}")
    if dtype_of(array) not in TOLERANCES:
        raise ValueError(f"{name} holds {dtype_of(array)}, expected float64, float32, float16 or bfloat16")
    if len(array.shape) != dimensions or not all(array.shape):
        raise ValueError(f"{name} has the shape {list(array.shape)}, expected {wanted}")
    result = array.detach().double().cpu().numpy() if hasattr(array, "detach") else array.astype(np.float64)
    if np.isnan(result).any():
        raise ValueError(f"{name}{_first_place(np.isnan(result))} is NaN, expected numbers")
    return result


def dtype_of(array: Any) -> str:
    """Return the name of the dtype of a NumPy array or torch tensor."""
    return str(array.dtype).removeprefix("torch.")


def _first_place(wrong: Any) -> str:
    return f"[{', '.join(map(str, np.argwhere(wrong)[0].tolist()))}]"


def _drafts(drafts: Any) -> Tokens:
    result = drafts.detach().cpu().numpy() if hasattr(drafts, "detach") else np.asarray(drafts)
    if result.ndim != 1 or not len(result) or not np.issubdtype(result.dtype, np.integer):
        raise argument_error("draft_tokens", drafts, "a row of at least one token id [gamma]")
    return tuple(result.tolist())


def _pmf(row: Any, name: str, dtype: str) -> Any:
    if (row < 0).any():
        raise ValueError(f"{name}{_first_place(row < 0)} is {row[row < 0][0]:.6g}, expected probabilities >= 0")
    total = float(row.sum())
    if not abs(total - 1) <= TOLERANCES[dtype]:
        raise ValueError(f"{name} sums to {total:.6g}, expected probabilities of {dtype} that sum to 1")
    return row


def _of_logits(row: Any, call: LogitsCall, name: str) -> PmfRow:
    check_temperature(call.temperature)
    for value, check in ((call.top_k, check_top_k), (call.top_p, check_top_p), (call.min_p, check_min_p)):
        if value is not None:
            check(value)
    if not -np.inf < row.max() < np.inf:
        raise ValueError(
            f"the largest of {name} is {row.max()}, expected at least one finite logit and none of infinity"
        )
    coarse = spacing(dtype_of(call.target_logits))
    return processed_row(row, call.temperature, call.top_k, call.top_p, call.min_p, coarse)


def _check_drafts(drafts: Tokens, q: tuple[PmfRow, ...], q_name: str) -> None:
    for i, (token, row) in enumerate(zip(drafts, q, strict=True)):
        if not 0 <= token < len(row.pmf):
            raise ValueError(f"draft_tokens[{i}] is {token}, expected a token of the vocabulary of {len(row.pmf)}")
        if not row.pmf[token] > 0:
            said = f"draft_tokens[{i}] is {token}, which {q_name}[{i}] gives probability 0"
            raise ValueError(f"{said}, expected a token that can have been drafted")


def batch_rows(call: BatchedCall) -> list[Call]:
    """Return each row of a batch as a call with its own number of drafts.

    Raises ``ValueError`` for an invalid batch.
    """
    p, q = _of_shape(call.p, "p", 3), _of_shape(call.q, "q", 3)
    drafts = call.draft_tokens
    if len(getattr(drafts, "shape", ())) != 2 or len({len(p), len(q), len(drafts)}) > 1:
        raise ValueError(
            f"p, q and draft_tokens have the shapes {list(p.shape)}, {list(q.shape)} and "
            f"{list(getattr(drafts, 'shape', ()))}, expected as many rows in each and draft_tokens [rows, gamma]"
        )
    lengths = [drafts.shape[1]] * len(p) if call.lengths is None else [int(length) for length in call.lengths]
    if len(lengths) != len(p) or not all(0 <= length <= drafts.shape[1] for length in lengths):
        expected = f"a number of drafts from 0 to {drafts.shape[1]} for each of {len(p)} rows"
        raise argument_error("lengths", lengths, expected)
    return [
        Call(call.p[row][: length + 1], call.q[row][:length], drafts[row][:length], f"row {row + 1} of {len(p)}")
        for row, length in enumerate(lengths)
    ]
