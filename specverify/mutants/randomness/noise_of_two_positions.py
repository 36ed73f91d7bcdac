"""Coupled decoding whose noise belongs to pairs of positions: two tokens in a row are drawn from one race."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Pmf, Round, Site, State, Task
from specverify.reference.verifiers.gumbel_coupling import draft_given_target


class _Paired:
    """Draws in which an odd position's noise is that of the position before."""

    def __init__(self, draws: Draws, state: State, task: Task) -> None:
        self._draws, self._task = draws, task
        self._text = list(state.tokens)

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[0] != "noise":
            return self._draws.categorical(pmf, site)
        position: Any = site[1]
        if position % 2 and position > 1:
            before = self._task.target(tuple(self._text[: position - 1]))
            pmf = draft_given_target(before, pmf, self._text[position - 1])
        drawn = self._draws.categorical(pmf, site)
        self._text[position:] = [drawn]
        return drawn


def build(task: Task, gamma: int = 4) -> Decoder:
    """Gumbel coupling with noise of (position // 2)."""
    inner = correct("gumbel-coupling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        return inner.step(_Paired(draws, state, task), state)

    return inner._replace(step=step)


MUTANT = planted(
    "gumbel-coupling",
    "noise-of-two-positions",
    "reads one race for two positions",
    build,
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
