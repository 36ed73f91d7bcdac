"""Batches for a kernel with an internal generator, made so that each row shows the random numbers of the kernel.

A *design* is a few kinds of batch rows with their frequencies. There are two sorts of designs.

* Fair bits: a row shows one random number of the kernel as a bit, which must be 0 or 1 with probability 1/2. The number
  decides about one draft, the replacement or the bonus token; all other decisions of the row have one outcome.
* Conditions: several kinds of rows show the same bit, and differ in the probabilities of earlier decisions of the row.
  The bit must have the same law in all kinds. If not, two decisions share a random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.grid import drafted, grid_tables
from specverify.reference import Tokens
from specverify.subjects.kernel_calls import KernelBatch
from specverify.subjects.kernel_rounds import ids_of
from specverify.subjects.kernel_tables import PROMPT, SIZE, Situation

ONE, TWO, THREE = np.eye(SIZE)
EITHER = (TWO + THREE) / 2


class RowKind(NamedTuple):
    """A kind of row of a batch: ``p`` and ``q`` over n tokens, the ``drafts``, and the bit that its result shows.

    A result shows a random number of the kernel as one bit, for example whether a draft is accepted. ``name`` describes
    the kind in messages.
    """

    name: str
    p: Any
    """Target probabilities ``[drafts + 1, n]``, with n = 3 or 4."""
    q: Any
    """Draft probabilities ``[drafts, n]``."""
    drafts: Tokens
    bit: tuple[str, int] = ("", 0)
    """The random bit that the row shows. ("accepted", n): whether more than n drafts are accepted. ("token", i): which
    token is at position i."""
    seen: int = 0
    """For a bit ("accepted", n): the number of drafts that must be accepted, else the row has no bit."""


class Design(NamedTuple):
    """The kinds of rows of a batch, at one vocabulary size; ``batch`` has one row of each kind.

    ``ids`` are the ids, in this vocabulary, of the three or four tokens with positive probability.
    """

    kinds: tuple[RowKind, ...]
    shares: tuple[float, ...]
    """The relative frequency of each kind of row."""
    ids: tuple[int, ...]
    batch: KernelBatch

    @property
    def gamma(self) -> int:
        """Return the largest number of drafts of a row."""
        return int(self.batch.drafts.shape[1])


def design_of(kinds: Sequence[RowKind], shares: Sequence[float], vocabulary: int, draft_padding: int) -> Design:
    """Return the design with these kinds of batch rows and their relative frequencies ``shares``.

    ``draft_padding`` is the token id after the drafts of a row. Positions after a row's drafts have pmfs that must not
    affect the result. ``vocabulary`` is the number of tokens.
    """
    size, gamma = kinds[0].p.shape[1], max(len(kind.drafts) for kind in kinds)
    ids = ids_of(vocabulary, "edge" if size == SIZE else "ends")
    p, q = np.zeros((len(kinds), gamma + 1, vocabulary)), np.zeros((len(kinds), gamma, vocabulary))
    p[..., ids[0]], q[..., ids[0]], q[..., ids[-1]] = 1, 0.75, 0.25
    drafts = np.full((len(kinds), gamma), draft_padding)
    for row, kind in enumerate(kinds):
        count = len(kind.drafts)
        p[row, : count + 1], q[row, :count] = 0, 0
        p[row, : count + 1, ids] = kind.p.T
        q[row, :count, ids] = kind.q.reshape(count, size).T
        drafts[row, :count] = [ids[token] for token in kind.drafts]
    return Design(
        tuple(kinds), tuple(shares), ids, KernelBatch(p, q, drafts, np.array([len(kind.drafts) for kind in kinds]))
    )


def drafts_of(situation: Situation) -> tuple[list[RowKind], list[float]]:
    """Return (kinds, probabilities): one kind of batch row for each sequence of drafts, and the probability of each.

    The sequences are those that the draft model of ``situation`` can draw.
    """
    result, size = list(drafted((situation.target, situation.draft), PROMPT, situation.length)), situation.size
    kinds = [
        RowKind(f"drafts {draft}", np.array(p, dtype=float), np.array(q, dtype=float).reshape(len(draft), size), draft)
        for draft, p, q, _ in result
    ]
    return kinds, [float(weight) for *_, weight in result]


def sampled_situation(gamma: int, seed: int) -> Situation:
    """Return models with multiples of 1/16 as probabilities, which every float dtype holds, for ``gamma`` drafts.

    Every pmf has several tokens. ``seed`` selects the models.
    """
    target, draft = grid_tables(SIZE, 16, seed)
    return Situation(f"table {seed}, in 16ths, gamma={gamma}", target, draft, gamma, (0, 1))


def accepted_with(chance: float, *, then: Any = TWO) -> tuple[Any, Any]:
    """Return pmfs p and q for a draft of token 0.

    The draft is accepted with probability ``chance``, and otherwise replaced by a draw from ``then``.
    """
    return chance * ONE + (1 - chance) * then, ONE


def bits(gamma: int) -> list[RowKind]:
    """Return kinds of rows with ``gamma`` drafts, whose results each show one random number of the kernel as a bit.

    There is one kind for each random number that tests a draft, one for the random number that draws the replacement,
    and one for the random number that draws the bonus token.
    """
    sure = accepted_with(1)
    result = []
    for i in range(gamma):
        rows = [*[sure] * i, accepted_with(1 / 2), *[sure] * (gamma - i - 1)]
        result.append(_kind(f"coin of draft {i + 1}", rows, ONE, ("accepted", i)))
    result.append(_kind("replacement", [accepted_with(0, then=EITHER), *[sure] * (gamma - 1)], ONE, ("token", 0)))
    result.append(_kind("bonus", [sure] * gamma, EITHER, ("token", gamma)))
    return result


def coins_after_coins(gamma: int) -> list[RowKind]:
    """Return three kinds of rows with ``gamma`` drafts, whose last draft is accepted with probability 1/2.

    Each earlier draft is accepted with probability 1 in the first kind, 3/4 in the second and 1/2 in the third. The bit
    of a row is whether the last draft is accepted; it counts only if all earlier drafts are accepted.
    """
    return [
        _kind(
            f"after coins of {chance:g}",
            [*[accepted_with(chance)] * (gamma - 1), accepted_with(1 / 2)],
            ONE,
            ("accepted", gamma - 1),
            seen=gamma - 1,
        )
        for chance in (1, 3 / 4, 1 / 2)
    ]


def replacements_after_coins() -> list[RowKind]:
    """Return four kinds of rows with one draft that is replaced by one of two tokens if it is rejected.

    The draft is accepted with probability 0, 1/4, 1/2 and 7/8 in these kinds. The bit of a row is the token that
    replaces the draft.
    """
    return [
        _kind(f"after a coin of {chance:g}", [accepted_with(chance, then=EITHER)], ONE, ("token", 0))
        for chance in (0, 1 / 4, 1 / 2, 7 / 8)
    ]


def replacements_after_drafts(gamma: int, place: int) -> list[RowKind]:
    """Return three kinds of rows with ``gamma`` drafts, whose draft at index ``place`` is rejected with certainty.

    It is replaced by one of two tokens, and this token is the bit of the row. Each draft before it is accepted with
    probability 1 in the first kind, 3/4 in the second and 1/2 in the third.
    """
    then = [accepted_with(0, then=EITHER), *[accepted_with(1)] * (gamma - place - 1)]
    return [
        _kind(f"after coins of {chance:g}", [*[accepted_with(chance)] * place, *then], ONE, ("token", place))
        for chance in (1, 3 / 4, 1 / 2)
    ]


def bonuses_after_coins(gamma: int) -> list[RowKind]:
    """Return three kinds of rows with ``gamma`` drafts, whose bonus token is one of two equally likely tokens.

    The bonus token is the bit of the row. Each draft is accepted with probability 1 in the first kind, 3/4 in the
    second and 1/2 in the third.
    """
    return [
        _kind(f"after coins of {chance:g}", [accepted_with(chance)] * gamma, EITHER, ("token", gamma))
        for chance in (1, 3 / 4, 1 / 2)
    ]


def _kind(name: str, rows: Sequence[tuple[Any, Any]], last: Any, bit: tuple[str, int], seen: int = 0) -> RowKind:
    p, q = (np.array(values) for values in zip(*rows, strict=True))
    return RowKind(name, np.concatenate([p, last[None]]), q, (0,) * len(rows), bit, seen)
