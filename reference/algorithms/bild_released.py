"""BiLD with the shortcut of its released code: after one unlikely draft that the large model agrees with, no rollback.

Worse than ``bild``: rollback = 0 no longer gives the large model's greedy text, and a token of target probability 0 may
stay, so support is not claimed. On one-hot targets the first unlikely draft is also the first mistake, which leaves the
greedy limit intact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from reference.algorithms.bild import confident_drafter, is_unlikely
from reference.lengths.constant import constant
from reference.models import draft_model
from reference.pmf import argmax
from reference.rounds import commit, from_parts
from reference.types import Algorithm, Claim, Parts, Reduction, Task, Tokens
from reference.verifiers.first_unlikely_only import first_unlikely_only


@from_parts
def build(task: Task, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10) -> Parts:
    """Let the small model run for at most gamma tokens."""
    verify = first_unlikely_only(lambda p, token: is_unlikely(p, token, rollback))
    return Parts(confident_drafter(draft_model(task), fallback), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10
) -> dict[Tokens, Any]:
    """Return the point mass on the output: unlikely drafts are looked for up to the first."""
    small, remaining = draft_model(task), task.horizon
    new: Tokens = ()
    while remaining:
        block: Tokens = ()
        looking, replaced = True, False
        while len(block) < min(gamma, remaining - 1) and not replaced:
            p, q = task.target(prompt + new + block), small(prompt + new + block)
            guess = argmax(q)
            if q.max() < fallback:
                break
            unlikely = looking and is_unlikely(p, guess, rollback)
            replaced = unlikely and guess != argmax(p)
            looking = looking and not unlikely
            block = (*block, argmax(p) if replaced else guess)
        if not replaced:
            block = (*block, argmax(task.target(prompt + new + block)))
        kept, remaining = commit(block, remaining, task.eos)
        new = new + kept
    return {new: 1}


ALGORITHM = Algorithm(
    name="bild-released",
    summary="BiLD that checks only the first unlikely draft (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY}),
    examples=(
        {"fallback": Fraction(1, 2), "rollback": 1.0, "gamma": 2},
        {"fallback": Fraction(1, 4), "rollback": 0.0, "gamma": 3},
    ),
    paper="arXiv 2302.07863, released T5 code",
    declared_law=declared_law,
    systems=("BiLD",),
    needs_training="small and large models aligned by fine-tuning, and what the lost exactness costs in quality",
    reductions=(
        Reduction(
            "greedy-speculation",
            "fallback > 1",
            {"fallback": 2, "rollback": 9.0, "gamma": 2},
            {"gamma": 2},
            rounds=False,
            shown_by="test_limits_of_declared_biases.py::test_deterministic_rules_at_their_strict_end_are_greedy_decoding",
        ),
    ),
)
