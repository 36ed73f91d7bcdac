"""SpecExec: the most probable paths of the drafter, as many as the budget allows (Svirschevski et al. 2406.02532).

The tree has the ``budget`` token paths with the largest product of q. They are found best first, as in a search for
shortest paths: the next path added is the best extension of a path already added. Ties go to the path found first.
Nothing is drawn, so the tree is verified as candidate sets, and the text has the target's law at every temperature.

The paper's Algorithm 1 searches in parallel. Of the release, yandex-research/specexec at c7f24b3, only the part was
read that samples from the target along the tree.
"""

from __future__ import annotations

from typing import Any

from ..drafters.text_paths import paths_drafter
from ..models import draft_model
from ..pmf import top_tokens
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Drafter, LanguageModel, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set


def best_paths(draft: LanguageModel, prefix: Tokens, budget: int, depth: int) -> list[Tokens]:
    """Return the ``budget`` most probable paths of at most ``depth`` tokens, parents before children.

    The paths follow the text ``prefix``, and ``draft`` is the model.
    """
    added: list[Tokens] = []
    waiting: dict[Tokens, Any] = {(): 1} if depth > 0 else {}
    while waiting and len(added) <= budget:
        best = max(waiting, key=lambda path: waiting[path])
        chance = waiting.pop(best)
        added.append(best)
        if len(best) < depth:
            q = draft(prefix + best)
            waiting |= {(*best, token): chance * q[token] for token in top_tokens(q, budget)}
    return added[1:]


def best_first_drafter(draft: LanguageModel, budget: int, depth: int) -> Drafter:
    """Return a drafter of the ``budget`` most probable paths of at most ``depth`` tokens.

    Raises ``ValueError`` for a negative budget or depth.
    """
    if budget < 0 or depth < 0:
        raise ValueError(f"budget is {budget} and depth {depth}, expected at least 0 nodes and levels")
    return paths_drafter(lambda prefix, gamma: best_paths(draft, prefix, budget, min(depth, gamma)))


def build(task: Task, budget: int = 16, depth: int = 8) -> Decoder:
    """Return the decoder that drafts the ``budget`` most probable paths, at most ``depth`` tokens long."""
    return tree_decoder(task, best_first_drafter(draft_model(task), budget, depth), candidate_set)


ALGORITHM = Algorithm(
    name="specexec",
    summary="the paths most probable under q, best first up to a budget; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"budget": 2, "depth": 2}, {"budget": 4, "depth": 3}),
    paper="arXiv 2406.02532, Algorithm 1",
    systems=("SpecExec",),
    reductions=(
        Reduction("candidate-set", "one level", {"budget": 2, "depth": 1}, {"branching": (2,)}),
        Reduction("autoregressive", "a budget of no nodes", {"budget": 0}),
    ),
)
