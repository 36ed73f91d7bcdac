"""Read the result of a verifier of trees: emitted tokens, or accepted tokens and the weights of the next one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from specverify.intercept.symbolic.deferred import known
from specverify.reference import Tokens
from specverify.subjects.emitted import accepted_row, emitted_row, ends_left_open, type_and_shape
from specverify.subjects.subject import UnusableSubject

FLOATS = ("float32", "float64")


class TreeAnswer(NamedTuple):
    """The emitted tokens, and the weights of one more token if the verifier leaves its draw to the caller."""

    tokens: Tokens
    weights: tuple[float, ...] | None = None
    """``[vocabulary]``, at least one of them positive; None if the verifier drew the last token."""
    kind: str = ""
    """The dtype of the weights, one of ``FLOATS``."""


def read_answer(answer: Any, parents: Tokens, vocabulary: int, who: str = "it") -> TreeAnswer:
    """Return ``answer``, the result of a verifier for the tree with these ``parents``, as a ``TreeAnswer``.

    A valid result is a row of at least 1 token, or a pair: a row of at least 0 accepted tokens, and weights
    ``[vocabulary]``. It accepts at most as many tokens as the tree has nodes. Whether they are a path is not tested
    here. Raises ``UnusableSubject``, naming the tree as ``who``, for any other result.
    """
    nodes = len(parents)
    if not _is_pair(answer):
        with ends_left_open(0):  # which node a last token lies below is asked of every tree
            return TreeAnswer(emitted_row(answer, nodes, who))
    tokens, weights = answer
    return TreeAnswer(accepted_row(tokens, nodes, who), *_read_weights(weights, vocabulary, who))


def read_answers(answer: Any, trees: Sequence[Tokens], vocabulary: int) -> tuple[TreeAnswer, ...]:
    """Return the result for each tree of a batch over ``vocabulary`` tokens; ``answer`` is the result for the batch.

    ``trees`` has, for each tree, the parents of its nodes. Raises ``UnusableSubject`` unless there is one result for
    each tree.
    """
    if getattr(answer, "ndim", 2) != 2 or not hasattr(answer, "__len__"):
        raise UnusableSubject(
            f"it returned {type_and_shape(answer)}, expected an answer for each of {len(trees)} trees"
        )
    if len(answer) != len(trees):
        raise UnusableSubject(f"it returned {len(answer)} answers for a batch of {len(trees)} trees, expected as many")
    return tuple(
        read_answer(answer[place], parents, vocabulary, f"tree {place + 1} of {len(trees)}")
        for place, parents in enumerate(trees)
    )


def _is_pair(answer: Any) -> bool:
    """Return whether the result ``answer`` is a pair of tokens and weights, and not a row of two tokens."""
    return isinstance(answer, (tuple, list)) and len(answer) == 2 and _is_row(answer[1])


def _is_row(value: Any) -> bool:
    return isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) > 0


def _read_weights(weights: Any, vocabulary: int, who: str) -> tuple[tuple[float, ...], str]:
    kind = str(getattr(weights, "dtype", "float64")).rpartition(".")[2]
    if kind not in FLOATS:
        raise UnusableSubject(f"{who} returned weights of the next token in {kind}, expected {' or '.join(FLOATS)}")
    if tuple(getattr(weights, "shape", (len(weights),))) != (vocabulary,):
        raise UnusableSubject(
            f"{who} returned weights of the next token as {type_and_shape(weights)}, expected [vocabulary]"
        )
    try:
        row = weights.tolist() if hasattr(weights, "tolist") else weights
        values = tuple(float(known(value)) for value in row)
    except (TypeError, ValueError):
        raise UnusableSubject(f"{who} returned {type_and_shape(weights)}, expected weights of the next token") from None
    if not all(math.isfinite(value) and value >= 0 for value in values) or not any(values):
        raise UnusableSubject(f"{who} returned the weights {values} of the next token, expected a positive sum")
    return values, kind
