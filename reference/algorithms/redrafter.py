"""ReDrafter: the beams of a recurrent drafter, merged where they share a prefix (Zhang et al. 2403.09919).

The drafter's beam search keeps, level by level, the ``beams`` paths with the largest product of q. All of them are
verified in one pass, shared prefixes once (the paper's dynamic tree attention). The released code does so too,
apple/ml-recurrent-drafter at bd8586b, ``recurrent_drafting/modeling_drafter.py``, ``beam_search_candidates``: the
logarithms of every beam and its next token are added, and the largest of all are kept. Here the beams are candidate
sets, verified by draws from p, which is exact at every temperature. The release accepts their tokens with ``min(1,
p/q)`` as if they were draws from q. The paper's drafter is a recurrent head on the target's last state; here it is any
model.
"""

from __future__ import annotations

from typing import Any

from ..drafters.text_paths import paths_drafter
from ..models import draft_model
from ..pmf import top_tokens
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Drafter, LanguageModel, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set


def beam_search(draft: LanguageModel, prefix: Tokens, beams: int, depth: int) -> list[Tokens]:
    """Return the ``beams`` best paths of ``depth`` tokens by beam search, the best first.

    The paths follow the text ``prefix``, and ``draft`` is the model.
    """
    kept: list[tuple[Tokens, Any]] = [((), 1)]
    for _ in range(depth):
        grown = []
        for path, chance in kept:
            q = draft(prefix + path)
            grown += [((*path, token), chance * q[token]) for token in top_tokens(q, beams)]
        kept = sorted(grown, key=lambda beam: -beam[1])[:beams]
    return [path for path, _ in kept]


def beams_drafter(draft: LanguageModel, beams: int, depth: int) -> Drafter:
    """Return a drafter of the ``beams`` best paths of ``depth`` tokens, found by beam search.

    Raises ``ValueError`` unless ``beams`` >= 1 and ``depth`` >= 0.
    """
    if beams < 1 or depth < 0:
        raise ValueError(f"beams is {beams} and depth {depth}, expected at least 1 and 0")
    return paths_drafter(lambda prefix, gamma: beam_search(draft, prefix, beams, min(depth, gamma)))


def build(task: Task, beams: int = 4, depth: int = 4) -> Decoder:
    """Return the decoder that drafts ``beams`` paths of ``depth`` tokens by beam search."""
    return tree_decoder(task, beams_drafter(draft_model(task), beams, depth), candidate_set)


ALGORITHM = Algorithm(
    name="redrafter",
    summary="beams of q, merged where they share a prefix; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"beams": 2, "depth": 2}, {"beams": 3, "depth": 2}),
    paper="arXiv 2403.09919; code: apple/ml-recurrent-drafter bd8586b, recurrent_drafting/modeling_drafter.py",
    systems=("ReDrafter",),
    needs_training="the recurrent head, trained on the target's states",
    reductions=(
        Reduction("candidate-set", "one beam", {"beams": 1, "depth": 2}, {"branching": (1, 1)}),
        Reduction("autoregressive", "the beams have no tokens", {"depth": 0}),
    ),
)
