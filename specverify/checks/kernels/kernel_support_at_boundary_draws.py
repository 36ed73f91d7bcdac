"""No token with p = 0 is emitted if one uniform is at an end of its range and the others are ordinary.

The ends of [0, 1) are 0 and the largest number of the dtype below 1; those of (0, 1] are the smallest number that
generators return and 1. Two kinds of rows are examined: rows of rational models, and rows of rounded float32 pmfs. In
half of the rounded rows p and q differ by rounding alone, so that the residual may be empty. In the rounded rows the
sums over the vocabulary have rounding errors, and the first and the last token have probability 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.kernels.row_texts import kernel_check
from specverify.reference import Claim
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_calls import KernelBatch, called, given_batch
from specverify.subjects.kernel_rounds import ENTRIES, KernelRounds, given_random
from specverify.subjects.kernel_tables import SIZE

ROWS = 2000
ROUNDED = 64
SMALLEST = 2.0**-32
"""The smallest uniform that cuRAND returns."""
LIGHT = 2.0**-60


class BoundaryRows(NamedTuple):
    """Rows for a call of a kernel, each with one random number at an end of its range.

    ``batch`` has the drafts and the rows of p and q, ``coins`` and ``last`` are the random numbers, and ``said``
    describes, for each row, the number at an end.
    """

    batch: KernelBatch
    coins: Any
    """Uniforms of the tests ``[rows, gamma]``."""
    last: Any
    """The last uniform of each row ``[rows]``; for noise, the share of the first of two tokens."""
    said: tuple[str, ...]
    """For each row, a description of the number at an end."""


def ends_of(kernel: Kernel) -> dict[str, float]:
    """Return the smallest and the largest uniform that the kernel can get in its dtype, as {description: value}."""
    xp = kernel.xp
    if kernel.convention.uniforms == "(0, 1]":
        return {f"{SMALLEST:.3g}": SMALLEST, "exactly 1": 1.0}
    below = 1 - float(xp.finfo(getattr(xp, kernel.of_uniforms)).eps) / 2
    return {"exactly 0": 0.0, f"{below!r}, the largest below 1": below}


def table_rows(rounds: KernelRounds) -> BoundaryRows:
    """Return rows with rational models, each with one uniform at an end of its range.

    The other uniforms are in the middle of a cell, a box of uniforms in which the rule emits the same tokens. Cells and
    uniforms are chosen at random. ``rounds`` is the kernel in one setting (gamma, vocabulary), with its cells.
    """
    rng, kernel, gamma = np.random.default_rng(4), rounds.kernel, rounds.gamma
    places = range(gamma) if kernel.race else range(gamma + 1)
    every = [(cell, place, end) for cell in rounds.cells for place in places for end in ends_of(kernel)]
    chosen = [every[i] for i in rng.permutation(len(every))[: min(ROWS, rounds.most)]]
    cases = np.array([cell.case for cell, _, _ in chosen])
    middles = np.array(
        [[float(a + b) / 2 for a, b in zip(cell.low, cell.high, strict=True)][: gamma + 1] for cell, _, _ in chosen]
    )
    for row, (_, place, end) in enumerate(chosen):
        middles[row, place] = ends_of(kernel)[end]
    said = tuple(_said(place, gamma, end) for _, place, end in chosen)
    return BoundaryRows(
        KernelBatch(*(values[cases] for values in rounds.batch)), middles[:, :gamma], middles[:, gamma], said
    )


def rounded_rows(kernel: Kernel, gamma: int, vocabulary: int) -> BoundaryRows:
    """Return rows of float32 pmfs over ``vocabulary`` tokens, with ``gamma`` drafts, for a call of ``kernel``.

    In half of them q equals p up to the last digit; in the others q is another pmf.
    """
    rng, size = np.random.default_rng(5), min(ROUNDED, max(4, ENTRIES // ((2 * gamma + 1) * vocabulary)))
    p = rng.gamma(0.5, size=(size, gamma + 1, vocabulary)) + LIGHT
    p[..., [0, -1]] = 0
    p = (p / p.sum(axis=-1, keepdims=True)).astype(np.float32)
    q = np.nextafter(p[:, :gamma], np.float32(2)) * (p[:, :gamma] > 0)
    other = np.arange(size) % 2 == 1
    q[other] = np.roll(q[other], 1, axis=-1) * (p[other, :gamma] > 0)
    drafts = q.argmax(axis=-1)
    coins, last = rng.random((size, gamma)), rng.random(size)
    ends, said = list(ends_of(kernel).items()), []
    for row in range(size):
        place, (name, end) = (row // 2) % (gamma + 1), ends[row // 2 // (gamma + 1) % 2]
        if kernel.race:
            place = place % gamma
        (coins[row] if place < gamma else last[row : row + 1])[place % gamma if place < gamma else 0] = end
        said.append(_said(place, gamma, name))
    return BoundaryRows(
        KernelBatch(p.astype(float), q.astype(float), drafts, np.full(size, gamma)), coins, last, tuple(said)
    )


def _said(place: int, gamma: int, end: str) -> str:
    return f"the uniform of draft {place + 1} is {end}" if place < gamma else f"the final uniform is {end}"


def examine(kernel: Kernel, asked: Sequence[Callable[[], BoundaryRows]], _: Conditions) -> Examination:
    """Run the kernel on the rows of each function of ``asked``, and search the emitted tokens for forbidden ones.

    A token outside the vocabulary or with p = 0 is forbidden and refutes. For each vocabulary and each random number at
    an end, only the first forbidden token is reported.
    """
    result, runs = dict[str, tuple[BoundaryRows, Any, int, int, int | None]](), 0
    for make in asked:
        rows = make()
        answers = host_array(called(kernel, given_batch(kernel, rows.batch), _random(kernel, rows)))
        runs += len(answers)
        for row, (position, token) in _forbidden(rows.batch, answers):
            when = f"vocabulary {rows.batch.p.shape[-1]}, {rows.said[row]}"
            result.setdefault(when, (rows, answers[row], row, position, token))
    figures = {"runs": runs}
    if not result:
        return Examination("nothing forbidden comes out", rational=False, figures=figures)
    (when, first), *others = result.items()
    rows, answer, row, position, token = first
    length = int(rows.batch.lengths[row])
    let = (
        f"{when}, {kernel.convention.dtype}",
        f"row {row + 1} of {len(rows.said)}, drafts {rows.batch.drafts[row, :length].tolist()}",
        f"accept uniforms {rows.coins[row, :length].tolist()}, last {float(rows.last[row])!r}",
        *_masses(rows.batch, row, position, token),
    )
    then = f"{_came(rows, answer, position, token)}, when {rows.said[row]}"
    because = tuple(f"{name}: {_came(at, answer, place, token)}" for name, (at, answer, _, place, token) in others)
    example = Counterexample(let, then, because[:8])
    return Examination(then, failed=True, rational=False, counterexample=example, figures=figures)


def _came(rows: BoundaryRows, answer: Any, position: int, token: int | None) -> str:
    """Return words for the emitted tokens, and why ``token`` at ``position`` is forbidden.

    ``answer`` is the row of the kernel's output with these tokens, and ``rows`` has the vocabulary. ``token`` None
    means that no token was emitted.
    """
    emitted, vocabulary = [t for t in answer.tolist() if t != -1], rows.batch.p.shape[-1]
    if token is None:
        return "nothing comes out"
    if not 0 <= token < vocabulary:
        return f"{emitted} comes out, and token {token} is not in the vocabulary of {vocabulary} tokens"
    return f"{emitted} comes out, and token {token} has probability 0 at position {position + 1}"


def _masses(batch: KernelBatch, row: int, position: int, token: int | None) -> Iterator[str]:
    if token is not None and position < int(batch.lengths[row]):
        drafted = int(batch.drafts[row, position])
        p, q = (float(rows[row, position, drafted]) for rows in (batch.p, batch.q))
        yield f"draft {position + 1} is {drafted}, p = {p!r}, q = {q!r}"


def _random(kernel: Kernel, rows: BoundaryRows) -> tuple[Any, Any]:
    last = rows.last
    if kernel.race:
        rng = np.random.default_rng(6)
        last = rng.exponential(size=(len(last), rows.batch.p.shape[-1]))
        last = -np.log(last) if kernel.convention.recovery == "gumbel" else last
    return given_random(kernel, rows.coins, last)


def _forbidden(batch: KernelBatch, answers: Any) -> Iterator[tuple[int, tuple[int, int | None]]]:
    """Yield (row, (position, token)) for the first forbidden token of each row of ``batch`` that has one.

    A token outside the vocabulary or with p = 0 is forbidden. A row without tokens gives (row, (0, None)). ``answers``
    are the emitted tokens.
    """
    vocabulary = batch.p.shape[-1]
    for row, tokens in enumerate(answers.tolist()):
        kept = [token for token in tokens if token != -1][: int(batch.lengths[row]) + 1]
        if not kept:
            yield row, (0, None)
        for position, token in enumerate(kept):
            if not 0 <= token < vocabulary or not batch.p[row, position, token] > 0:
                yield row, (position, token)
                break


def checks_of(all_rounds: Sequence[KernelRounds]) -> tuple[Check, Check]:
    """Return the two checks of one kernel at boundary draws: on rows of rational models, and on rounded float32 rows.

    ``all_rounds`` are the settings (gamma, vocabulary) of the kernel.
    """
    kernel = all_rounds[0].kernel
    tables = [partial(table_rows, rounds) for rounds in all_rounds if rounds.vocabulary == SIZE]
    rounded = [partial(rounded_rows, kernel, rounds.gamma, max(8, rounds.vocabulary)) for rounds in all_rounds]
    return (
        kernel_check(
            "support_at_boundary_draws",
            "no token of target probability 0 is emitted where a uniform is at an end of its interval",
            Claim.SUPPORTED,
            Evidence.EXACT,
            {"tables": partial(examine, kernel, tables)},
        ),
        kernel_check(
            "support_at_rounded_rows",
            "nor where p and q are apart by rounding alone, or a sum over the vocabulary rounds",
            Claim.SUPPORTED,
            Evidence.EXACT,
            {"rounded rows": partial(examine, kernel, rounded)},
        ),
    )
