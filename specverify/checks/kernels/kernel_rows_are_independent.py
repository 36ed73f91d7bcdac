"""The result of a kernel's row depends on that row alone: not on other rows, their order, or padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.explaining.counterexample_parts import or_none
from specverify.checks.kernels.answers_are_rounds import SIZES, ordinary_rows
from specverify.checks.kernels.numbers_of_other_rows import numbers_of_other_rows
from specverify.checks.kernels.row_texts import described_rounds, described_row, emitted_ids, kernel_check, models_of
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds, by_rule, decided

ROWS = 257


def examine(rounds: KernelRounds, _: Conditions) -> Examination:
    """Call the kernel with the same rows in several arrangements, and compare each row with its first result.

    ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    rng = np.random.default_rng(1)
    cases, uniforms = ordinary_rows(rounds, min(ROWS, rounds.most), rng)
    first, runs = decided(rounds, cases, uniforms), len(cases)
    for said, changed, rows in _arrangements(rounds, len(cases), rng):
        answers = decided(changed, cases[rows], uniforms[rows])
        runs += len(rows)
        differs = (answers != first[rows]).any(axis=1)
        if differs.any():
            place = int(np.flatnonzero(differs)[0])
            row = int(rows[place])
            where = f"row {place + 1} of {len(rows)}"
            case, seen = int(cases[row]), emitted_ids(rounds, answers[place].tolist())
            row_text = described_row(rounds, case, uniforms[row], where)
            before = f"{emitted_ids(rounds, first[row].tolist())} as row {row + 1} of {len(cases)}"
            then = f"{where}, {said}, gives {seen}; the same row gives {before}"
            example = Counterexample(
                (described_rounds(rounds), *models_of(rounds, case), row_text),
                then,
                (_by_rule(rounds, case, uniforms[row]),),
            )
            if named := or_none(numbers_of_other_rows, rounds, cases, uniforms, first):
                example = example._replace(fault=f"{named}: {then}")
            return Examination(then, failed=True, counterexample=example, figures={"runs": runs})
    return Examination("no row depends on another", figures={"runs": runs})


def _by_rule(rounds: KernelRounds, case: int, uniforms: Any) -> str:
    draft_case: DraftCase = rounds.cases[case]
    return f"the rule answers {emitted_ids(rounds, by_rule(rounds, draft_case, uniforms))}"


def _arrangements(rounds: KernelRounds, rows: int, rng: Any) -> Iterator[tuple[str, KernelRounds, Any]]:
    """Yield (description, rounds, row indices) for each arrangement in which the kernel is called again.

    The rows are reversed, shuffled, reduced to fewer, or get other padding. The indices, below ``rows``, are the rows
    of the call, in their order. ``rng`` shuffles them. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    everything = np.arange(rows)
    yield "in the opposite order", rounds, everything[::-1]
    yield "in another order", rounds, rng.permutation(rows)
    for size in SIZES[:-1]:
        if size < rows:
            yield "among fewer rows", rounds, rng.permutation(rows)[:size]
    if rounds.kernel.ragged:
        yield "with other padding", _other_padding(rounds), everything


def _other_padding(rounds: KernelRounds) -> KernelRounds:
    """Return ``rounds`` with other pmfs after the drafts of each row, which a kernel must ignore."""
    p, q, _, lengths = rounds.batch
    vocabulary, places = rounds.vocabulary, np.arange(rounds.gamma + 1)
    behind_p, behind_q = places > lengths[:, None], places[:-1] >= lengths[:, None]
    p, q = p.copy(), q.copy()
    p[behind_p], q[behind_q] = 1 / vocabulary, np.eye(vocabulary)[-1]
    return rounds._replace(batch=rounds.batch._replace(p=p, q=q))


def check_of(all_rounds: Sequence[KernelRounds]) -> Check:
    """Return the check of one kernel; ``all_rounds`` are its settings (gamma, vocabulary)."""
    return kernel_check(
        "rows_are_independent",
        "a row is answered alike alone, in every order, and beside any other",
        None,
        Evidence.EQUAL,
        {described_rounds(rounds): partial(examine, rounds) for rounds in all_rounds},
    )
