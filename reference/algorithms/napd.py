"""NAPD: adaptive n-gram drafts verified greedily (Ou et al. 2404.08698). Exact at temperature 0.

The n-gram table counts every committed token once, as in ``nasd`` with ``filler_top_k`` = 1. Of continuations with
equal counts the newest is drafted: the one whose first occurrence is latest, as in the released code (see
``drafters.ngram``). So at temperature 0 the outputs of NAPD and NASD agree, but their drafts may differ. In an unknown
context the release drafts a special token id, and it counts a prompt twice; here the draft ends there, and a prompt is
counted once.
"""

from __future__ import annotations

from ..drafters.ngram import ngram_drafter, ngram_table
from ..laws import greedy_law
from ..lengths.constant import constant
from ..limits import greedy_target
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, order: int = 3, gamma: int = 4) -> Parts:
    """Return the decoder that drafts up to ``gamma`` tokens from n-grams up to ``order`` and verifies them greedily."""
    return Parts(ngram_drafter(ngram_table(order, newest=True)), constant(gamma), greedy_match)


ALGORITHM = Algorithm(
    name="napd",
    summary="d is an n-gram draft, accepted while d = argmax p",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"order": 2, "gamma": 1}, {"order": 3, "gamma": 3}),
    paper="arXiv 2404.08698, Section 3",
    declared_law=greedy_law,
    systems=("NAPD", "ANPD"),
    reductions=(
        Reduction(
            "nasd", "p one-hot", {"order": 2, "gamma": 2}, {"order": 2, "gamma": 2}, limit=greedy_target, rounds=False
        ),
    ),
)
