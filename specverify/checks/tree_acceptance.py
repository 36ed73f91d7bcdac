"""The number of accepted drafts of a tree, compared with the best known rule for trees that are drawn the same way.

The optimum for a whole tree is not known, so the best known rule is the standard. If the children of a node are a fixed
candidate set, the rule is a draw from p, which is then searched among the children; no lossless rule accepts more. If
the children are drawn, the rule is recursive rejection (SpecInfer, arXiv 2305.09781; RSD, arXiv 2402.14160).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import slack
from specverify.checks.explaining.counterexample_parts import described, readable
from specverify.checks.round_laws import first_rounds
from specverify.laws.paths import paths
from specverify.reference import Decoder, State, Task
from specverify.subjects.subject import InScenario


def examine_tree(situation: InScenario, best: Callable[[Task], Decoder], budget: int) -> Examination:
    """Compare the mean number of accepted drafts in the first rounds with that of the best known rule.

    A smaller mean refutes. ``best(task)`` returns a decoder that follows this rule and drafts the same trees.
    ``situation`` is the decoder of trees in its scenario, and ``budget`` the most runs of a round.
    """
    decoder, runs = best(situation.task), 0
    for state, masses, count, _, within in first_rounds(situation, budget):
        accepted = sum(number * mass for (_, number), mass in masses.items())
        possible, more, nodes = _accepted_by(decoder, state)
        runs += count + more
        if possible - accepted > slack(situation, 2 * nodes) + nodes * within:
            statement = (
                f"{readable(accepted)} drafts are accepted in the mean, the best rule known for them accepts "
                f"{readable(possible)}"
            )
            let = (described(situation), f"committed {state.tokens}")
            return Examination(
                statement,
                failed=True,
                rational=situation.rational,
                counterexample=Counterexample(let, statement),
                figures={"runs": runs},
            )
    held = "as many drafts are accepted as by the best rule known for them"
    return Examination(held, rational=situation.rational, figures={"runs": runs})


def _accepted_by(decoder: Decoder, state: State) -> tuple[Any, int, int]:
    """Return (mean number of accepted drafts, number of paths, most drafts) of one round of ``decoder``.

    The round begins in ``state``.
    """
    mean, runs, nodes = 0, 0, 0
    for path in paths(lambda draws: decoder.step(draws, state)):
        _, done = path.outcome
        mean, runs, nodes = mean + path.weight * done.accepted, runs + 1, max(nodes, len(done.draft))
    return mean, runs, nodes
