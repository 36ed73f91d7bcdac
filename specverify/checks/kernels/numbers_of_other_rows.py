"""Name the random numbers that a kernel takes from another row of its batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.checks.explaining.round_rules import excess
from specverify.checks.explaining.wording import listed
from specverify.reference import Tokens
from specverify.subjects.kernel_rounds import DraftCase, KernelRounds, by_rule, noise_of

LEAST_ROWS = 3
"""The number of rows that must show the numbers of another row."""
NEIGHBOURS = {"before it": -1, "after it": 1}


def numbers_of_other_rows(rounds: KernelRounds, cases: Any, uniforms: Any, answers: Any) -> str:
    """Return the sentence that rows use random numbers of the next row or the row before; "" if they do not.

    ``cases`` ``[rows]``, ``uniforms`` ``[rows, k]`` and the emitted ``answers`` ``[rows, gamma + 1]`` are those of one
    call. With these numbers the rule must explain each row that differs from it. ``rounds`` is the kernel in one
    setting (gamma, vocabulary).
    """
    own = [_by_rule(rounds, cases, uniforms, row, row, row) for row in range(len(cases))]
    seen = [tuple(token for token in answer if token != -1) for answer in answers.tolist()]
    last = "noise" if rounds.kernel.race else "final uniform"
    for where, by in NEIGHBOURS.items():
        wrong = [row for row in range(len(cases)) if 0 <= row + by < len(cases) and seen[row] != own[row]]
        if len(wrong) < LEAST_ROWS:
            return ""
        if all(_by_rule(rounds, cases, uniforms, row, row, row + by) == seen[row] for row in wrong):
            whole = {len(seen[row]) > len(rounds.cases[int(cases[row])].draft) for row in wrong}
            names = [name for name, is_bonus in (("the bonus", True), ("the replacement", False)) if is_bonus in whole]
            are = "are" if len(names) > 1 else "is"
            return f"{listed(names)} of a row {are} drawn with the {last} of the row {where}"
        if all(_by_rule(rounds, cases, uniforms, row, row + by, row) == seen[row] for row in wrong):
            return f"a draft of a row is tested with the accept uniforms of the row {where}"
        if all(_by_rule(rounds, cases, uniforms, row, row + by, row + by) == seen[row] for row in wrong):
            return f"a row is decided with all random numbers of the row {where}"
    return ""


def _by_rule(rounds: KernelRounds, cases: Any, uniforms: Any, row: int, coins: int, last: int) -> Tokens:
    """Return the tokens that the rule emits for ``row`` with random numbers of other rows.

    The accept uniforms are those of row ``coins``, and the numbers of the last draw those of row ``last``. ``cases``
    and ``uniforms`` are those of all rows. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    case: DraftCase = rounds.cases[int(cases[row])]
    numbers = [*uniforms[coins][: rounds.gamma], *uniforms[last][rounds.gamma :]]
    tokens = by_rule(rounds, case, numbers)
    if not rounds.kernel.race or last == row:
        return tokens
    kept = len(tokens) - 1
    left = case.p[kept] if kept == len(case.draft) else excess(case.p[kept], case.q[kept])
    one = np.array([last])
    noise = noise_of(rounds, cases[one], uniforms[one, rounds.gamma], uniforms[one, rounds.gamma + 1])[0]
    scores = [float(mass) / noise[identity] for mass, identity in zip(left, rounds.ids, strict=True)]
    return (*tokens[:-1], int(np.argmax(scores)))
