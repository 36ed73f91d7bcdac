"""Read the resolved cells of a kernel as rounds given their drafts, and name how these differ from the rule.

A cell is a box of uniforms; it is resolved if the kernel emits the same tokens at all evaluated points of the box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from specverify.checks.explaining.given_drafts import GivenDrafts
from specverify.checks.explaining.round_faults import RoundFault, named_fault
from specverify.checks.explaining.round_rules import ModelRows
from specverify.laws.grid import GridCell
from specverify.reference import Tokens
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds
from specverify.subjects.kernel_tables import Situation

WHOLE = 1 - Fraction(1, 10**6)
"""Cases with less resolved volume are left out."""
NEAR = 1e-6


def fault_of_cells(
    rounds: KernelRounds, settled: Iterable[tuple[GridCell, Tokens]], situation: Situation
) -> RoundFault | None:
    """Return how the rounds of a kernel differ from speculative sampling; None if this is not recognised.

    ``settled`` has (cell, tokens): the kernel emits these tokens for all random numbers in the cell. Only sequences of
    drafts whose cells cover nearly all random numbers are examined. Examples from ``situation`` are preferred.
    ``rounds`` is the kernel in one setting (gamma, vocabulary). Returns None if a token without probability is emitted.
    """
    if rounds.kernel.convention.rule != "token":
        return None
    volumes: dict[int, dict[Tokens, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for cell, emitted in settled:
        volumes[cell.case][emitted] += cell.volume
    whole = [number for number, law in volumes.items() if sum(law.values()) >= WHOLE]
    others = {token for number in whole for tokens in volumes[number] for token in tokens if token >= len(rounds.ids)}
    if others:  # they are tokens of the kernel's vocabulary, and stand for no entries of the models
        return None
    whole.sort(key=lambda number: (rounds.cases[number].situation is not situation, number))
    given = [
        _given(rounds.cases[number], volumes[number])._replace(
            elsewhere=rounds.cases[number].situation is not situation
        )
        for number in whole
        if rounds.cases[number].draft
    ]
    return named_fault(given, "") if given else None


def _given(case: DraftCase, law: dict[Tokens, Fraction]) -> GivenDrafts:
    gamma = len(case.draft)
    reached = [sum((mass for tokens, mass in law.items() if len(tokens) > i), Fraction(0)) for i in range(gamma + 1)]
    accept = tuple(reached[i + 1] / reached[i] for i in range(gamma) if reached[i] > 0)
    ends: dict[int, dict[int, Any]] = defaultdict(lambda: defaultdict(Fraction))
    for tokens, mass in law.items():
        if tokens:
            ends[len(tokens) - 1][tokens[-1]] += mass
    laws = {i: {token: mass / sum(end.values()) for token, mass in end.items()} for i, end in ends.items()}
    q: Sequence[Any] = [*case.q, [0 for _ in case.p[0]]]
    return GivenDrafts(
        (),
        case.draft,
        ModelRows(tuple(tuple(row) for row in case.p), tuple(tuple(row) for row in q)),
        None,
        accept,
        {i: end for i, end in laws.items() if i < gamma},
        laws.get(gamma),
        True,
        {},
        NEAR,
    )
