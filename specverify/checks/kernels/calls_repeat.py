"""A kernel gives equal results for equal arguments, in new arrays, and leaves its arguments unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.kernels.answers_are_rounds import ordinary_rows
from specverify.checks.kernels.row_texts import described_rounds, kernel_check
from specverify.subjects.kernel import positional
from specverify.subjects.kernel_calls import KernelBatch, arguments_of, given_batch, run, tokens_of
from specverify.subjects.kernel_rounds import KernelRounds, random_of

ROWS = 65


def examine_answers(rounds: KernelRounds, _: Conditions) -> Examination:
    """Call the kernel twice with equal arguments and once with others.

    The results of the first two calls must be equal, and the later calls must not change the first result. ``rounds``
    is the kernel in one setting (gamma, vocabulary).
    """
    rng, kernel = np.random.default_rng(2), rounds.kernel
    readings, kept, size = [], [], min(ROWS, rounds.most)
    draws = [ordinary_rows(rounds, size, rng) for _ in range(2)]
    for cases, uniforms in (draws[0], draws[0], draws[1]):
        batch = given_batch(kernel, KernelBatch(*(values[cases] for values in rounds.batch)))
        by_place, by_name = arguments_of(kernel, batch, random_of(rounds, cases, uniforms))
        readings.append(partial(tokens_of, kernel, run(kernel, by_place, by_name), by_name, batch))
        kept.append(host_array(readings[-1]()).copy())
    figures = {"runs": 3 * size}
    for result, then in (
        (kept[1], "a second call with the same arguments answers otherwise"),
        (host_array(readings[0]()), "a later call changes its answer, because both return the same array"),
    ):
        if (result != kept[0]).any():
            row = int(np.flatnonzero((result != kept[0]).any(axis=1))[0])
            because = f"row {row + 1} of {size} was {kept[0][row].tolist()} and is {result[row].tolist()}"
            example = Counterexample((described_rounds(rounds),), then, (because,))
            return Examination(then, failed=True, counterexample=example, figures=figures)
    return Examination("the same arguments give the same answer, in a new array", figures=figures)


def examine_arguments(rounds: KernelRounds, _: Conditions) -> Examination:
    """Compare the arguments of a kernel before and after a call.

    ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    rng, kernel = np.random.default_rng(3), rounds.kernel
    size = min(ROWS, rounds.most)
    cases, uniforms = ordinary_rows(rounds, size, rng)
    batch = given_batch(kernel, KernelBatch(*(values[cases] for values in rounds.batch)))
    by_place, by_name = arguments_of(kernel, batch, random_of(rounds, cases, uniforms))
    inputs = {**dict(zip(positional(kernel), by_place, strict=True)), **by_name}
    inputs = {name: values for name, values in inputs.items() if name not in {"out", "out_lengths"}}
    before = {name: host_array(values).copy() for name, values in inputs.items()}
    tokens_of(kernel, run(kernel, by_place, by_name), by_name, batch)
    changed = [name for name, values in inputs.items() if not np.array_equal(host_array(values), before[name])]
    if not changed:
        return Examination("the arguments are what they were", figures={"runs": size})
    then = f"one call changes {' and '.join(changed)}"
    example = Counterexample((described_rounds(rounds), f"{size} rows"), then)
    return Examination(then, failed=True, counterexample=example, figures={"runs": size})


def checks_of(all_rounds: Sequence[KernelRounds]) -> tuple[Check, Check]:
    """Return the two checks of a kernel, on its results and on its arguments.

    Of ``all_rounds``, its settings (gamma, vocabulary), only the first is examined.
    """
    few = {described_rounds(rounds): rounds for rounds in all_rounds[:1]}
    return (
        kernel_check(
            "calls_repeat",
            "the same arguments give the same answer, in a new array",
            None,
            Evidence.EQUAL,
            {name: partial(examine_answers, rounds) for name, rounds in few.items()},
        ),
        kernel_check(
            "inputs_unchanged",
            "p, q, drafts and random numbers are the same before and after a call",
            None,
            Evidence.EQUAL,
            {name: partial(examine_arguments, rounds) for name, rounds in few.items()},
        ),
    )
