"""FLy as vLLM ships it: excuse a rejection if the target was uncertain and the next ``window`` drafts are accepted.

The rule is that of vllm-project/vllm, pull request 50808, ``vllm/v1/spec_decode/fly.py`` at 1719fb1, the kernels
``apply_fly_random_acceptance_kernel`` and ``compute_fly_entropy``. Every draft has its own acceptance test with
``min(1, p/q)``. A draft that fails is kept nevertheless under three conditions: p gives it a positive probability, the
entropy of the three largest entries of the processed p is at least a threshold (nats, not normalised), and the next
``window`` drafts exist and pass their tests. The first draft that is not kept is replaced by a draw from ``norm((p -
q)+)``.

Four points differ from the authors' release (``fly``): acceptance by p/q instead of two draws of p, ``window``
following drafts instead of ``window`` - 1, the condition p(d) > 0, and the processed p. The law is a sum over drafted
blocks and patterns of acceptance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ..coupling import accept_probability, excess_law, flip
from ..drafters.model import model_drafter
from ..laws import drafted_blocks, law_of_rounds
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..trees import child_pmf
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    Verified,
    Verifier,
)
from .fly import top_entropy


def may_defer(p: Pmf, token: int, threshold: float) -> bool:
    """Return whether a rejected ``token`` may be kept if the next drafts pass their tests.

    This is so if p(token) > 0 and the entropy of the three largest entries of p is at least ``threshold``.
    """
    return bool(p[token] > 0) and top_entropy(p) >= threshold


def staying(accepted: Sequence[bool], excusable: Sequence[bool], window: int) -> int:
    """Return the number of kept drafts: those before the first draft that neither passed its test nor is excused.

    ``accepted`` states which drafts passed. Of the others, one that is ``excusable`` is excused if the next ``window``
    drafts exist and passed.
    """
    for place, kept in enumerate(accepted):
        followers = accepted[place + 1 : place + window + 1]
        if not (kept or (excusable[place] and len(followers) == window and all(followers))):
            return place
    return len(accepted)


def deferring(window: int, threshold: float) -> Verifier:
    """Return vLLM's FLy verifier; ``threshold`` is the least entropy at which a rejection is excused.

    Raises ``ValueError`` for a ``window`` below 1.
    """
    if window < 1:
        raise ValueError(f"window is {window}, expected at least 1 (the drafts that must follow an excused one)")

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        p = [target(prefix + draft.tokens[:place]) for place in range(len(draft.tokens) + 1)]
        q = [child_pmf(draft, place, p[place]) for place in range(len(draft.tokens))]
        accepted, excusable = [], []
        for place, token in enumerate(draft.tokens):
            accepted.append(flip(draws, accept_probability(p[place], q[place], token), ("accept", place)))
            excusable.append(may_defer(p[place], token, threshold))
        stay = staying(accepted, excusable, window)
        last = excess_law(p[stay], q[stay]) if stay < len(draft.tokens) else p[stay]
        return Verified((*draft.tokens[:stay], draws.categorical(last, ("last",))), stay)

    return verify


@from_parts
def build(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 8) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q, verified by vLLM's FLy rule.

    A rejected draft d is kept if p(d) > 0, the entropy of the three largest entries of p there is at least
    ``threshold``, and the next ``window`` drafts exist and pass their tests.
    """
    return Parts(model_drafter(draft_model(task)), constant(gamma), deferring(window, threshold))


def declared_law(
    task: Task, prompt: Tokens, window: int = 6, threshold: float = 0.3, gamma: int = 8
) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: a sum over blocks of q and over patterns of passed tests.

    The options are those of ``build``.
    """
    draft = draft_model(task)

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        for block, mass in drafted_blocks(draft, prefix, min(gamma, remaining - 1)):
            p = [task.target(prefix + block[:place]) for place in range(len(block) + 1)]
            q = [draft(prefix + block[:place]) for place in range(len(block))]
            chances = [accept_probability(p[place], q[place], token) for place, token in enumerate(block)]
            excusable = [may_defer(p[place], token, threshold) for place, token in enumerate(block)]
            for accepted in product((True, False), repeat=len(block)):
                weight = mass
                for chance, kept in zip(chances, accepted, strict=True):
                    weight = weight * (chance if kept else 1 - chance)
                if not weight > 0:
                    continue
                stay = staying(accepted, excusable, window)
                last = excess_law(p[stay], q[stay]) if stay < len(block) else p[stay]
                for token, share in enumerate(last.tolist()):
                    yield (*block[:stay], token), weight * share

    return law_of_rounds(task, prompt, committed)


ALGORITHM = Algorithm(
    name="fly-vllm",
    summary="accept d ~ q with min(1, p/q), or if p is unsure and the next drafts are accepted (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"window": 1, "threshold": 0.5, "gamma": 2}, {"window": 2, "threshold": 0.9, "gamma": 3}),
    paper="arXiv 2511.22972; code: vllm-project/vllm 1719fb1 (pull request 50808), vllm/v1/spec_decode/fly.py",
    declared_law=declared_law,
    systems=("FLy",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction("speculative-sampling", "the threshold is above ln 3", {"threshold": 2.0, "gamma": 2}, {"gamma": 2}),
    ),
)
