"""FLy: accept a mismatching draft if the target was uncertain there and the following drafts match (2511.22972).

The rule is that of the released code, AMD-AGI/FLy at 6667ae8, ``fly/models/FLy.py``, ``generate`` and
``_batch_verification``. k argmaxes of q are drafted. At every position the target draws twice, and a draft matches if
one of the two draws is the draft; at temperature 0 both are the argmax. A draft that does not match is accepted
nevertheless under three conditions: the ``window`` - 1 drafts after it match, it is not one of the last ``window``
drafts, and the entropy of the three largest entries of p there is at least a threshold (``rej_by_entropy``, in nats,
not normalised). The first rejected draft is replaced by the target's first draw.

The law is not p's: two draws match d with probability 1 - (1 - p(d))^2, which is above p(d) even without the exception.
At temperature 0 the match is with p's argmax, and only excepted drafts differ from the target. The matches at different
positions are independent given the block, so the law of a round is a sum over 2^k patterns of matches. vLLM ships
another rule under this name: ``fly-vllm``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from ..drafters.model import greedy_drafter
from ..laws import law_of_rounds
from ..lengths.constant import constant
from ..limits import greedy_models
from ..models import draft_model
from ..pmf import argmax
from ..rounds import from_parts
from ..types import (
    Algorithm,
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

LARGEST = 3
"""Number of largest entries of p over which the entropy is summed."""


def top_entropy(p: Pmf) -> float:
    """Return ``-sum p ln p`` over the three largest entries, in nats."""
    masses = sorted(map(float, p.tolist()), reverse=True)[:LARGEST]
    return -math.fsum(mass * math.log(mass) for mass in masses if mass > 0)


def staying(met: tuple[bool, ...], unsure: tuple[bool, ...], window: int) -> int:
    """Return the number of accepted drafts: all before the first one that neither matches nor is excused.

    ``met[i]`` states whether draft i matches, ``unsure[i]`` whether the target is uncertain there. A mismatch is
    excused if the target is uncertain, the next ``window`` - 1 drafts match, and it is not one of the last ``window``
    drafts.
    """
    for place, meets in enumerate(met):
        excused = place < len(met) - window and all(met[place + 1 : place + window]) and unsure[place]
        if not (meets or excused):
            return place
    return len(met)


def loosely(window: int, threshold: float) -> Verifier:
    """Return FLy's verifier of a block of argmaxes; ``threshold`` is the least entropy at which a mismatch is excused.

    Raises ``ValueError`` for a ``window`` below 1.
    """
    if window < 1:
        raise ValueError(f"window is {window}, expected at least 1 (the missed draft and those that must be met)")

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        first, met, unsure = [], [], []
        for place, token in enumerate(draft.tokens):
            p = target(prefix + draft.tokens[:place])
            first.append(draws.categorical(p, ("first", place)))
            met.append(first[-1] == token or draws.categorical(p, ("second", place)) == token)
            unsure.append(top_entropy(p) >= threshold)
        stay = staying(tuple(met), tuple(unsure), window)
        if stay < len(met):
            return Verified((*draft.tokens[:stay], first[stay]), stay)
        last = draws.categorical(target(prefix + draft.tokens), ("bonus",))
        return Verified((*draft.tokens, last), stay)

    return verify


@from_parts
def build(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 15) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q, verified by FLy's rule.

    A mismatching draft is accepted if the entropy of the three largest entries of p there is at least ``threshold``,
    the next ``window`` - 1 drafts match, and it is not one of the last ``window`` drafts.
    """
    return Parts(greedy_drafter(draft_model(task)), constant(gamma), loosely(window, threshold))


def declared_law(
    task: Task, prompt: Tokens, window: int = 6, threshold: float = 0.3, gamma: int = 15
) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: a sum over patterns of matches, each with its probability.

    The options are those of ``build``.
    """
    draft = draft_model(task)

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        block: Tokens = ()
        for _ in range(min(gamma, remaining - 1)):
            block = (*block, argmax(draft(prefix + block)))
        rows = [task.target(prefix + block[:place]) for place in range(len(block) + 1)]
        unsure = tuple(top_entropy(p) >= threshold for p in rows[:-1])
        for met in product((True, False), repeat=len(block)):
            weight: Any = 1
            for meets, token, p in zip(met, block, rows, strict=False):
                missed = (1 - p[token]) ** 2
                weight = weight * (1 - missed if meets else missed)
            stay = staying(met, unsure, window)
            for token, mass in enumerate(rows[stay].tolist()):
                if stay == len(block):
                    yield (*block, token), weight * mass
                elif token != block[stay] and mass > 0 and weight > 0:
                    yield (*block[:stay], token), weight * mass / (1 - rows[stay][block[stay]])

    return law_of_rounds(task, prompt, committed)


ALGORITHM = Algorithm(
    name="fly",
    summary="accept d = argmax q if one of two draws z ~ p equals d, or if p is unsure and the next drafts match "
    "(declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"window": 1, "threshold": 0.5, "gamma": 2},
        {"window": 2, "threshold": 0.9, "gamma": 3},
    ),
    paper="arXiv 2511.22972; code: AMD-AGI/FLy 6667ae8, fly/models/FLy.py",
    declared_law=declared_law,
    systems=("FLy",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "greedy-speculation", "p and q one-hot", {"threshold": 1, "gamma": 2}, {"gamma": 2}, limit=greedy_models
        ),
    ),
)
