"""Different rows of one call, and different calls, use independent random numbers.

The rows are designed so that each shows one random number of the kernel as a fair bit. The number is that of an accept
test, of a replacement or of the bonus, by the kind of the row. Three faults repeat bits:

* Two rows share a stream: they show the same bits in every call.
* Two calls start at the same state: they show the same bits in every row.
* A stream is read again at an offset: many consecutive rows show the same bits.

The probability of such repetitions among independent fair bits is known, so no threshold has to be chosen. Weaker
dependence, between rows at a distance and between consecutive calls, is tested by contingency tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.kernels.judged_tables import examine_tables
from specverify.checks.kernels.row_texts import kernel_check
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_calls import as_given
from specverify.subjects.kernel_designs import Design, bits, design_of
from specverify.subjects.kernel_samples import Calls, answers, binned, bits_of
from specverify.subjects.kernel_tables import SIZE

ROWS = 1024
"""The most rows of a call in which equal bits are searched."""
SEEDS = 16
"""Number of further seeds, each with the first offset."""
SPARE = 1.5
LAGS = tuple(2**i for i in range(11))
"""Distances between the two rows of a pair in the tables."""


class Repeats(NamedTuple):
    """The result of a search for random bits that occur twice.

    ``rows`` describes bits that two rows share, and ``calls`` bits that two calls share; each is "" if there are none.
    ``samples`` is the number of bits that were compared.
    """

    rows: str
    calls: str
    samples: int


def bit_design(kernel: Kernel, gamma: int) -> Design:
    """Return a batch in which each row shows one random number of the kernel as a fair bit.

    Equal bits then show that rows share random numbers. ``gamma`` is the number of drafts, and ``kernel`` determines
    the padding of rows with fewer.
    """
    kinds = bits(gamma)
    return design_of(kinds, [1 / len(kinds)] * len(kinds), SIZE, kernel.convention.draft_padding)


def repeats(kernel: Kernel, design: Design, calls: Calls, alarm: float, seed: int) -> Repeats:
    """Search for equal bits: two rows in all calls, two calls in all rows, or two runs of consecutive rows.

    The numbers of calls and rows are large enough that each of the three occurs by chance with a probability below
    ``alarm / 3``. If the kernel takes a seed, calls with other seeds are added. ``design`` is the batch, and
    ``calls`` has the most rows of a call.
    """
    needed = math.log2(3 / alarm)
    rows = max(min(calls.rows, ROWS), math.ceil(SPARE * (needed + 40)))
    number = math.ceil(SPARE * (2 * math.log2(rows) + needed))
    others = SEEDS if kernel.convention.uniforms == "seed" else 0
    keys = (*((0, offset) for offset in range(number)), *((more, 0) for more in range(1, others + 1)))
    result = answers(kernel, design, rows, seed, Calls(rows, keys))
    seen = np.stack([host_array(bits_of(kernel, design, answer)) for answer in result]).astype(np.uint8)
    return Repeats(*_found(seen, math.ceil(SPARE * (2 * math.log2(seen.size) + needed)), keys), samples=seen.size)


def _found(seen: Any, length: int, keys: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Return two descriptions of repeated bits: in different rows, and in different calls; "" if there are none.

    If calls repeat each other, two rows that agree in one call agree in all of them. So if two calls are equal in all
    rows, equal rows are reported only if bits also repeat within one call.

    Args:
        seen: The bits ``[calls, rows]``.
        length: The number of consecutive rows that must be equal.
        keys: (number added to the seed, offset of the generator) of each call.
    """
    number, rows = seen.shape
    names = [f"offset {offset}" if not more else f"seed {more} more" for more, offset in keys]
    within, across = _stretches(seen, length, names)
    pair, calls = _alike(seen.T), _alike(seen)
    again = calls and f"calls of {names[calls[0]]} and {names[calls[1]]} answer alike in all {rows} rows"
    if pair and again and not within:
        pair = None
    alike = pair and f"rows {pair[0] + 1} and {pair[1] + 1} of {rows} answer alike in all {number} calls"
    return alike or within, again or across


def _stretches(seen: Any, length: int, names: Sequence[str]) -> tuple[str, str]:
    """Return two descriptions of ``length`` consecutive rows whose bits occur twice: within one call, and in two calls.

    ``seen`` are the bits ``[calls, rows]``, and ``names`` the names of the calls. A description is "" if there are no
    such rows.
    """
    stretches = np.lib.stride_tricks.sliding_window_view(seen, length, axis=1)
    packed = np.packbits(stretches.reshape(-1, length), axis=1)
    each, within, across = stretches.shape[1], "", ""
    for first, second in _equal(packed):
        (one, row), (other, place) = divmod(first, each), divmod(second, each)
        here, there = f"row {row + 1} of the call of {names[one]}", f"row {place + 1} of that of {names[other]}"
        said = f"{length} rows on from {here} answer like those from {there}"
        within, across = (within or said, across) if one == other else (within, across or said)
    return within, across


def _alike(lines: Any) -> tuple[int, int] | None:
    """Return the indices of two equal rows of the array ``lines``; None if all rows differ."""
    return next(iter(_equal(np.packbits(lines, axis=1))), None)


def _equal(lines: Any) -> list[tuple[int, int]]:
    """Return (first row with the same content, row) for each row of the array ``lines`` that repeats an earlier one."""
    _, first, inverse = np.unique(lines, axis=0, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    return [(int(earlier[i]), int(i)) for i in np.flatnonzero(earlier != np.arange(len(lines)))]


def tables_of_rows(kernel: Kernel, design: Design, calls: Calls, samples: int, seed: int) -> dict[str, Any]:
    """Return name -> contingency table of the pairs of bits that two rows of one call show.

    The kind of a row states which random number its bit shows. There is a table for each pair of kinds and each
    distance between the two rows. ``samples`` is the number of pairs in each table, and ``design`` the batch. ``calls``
    states how the rows are divided among calls. ``seed`` seeds the calls of ``kernel``.
    """
    kinds = len(design.kinds)
    wanted = 2 * samples * kinds**2
    size = min(calls.rows, wanted)
    lags = [lag for lag in LAGS if 2 * lag <= size]
    left = {lag: np.flatnonzero(np.arange(size) // lag % 2 == 0) for lag in lags}
    left = {lag: at[at + lag < size] for lag, at in left.items()}
    places = {lag: (as_given(kernel, at), as_given(kernel, at + lag)) for lag, at in left.items()}
    total = {lag: np.zeros(9 * kinds**2, dtype=np.int64) for lag in lags}
    for answer in answers(kernel, design, -(-wanted // size) * size, seed, calls._replace(rows=size)):
        keys = answer.kinds * 3 + bits_of(kernel, design, answer)
        for lag, (one, other) in places.items():
            pair = kernel.xp.take(keys, one, axis=0) * 3 * kinds + kernel.xp.take(keys, other, axis=0)
            total[lag] += host_array(binned(kernel, pair, 9 * kinds**2)).astype(np.int64)
    return {name: table for lag in lags for name, table in _tables(design, total[lag], f"{lag} rows on").items()}


def tables_of_calls(kernel: Kernel, design: Design, calls: Calls, samples: int, seed: int) -> dict[str, Any]:
    """Return name -> contingency table of the pairs of bits that one row shows in a call and in the next call.

    The kind of a row states which random number its bit shows. There is a table for each pair of kinds. ``samples`` is
    the number of pairs in each table, and ``design`` the batch. ``calls`` states how the rows are divided among calls.
    ``seed`` seeds the calls of ``kernel``.
    """
    kinds = len(design.kinds)
    wanted = 2 * samples * kinds**2
    size = min(calls.rows, max(64, wanted // 2))
    total, before = np.zeros(9 * kinds**2, dtype=np.int64), None
    for answer in answers(kernel, design, -(-wanted // (2 * size)) * 2 * size, seed, calls._replace(rows=size)):
        keys = answer.kinds * 3 + bits_of(kernel, design, answer)
        if before is None:
            before = keys
            continue
        total += host_array(binned(kernel, before * 3 * kinds + keys, len(total))).astype(np.int64)
        before = None
    return _tables(design, total, "in the next call")


def _tables(design: Design, counts: Any, where: str) -> dict[str, Any]:
    kinds = len(design.kinds)
    table = counts.reshape(kinds, 3, kinds, 3)[:, :2, :, :2]
    return {
        f"{one.name}, and {other.name} {where}": table[i, :, j, :]
        for i, one in enumerate(design.kinds)
        for j, other in enumerate(design.kinds)
    }


def _examine(
    which: str, find: Callable[[], Repeats], rest: Callable[[Conditions], Examination], conditions: Conditions
) -> Examination:
    """Return a refutation if bits repeat in ``which`` ("rows" or "calls"); else the examination of the tables.

    ``find()`` searches for repeated bits, and ``rest(conditions)`` tests the tables. If bits repeat in rows only, the
    result for calls is unknown.
    """
    result = find()
    if which == "calls" and result.rows and not result.calls:
        return Examination(
            "rows depend on each other, so calls cannot be compared: see rows_are_independent", unknown=True
        )
    twice = result.rows if which == "rows" else result.calls
    if twice:
        example = Counterexample((f"{result.samples} rows, each of which shows one random number as a bit",), twice)
        figures = {"samples": result.samples}
        return Examination(twice, failed=True, rational=False, counterexample=example, figures=figures)
    judged = rest(conditions)
    return judged._replace(figures={**judged.figures, "samples": judged.figures["samples"] + result.samples})


def checks_of(kernel: Kernel, gamma: int, samples: int, alarm: float, calls: Calls, seed: int) -> tuple[Check, ...]:
    """Return the two checks of a kernel with ``gamma`` drafts per row: of its rows, and of its calls.

    Args:
        kernel: The kernel.
        gamma: The number of drafts.
        samples: The number of pairs of bits in each table.
        alarm: The false-alarm rate of each check.
        calls: How the sampled rows are divided among calls of the kernel.
        seed: The seed of the search for repeated bits.
    """
    design, kinds = bit_design(kernel, gamma), (gamma + 2) ** 2
    find = cache(partial(repeats, kernel, design, calls, alarm / 2, seed))
    examined = {
        "rows": (tables_of_rows, kinds * len(LAGS), "rows of a call do not depend on each other"),
        "calls": (tables_of_calls, kinds, "calls do not depend on each other"),
    }
    result = []
    for which, (tables, number, summary) in examined.items():
        judge = partial(examine_tables, partial(tables, kernel, design, calls), samples, alarm / 2 / number, summary)
        setting = {f"gamma={gamma}": partial(_examine, which, find, judge)}
        result.append(kernel_check(f"{which}_are_independent", summary, None, Evidence.STATISTICAL, setting))
    return tuple(result)
