"""NAPD: adaptive n-gram drafts verified greedily (Ou et al. 2404.08698). Exact at temperature 0.

Same table as NASD with filler 1: every committed token counts once. Ties go to the highest id, as a stable sort that
takes its last entry does; NASD takes the lowest, so the outputs agree at temperature 0 and the drafts need not.
"""

from __future__ import annotations

from reference.drafters.ngram import ngram_drafter, ngram_table
from reference.laws import greedy_law
from reference.lengths.constant import constant
from reference.limits import greedy_target
from reference.rounds import from_parts
from reference.types import Algorithm, Claim, Parts, Reduction, Task
from reference.verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, order: int = 3, gamma: int = 4) -> Parts:
    """Draft up to gamma tokens from n-grams of all orders from ``order`` down to 2, keep the target's argmax."""
    return Parts(ngram_drafter(ngram_table(order), highest_id=True), constant(gamma), greedy_match)


ALGORITHM = Algorithm(
    name="napd",
    summary="n-gram draft d, accept while d = argmax p",
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
